"""Reads of a store, measured through a client: folders, a local server, and libraries."""

from __future__ import annotations

import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from simulator.errors import InputError
from simulator.probe import store as probing
from simulator.probe.store import open_store, probe_store
from simulator.reading.scenario import load_scenario
from simulator.units import BYTE_PER_SECOND, SECOND, parse

OBJECTS, SIZE = 12, 300_000
DELAY = 0.02
"""Time that the servers of these tests take to answer [s]."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve objects of 300 kB, and an empty one that does not count."""
    held = tmp_path / "objects"
    held.mkdir()
    for number in range(OBJECTS):
        (held / f"object-{number}").write_bytes(bytes(SIZE))
    (held / "empty").touch()
    return held


class Slow(SimpleHTTPRequestHandler):
    """A server that takes 20 ms before it answers, and knows no ranges."""

    def do_GET(self) -> None:
        """Answer after a while."""
        time.sleep(DELAY)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Say nothing."""


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """The address of a server of the folder."""
    held = ThreadingHTTPServer(("127.0.0.1", 0), partial(Slow, directory=str(folder)))
    thread = threading.Thread(target=held.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{held.server_port}/"
    held.shutdown()
    held.server_close()


def silent(_: str) -> None:
    """Tell nobody."""


def test_a_server_is_measured(server: str) -> None:
    """It takes 20 ms before the first byte; two threads and four read nearly as much more."""
    found = probe_store(server, None, 4, 2.0, silent)
    assert (found.objects, found.size, found.client) == (OBJECTS, SIZE, "")
    assert DELAY < found.latency < 5 * DELAY
    assert [one.threads for one in found.together] == [1, 2, 4]
    one, _, four = found.together
    assert one.objects < 1.0 / DELAY
    assert four.objects > 1.5 * one.objects
    assert found.request_cpu is not None
    assert 0.0 < found.request_cpu < DELAY


def test_the_keys_can_be_used_at_once(server: str) -> None:
    """A scenario that takes them over reads with that latency, through that client."""
    found = probe_store(server, None, 2, 1.0, silent)
    keys = tomllib.loads(found.toml())
    assert parse(keys["hardware"]["storage_latency"], SECOND) == pytest.approx(
        found.latency, rel=1e-5
    )
    if found.core_rate is not None:
        core = parse(keys["data"]["core_rate"], BYTE_PER_SECOND)
        assert core == pytest.approx(found.core_rate, rel=1e-5)
    settings = [f"{table}.{key}={value}" for table in keys for key, value in keys[table].items()]
    job = load_scenario(
        "imagenet-page-cache-g4dn", overrides=["hardware.storage=storage/s3", *settings]
    )
    assert job.cluster.trainers.storage.read_latency == pytest.approx(found.latency, rel=1e-5)
    client = job.job.client
    assert client is not None
    assert client.request_time == 0.0
    assert client.request_cpu == pytest.approx(found.request_cpu, rel=1e-5)


def test_a_folder_has_no_client_of_its_own(folder: Path) -> None:
    """Reads of files cost the process no decryption: only latency and rate are keys."""
    found = probe_store(str(folder), None, 2, 0.5, silent)
    assert (found.client, found.request_cpu, found.core_rate) == ("", None, None)
    assert found.latency > 0.0
    assert "data" not in tomllib.loads(found.toml())


def test_a_mounted_bucket_names_its_client(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest mount that holds the folder decides, and a file system of a disk is none."""
    table = tmp_path / "mounts"
    root = folder.resolve()
    table.write_text(f"/dev/sda / ext4 rw 0 0\nmountpoint-s3 {root.parent} fuse rw 0 0\n")
    monkeypatch.setattr(probing, "_MOUNT_TABLE", table)
    known = {"mountpoint-s3": "mountpoint", "goofys": "goofys"}
    assert open_store(str(folder), mounts=known).client == "mountpoint"
    table.write_text(f"/dev/sda / ext4 rw 0 0\nbucket {root}-2 fuse.goofys rw 0 0\n")
    assert open_store(str(folder), mounts=known).client == ""


class Bucket:
    """Two objects of S3 as boto3 returns them."""

    held: ClassVar = {"a/1": b"x" * 1000, "a/2": b"y" * 3000}

    def list_objects_v2(self, **asked: Any) -> dict[str, Any]:
        """The objects below a prefix."""
        assert (asked["Bucket"], asked["Prefix"]) == ("bucket", "a")
        return {"Contents": [{"Key": key, "Size": len(data)} for key, data in self.held.items()]}

    def get_object(self, **asked: Any) -> dict[str, Any]:
        """An object, or its first byte."""
        data = self.held[asked["Key"]]
        part = data[:1] if asked.get("Range") == "bytes=0-0" else data
        return {"Body": SimpleNamespace(read=lambda: part)}


def test_a_bucket_is_read_with_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are listed below the prefix, and read whole or by one byte."""
    library = SimpleNamespace(client=lambda _: Bucket())
    monkeypatch.setitem(sys.modules, "boto3", library)
    opened = open_store("s3://bucket/a")
    assert opened.client == "boto3"
    assert {item.name: opened.whole(item) for item in opened.items} == {"a/1": 1000, "a/2": 3000}
    assert opened.first(opened.items[0]) in {b"x", b"y"}


def test_a_bucket_is_read_with_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any store of fsspec, by the scheme of its URL."""
    files = SimpleNamespace(
        find=lambda root, detail: {f"{root}/1": {"size": 10 if detail else 0}},
        cat_file=lambda _, start=0, end=10: b"0123456789"[start:end],
    )
    core = SimpleNamespace(url_to_fs=lambda url: (files, url.removeprefix("gs://")))
    monkeypatch.setitem(sys.modules, "fsspec", SimpleNamespace(core=core))
    opened = open_store("gs://bucket/a")
    (item,) = opened.items
    assert (opened.client, item.name) == ("gcsfs", "bucket/a/1")
    assert (opened.whole(item), opened.first(item)) == (10, b"0")


@pytest.mark.parametrize(
    ("store", "client", "said"),
    [
        ("s3://bucket/a", None, "needs boto3, which is not installed"),
        ("s3://bucket/a", "fsspec", "needs fsspec, which is not installed"),
    ],
)
def test_a_missing_library_is_named(
    store: str, client: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    for name in ("boto3", "fsspec"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=said) as caught:
        open_store(store, client)
    assert "pip install" in str(caught.value)
