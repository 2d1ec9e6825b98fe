"""Reading of an object store or a mounted folder through the user's own client, measured.

A sample of objects is read: one byte of each (the time to the first byte), then whole objects by
one thread (the rate of one reader) and by several threads. The CPU time of this process gives the
work of a request and of a byte. The result are keys of a scenario.
"""

from __future__ import annotations

import importlib
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from simulator.errors import InputError, Problem
from simulator.probe.reading import Say
from simulator.reading.hardware.profile_text import comment, quantity, quote
from simulator.records import dataclass
from simulator.units import BYTE, BYTE_PER_SECOND, SECOND, Bytes, Seconds, show
from simulator.version import __version__

MAX_LISTED: Final = 1000
"""Objects that are listed at most."""
MAX_READ: Final = 256
"""Objects of the sample."""
TIMEOUT: Final = 30.0
"""Time after which an HTTP request fails [s]."""
LEAST_SHARE: Final = 0.2
"""Share of a read beyond its first byte from which on it shows the rate of a reader."""
LEAST_WORK: Final = 0.05
"""Share of the CPU time beyond that of requests from which on it shows the work of a byte."""
_MOUNT_TABLE: Final = Path("/proc/mounts")
NO_MOUNTS: Final[Mapping[str, str]] = {}


class Item(NamedTuple):
    """An object: its name for the client, and its size [B]."""

    name: str
    size: Bytes


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A store opened through a client.

    `first` reads one byte of an object, `whole` all of it and returns the number of bytes. `client`
    is the name of its profile; empty without one. `in_process`: the client works in this process,
    so that its CPU time can be measured.
    """

    client: str
    items: Sequence[Item]
    first: Callable[[Item], object]
    whole: Callable[[Item], int]
    in_process: bool = True


@dataclass(frozen=True, kw_only=True)
class Together:
    """Reads of several threads: rates [1/s, B/s], and the cores of this process in use."""

    threads: int
    objects: float
    rate: float
    cores: float

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        rate = show(self.rate, BYTE_PER_SECOND, 3)
        return f"{threads}: {self.objects:.3g} objects/s, {rate}, {self.cores:.2g} cores"


@dataclass(frozen=True, kw_only=True)
class StoreProbe:
    """Measured reads of a store; figures that the sample does not show are None.

    `latency` is the time to the first byte, `rate` that of one reader after it.
    """

    store: str
    client: str
    objects: int
    size: Bytes
    latency: Seconds
    rate: float | None
    request_cpu: Seconds | None
    core_rate: float | None
    together: tuple[Together, ...]
    notes: tuple[str, ...] = ()
    date: str = ""

    def toml(self) -> str:
        """Return the keys of a scenario, with what was measured as comments."""
        size = show(self.size, BYTE, 3)
        head = [
            f"Written by plan probe {__version__} on {self.date}; add these keys to your scenario.",
            f"{self.objects} objects of {size} of {self.store}",
            *(str(one) for one in self.together),
            *(f"note: {note}" for note in self.notes),
        ]
        hardware = [f"storage_latency = {quantity(self.latency, SECOND)}"]
        if self.rate is not None:
            hardware.append(f"storage_request_rate = {quantity(self.rate, BYTE_PER_SECOND)}")
        data = [f"client = {quote(self.client)}"] if self.client else []
        if self.request_cpu is not None:
            data.append(f"request_cpu = {quantity(self.request_cpu, SECOND)}")
        if self.core_rate is not None:
            data.append(f"core_rate = {quantity(self.core_rate, BYTE_PER_SECOND)}")
        sections = [comment("\n".join(head)), "", "[hardware]", *hardware]
        return "\n".join([*sections, *(["", "[data]", *data] if data else []), ""])


def open_store(
    store: str, client: str | None = None, mounts: Mapping[str, str] = NO_MOUNTS
) -> Opened:
    """Open a folder, an http(s) URL, or a bucket such as s3://bucket/prefix.

    Parameters
    ----------
    store : str
        Folder or URL.
    client : str, optional
        Library to read a bucket with: boto3 or fsspec; boto3 for s3, else fsspec by default.
    mounts : mapping of str to str
        Clients that mount buckets, by the name of their file system.

    Raises
    ------
    InputError
        If there is no such store, if it holds no objects, or if a library is missing.
    """
    scheme = urlsplit(store).scheme.lower()
    if scheme in {"http", "https"}:
        opened = _over_http(store)
    elif "://" not in store:
        opened = _in_folder(Path(store), mounts)
    elif (client or ("boto3" if scheme == "s3" else "fsspec")) == "boto3":
        opened = _through_boto3(store)
    else:
        opened = _through_fsspec(store, scheme)
    if not opened.items:
        raise _problem(store, "holds no objects with content")
    drawn = random.Random(0).sample(list(opened.items), min(MAX_READ, len(opened.items)))  # noqa: S311 - a sample
    return Opened(
        client=opened.client,
        items=drawn,
        first=opened.first,
        whole=opened.whole,
        in_process=opened.in_process,
    )


def probe_store(  # noqa: PLR0913, PLR0917 - where, how and how long
    store: str,
    client: str | None,
    threads: int,
    seconds: Seconds,
    say: Say,
    mounts: Mapping[str, str] = NO_MOUNTS,
) -> StoreProbe:
    """Measure the reads of a store through a client.

    Parameters
    ----------
    store, client, mounts
        As for `open_store`.
    threads : int
        Most threads that read at a time.
    seconds : float
        Time to measure [s], shared out among the measurements.
    say : callable
        Called with what is being measured.

    Raises
    ------
    InputError
        If the store cannot be opened, or a read fails.
    """
    opened = open_store(store, client, mounts)
    steps = sorted({*(2**k for k in range(1, threads.bit_length())), threads} - {1})
    part = seconds / (2.0 + len(steps))
    # Objects whose first byte was read may be cached: others are read whole.
    half = max(1, len(opened.items) // 2)
    few, rest = opened.items[:half], opened.items[half:] or opened.items
    try:
        say("the time to the first byte")
        firsts, first_cpu = _timed(opened.first, few, part)
        say("whole objects with one thread")
        start, began = time.process_time(), time.perf_counter()
        wholes, _ = _timed(opened.whole, rest, part)
        passed, work = time.perf_counter() - began, time.process_time() - start
        together = [_rates(1, wholes, passed, work)]
        for number in steps:
            say(f"whole objects with {number} threads")
            together.append(_several(opened, rest, number, part))
    except (OSError, urllib.error.URLError) as error:
        raise _problem(store, f"cannot be read: {error}") from error
    latency = median(seconds for _, seconds in firsts)
    rate, notes = _rate(wholes, latency)
    request_cpu, core_rate = _cpu(opened, first_cpu / len(firsts), wholes, work, notes)
    if len(wholes) > len(rest):
        notes.append("objects were read more than once, and may have come from a cache")
    return StoreProbe(
        store=store,
        client=opened.client,
        objects=len(opened.items),
        size=fmean(size for size, _ in wholes),
        latency=latency,
        rate=rate,
        request_cpu=request_cpu,
        core_rate=core_rate,
        together=tuple(together),
        notes=tuple(notes),
        date=datetime.now(tz=UTC).date().isoformat(),
    )


Timed = tuple[float, Seconds]
"""What a read returned (its bytes), and its time [s]."""


def _timed(
    read: Callable[[Item], object], items: Sequence[Item], seconds: Seconds
) -> tuple[list[Timed], Seconds]:
    """Read objects one after another for `seconds`, one at least; return times and CPU time."""
    found, cpu, end = list[Timed](), time.process_time(), time.perf_counter() + seconds
    for item in cycle(items):
        start = time.perf_counter()
        size = read(item)
        done = time.perf_counter()
        found.append((float(size) if isinstance(size, int) else item.size, done - start))
        if done >= end:
            break
    return found, time.process_time() - cpu


def _several(opened: Opened, items: Sequence[Item], threads: int, seconds: Seconds) -> Together:
    """Read objects with several threads for `seconds`, one each at least."""
    supply, lock = cycle(items), threading.Lock()
    start, cpu = time.perf_counter(), time.process_time()
    end = start + seconds

    def reads() -> list[Timed]:
        found = list[Timed]()
        while not found or time.perf_counter() < end:
            with lock:
                item = next(supply)
            found.append((float(opened.whole(item)), 0.0))
        return found

    with ThreadPoolExecutor(threads) as pool:
        runs = [pool.submit(reads) for _ in range(threads)]
        done = [one for run in runs for one in run.result()]
    passed = time.perf_counter() - start
    return _rates(threads, done, passed, time.process_time() - cpu)


def _rates(threads: int, done: Sequence[Timed], passed: Seconds, cpu: Seconds) -> Together:
    return Together(
        threads=threads,
        objects=len(done) / passed,
        rate=sum(size for size, _ in done) / passed,
        cores=cpu / passed,
    )


def _rate(wholes: Sequence[Timed], latency: Seconds) -> tuple[float | None, list[str]]:
    """Return the rate of one reader after the first byte if objects show it, and notes."""
    beyond = sum(max(0.0, seconds - latency) for _, seconds in wholes)
    if beyond < LEAST_SHARE * sum(seconds for _, seconds in wholes):
        return None, ["these objects are too small to show the rate of one reader"]
    return sum(size for size, _ in wholes) / beyond, []


def _cpu(
    opened: Opened,
    request: Seconds,
    wholes: Sequence[Timed],
    work: Seconds,
    notes: list[str],
) -> tuple[Seconds | None, float | None]:
    """Return the CPU time of a request and the bytes that a core receives, as far as known."""
    if not opened.in_process:
        if opened.client:
            notes.append("the client works in a process of its own, whose CPU time is not counted")
        return None, None
    bytes_work = work - request * len(wholes)
    if bytes_work < LEAST_WORK * work:
        notes.append("these objects are too small to show the CPU time of their bytes")
        return request, None
    return request, sum(size for size, _ in wholes) / bytes_work


def _in_folder(folder: Path, mounts: Mapping[str, str]) -> Opened:
    """Open a folder: a local one, one over the network, or a mounted bucket."""
    if not folder.is_dir():
        raise _problem(
            str(folder), "is not a folder or a URL", "such as /data or s3://bucket/train"
        )
    client = _mounted(folder, mounts)

    def first(item: Item) -> bytes:
        with Path(item.name).open("rb", buffering=0) as file:
            _forget(file.fileno())
            return file.read(1)

    def whole(item: Item) -> int:
        with Path(item.name).open("rb", buffering=0) as file:
            _forget(file.fileno())
            return len(file.read())

    try:
        items = list(islice(_files(folder), MAX_LISTED))
    except OSError as error:
        raise _problem(str(folder), f"cannot be read: {error.strerror}") from error
    return Opened(client=client, items=items, first=first, whole=whole, in_process=False)


def _forget(descriptor: int) -> None:
    """Drop the file from the page cache, where the system can."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _files(folder: Path) -> Iterator[Item]:
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > 0:
            yield Item(str(path), float(path.stat().st_size))


def _mounted(folder: Path, mounts: Mapping[str, str]) -> str:
    """Return the client of the mount that holds a folder; empty if none is known."""
    if not _MOUNT_TABLE.is_file():
        return ""
    held = str(folder.resolve())
    lines = [line.split(" ") for line in _MOUNT_TABLE.read_text(encoding="utf-8").splitlines()]
    above = [line for line in lines if f"{held}/".startswith(f"{line[1].rstrip('/')}/")]
    if not above:
        return ""
    device, _, kind, *_ = max(above, key=lambda line: len(line[1]))
    if "fuse" not in kind:
        return ""
    return next((client for name, client in mounts.items() if name in f"{device} {kind}"), "")


class _Links(HTMLParser):
    """The links of a page that lists files."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the target of a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _over_http(url: str) -> Opened:
    """Open an object, or a page that lists objects (ends with a slash), over HTTP."""

    def asked(address: str, **headers: str) -> Any:  # noqa: ANN401 - an open response
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - http(s) alone
        return urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310 - http(s) alone

    def first(item: Item) -> bytes:
        with asked(item.name, Range="bytes=0-0") as answer:
            read: bytes = answer.read(1)
            return read

    def whole(item: Item) -> int:
        with asked(item.name) as answer:
            return len(answer.read())

    try:
        names = [url]
        if url.endswith("/"):
            page = _Links()
            with asked(url) as answer:
                page.feed(answer.read().decode("utf-8", "replace"))
            inside = (urljoin(url, link) for link in page.found)
            names = [name for name in inside if name.startswith(url) and not name.endswith("/")]
        items = []
        for name in names[:MAX_READ]:
            with asked(name) as answer:
                size = float(answer.headers.get("Content-Length") or len(answer.read()))
                items += [Item(name, size)] if size > 0.0 else []
    except (OSError, ValueError) as error:
        raise _problem(url, f"cannot be read: {error}") from error
    return Opened(client="", items=items, first=first, whole=whole)


def _through_boto3(url: str) -> Opened:
    """Open a bucket of S3 with boto3."""
    boto3 = _library("boto3", url, "pip install boto3, or --client fsspec")
    parts = urlsplit(url)
    bucket, prefix = parts.netloc, parts.path.lstrip("/")
    try:
        s3 = boto3.client("s3")
        page = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=MAX_LISTED)
    except Exception as error:
        # botocore raises exceptions of its own, which cannot be imported here.
        raise _problem(url, f"cannot be listed: {error}") from error

    def got(item: Item, **more: str) -> bytes:
        try:
            read: bytes = s3.get_object(Bucket=bucket, Key=item.name, **more)["Body"].read()
        except Exception as error:
            raise _problem(item.name, f"cannot be read: {error}") from error
        return read

    return Opened(
        client="boto3",
        items=[
            Item(each["Key"], float(each["Size"]))
            for each in page.get("Contents", ())
            if each["Size"] > 0
        ],
        first=lambda item: got(item, Range="bytes=0-0"),
        whole=lambda item: len(got(item)),
    )


_OF_SCHEMES: Final = {"s3": "fsspec", "gs": "gcsfs", "gcs": "gcsfs"}
"""Clients of fsspec by the scheme of a URL."""


def _through_fsspec(url: str, scheme: str) -> Opened:
    """Open a bucket of any store with fsspec."""
    fsspec = _library("fsspec", url, "pip install fsspec and the package of this store")
    try:
        files, root = fsspec.core.url_to_fs(url)
        found = files.find(root, detail=True)
    except ImportError as error:
        raise _problem(url, f"needs a package that is missing: {error}") from error
    except Exception as error:
        # Each store of fsspec raises exceptions of its own.
        raise _problem(url, f"cannot be listed: {error}") from error
    listed = islice(found.items(), MAX_LISTED)

    def got(item: Item, **more: int) -> bytes:
        try:
            read: bytes = files.cat_file(item.name, **more)
        except Exception as error:
            raise _problem(item.name, f"cannot be read: {error}") from error
        return read

    return Opened(
        client=_OF_SCHEMES.get(scheme, ""),
        items=[Item(name, float(info["size"])) for name, info in listed if info.get("size")],
        first=lambda item: got(item, start=0, end=1),
        whole=lambda item: len(got(item)),
    )


def _library(name: str, store: str, hint: str) -> Any:  # noqa: ANN401 - a module of the user's
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _problem(store, f"needs {name}, which is not installed", hint) from error


def _problem(found: str, message: str, hint: str | None = None) -> InputError:
    return InputError((Problem(origin="--store", message=message, found=found, hint=hint),))
