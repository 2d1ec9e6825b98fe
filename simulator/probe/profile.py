"""From measurements to profiles: the TOML texts of a node, its drive, accelerator and link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simulator import units
from simulator.probe.profile_gpu import accelerator, gpu_lines
from simulator.probe.profile_lines import Known, Writer
from simulator.probe.reading import Reading
from simulator.probe.run import Probed
from simulator.reading.hardware.profile_text import Line, quantity, quote, table
from simulator.schema.hardware.storage import Scope

_DISK: Final = {
    "achievable_read_bandwidth": "read_bandwidth",
    "write_bandwidth": "write_bandwidth",
    "read_operations": "read_operations",
    "read_latency": "read_latency",
    "open_latency": "open_latency",
}
"""Key of a storage profile: reading it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """Texts by file name below a profile directory; a machine comes after its parts."""

    texts: dict[str, str]
    warnings: tuple[str, ...] = ()


def profiles(probed: Probed, name: str, known: Known | None = None) -> Profiles:
    """The profiles that say what was measured.

    Parameters
    ----------
    probed : Probed
        The measurements.
    name : str
        Name of machine and drive.
    known : Known, optional
        Profiles of the accelerator and its link, where the catalogue has them.

    Returns
    -------
    Profiles
        ``storage/<name>.toml`` if the disk was measured; ``gpu/`` and ``link/`` if an accelerator
        was; ``node/<name>.toml`` unless only the disk was.
    """
    writer = Writer(probed, name, known or Known())
    texts = {}
    if writer.read("disk", "read_bandwidth") is not None:
        texts[f"storage/{name}.toml"] = _storage(writer)
    if probed.accelerator is not None:
        texts |= dict(accelerator(writer))
    if any(device != "disk" for device in probed.wanted.devices):
        texts[f"node/{name}.toml"] = _node(writer, texts)
    return Profiles(texts=texts, warnings=tuple(writer.warnings))


def _storage(writer: Writer) -> str:
    place = writer.probed.wanted.place
    scope = Scope.NETWORK if place.networked else Scope.LOCAL
    lines = [
        line
        for key, reading in _DISK.items()
        for line in writer.figure(key, writer.read("disk", reading))
    ]
    cached = writer.read("disk", "page_cache_bandwidth")
    shown = "" if cached is None else units.show(cached.value, units.BYTE_PER_SECOND)
    note = f"Seen as {place.file_system or 'a folder'}; from the page cache it reads {shown}."
    body: list[Line | str] = [f"scope = {quote(str(scope))}", f"note = {quote(note)}", "", *lines]
    return f"{writer.head()}\n{table('', body)}\n"


def _node(writer: Writer, parts: dict[str, str]) -> str:
    here, probed = writer.probed.machine, writer.probed
    limits = "; ".join(here.limits)
    sections = [
        writer.head(*_decode_hint(writer)),
        f"note = {quote(here.cpu)}",
        f"virtual = {str(here.virtual).lower()}",
        "",
        str(writer.line("ram", quantity(here.ram, units.BYTE), limits)),
        *map(str, writer.figure("memory_bandwidth", _copying(writer))),
        "",
        table("cpu", _cpu(writer)),
    ]
    if probed.accelerator is not None:
        sections += ["", table("gpu", gpu_lines(writer))]
    if f"storage/{writer.name}.toml" in parts and not probed.wanted.place.networked:
        drives = [writer.line("model", quote(writer.name)), writer.line("count", "1")]
        sections += ["", table("drives", drives)]
    return "\n".join(sections) + "\n"


def _copying(writer: Writer) -> Reading | None:
    """The faster copy: with all cores, or with one where others kept the cores busy."""
    both = [writer.read("memory", f"copy_{cores}") for cores in ("all_cores", "one_core")]
    taken = [reading for reading in both if reading is not None]
    return max(taken, key=lambda reading: reading.value, default=None)


def _decode_hint(writer: Writer) -> Iterator[str]:
    decode = writer.read("cpu", "decode_time")
    if decode is not None:
        shown = units.show(decode.value, units.SECOND)
        yield f"Decoding takes {shown} of CPU time on it ({decode.note})."


def _cpu(writer: Writer) -> Iterator[Line]:
    here = writer.probed.machine
    yield writer.line("threads", str(here.threads))
    yield writer.line("cores", str(here.cores))
    yield writer.line("sockets", str(here.sockets))
    for key in ("smt_worth", "contention"):
        yield from writer.figure(key, writer.read("cpu", key))


def slug(text: str) -> str:
    """A name for files and profiles from any text.

    Examples
    --------
    >>> slug("My Host.local"), slug("-")
    ('my-host.local', 'this-machine')
    """
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in text.lower())
    return kept.strip("-._") or "this-machine"
