"""Profiles from measurements: TOML texts of a node, its drive, accelerators and links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from simulator import units
from simulator.probe.gpu import PRECISIONS
from simulator.probe.reading import SHARE, Reading
from simulator.probe.run import Probed
from simulator.reading.hardware.profile_text import (
    Line,
    binary_size,
    comment,
    quantity,
    quote,
    table,
)
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.machines import Collective, Link, LinkKind, PeerTopology
from simulator.schema.storage import Scope

MARK: Final = "Written by plan probe"
"""First words of profiles from a probe; only such files are replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Catalogue profiles of the accelerator and its links; fields are None without a profile."""

    gpu: Gpu | None = None
    """Profile of the accelerator."""
    link: Link | None = None
    """Profile of its link to the host."""
    peer: Link | None = None
    """Profile of its link to its peers."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Formatter of profile lines with this probe as the source; collects warnings."""

    probed: Probed
    name: str
    known: Known
    warnings: list[str] = field(default_factory=list)

    def line(self, key: str, value: str, note: str = "", *, verified: bool = True) -> Line:
        """Return a line with a measured or observed value."""
        return Line(
            key=key,
            value=value,
            source=self.probed.source,
            date=self.probed.date,
            note=note,
            verified=verified,
        )

    def figure(self, key: str, reading: Reading | None) -> Iterator[Line]:
        """Yield the line of a reading; no line if it is None."""
        if reading is not None:
            share = reading.unit is SHARE
            value = f"{reading.value:.4g}" if share else quantity(reading.value, reading.unit)
            yield self.line(key, value, reading.note)

    def read(self, device: str, key: str) -> Reading | None:
        """Return the reading `key` of `device`; None if it was not measured."""
        return self.probed.reading(device, key)

    def head(self, *more: str) -> str:
        """Return the head of a profile: comments, with lines `more`, and the schema version."""
        lines = [f"{MARK} on {self.probed.date}; figures hold for that machine.", *more]
        return f"{comment(chr(10).join(lines))}\nschema = 1"


_ROUNDING: Final = 1.001
_MEASURED: Final = "measured; replaces a datasheet"


def gpu_lines(writer: Writer) -> Iterator[Line]:
    """Yield the lines of the node's ``[gpu]`` table."""
    found = writer.probed.accelerator
    if found is not None:
        yield writer.line("model", quote(_gpu_name(writer)), found.product)
        yield writer.line("count", str(found.count))
        if writer.read("gpu", "h2d_pinned") is not None:
            yield writer.line("host_link", quote(f"{writer.name}-host"))
        if _peer(writer) is not None:
            note = "its all-reduce is faster than the link to the host"
            switched = quote(str(PeerTopology.SWITCHED))
            yield writer.line("peer_link", quote(f"{writer.name}-peer"), note)
            yield writer.line("peer_topology", switched, note, verified=False)


def _gpu_name(writer: Writer) -> str:
    known = writer.known.gpu
    return f"{writer.name}-gpu" if known is None else known.name.partition("/")[2]


def accelerator(writer: Writer) -> Iterator[tuple[str, str]]:
    """Yield file names and texts of the profiles of the accelerator and its links."""
    text = _new_gpu(writer) if writer.known.gpu is None else _overlay(writer, writer.known.gpu)
    if text:
        yield f"gpu/{_gpu_name(writer)}.toml", text
    upload = writer.read("gpu", "h2d_pinned")
    if upload is not None:
        yield f"link/{writer.name}-host.toml", _host_link(writer, upload)
    peer = _peer(writer)
    if peer is not None:
        body: list[Line | str] = [f"kind = {quote(str(peer.kind))}", "", _datasheet(peer)]
        parts = [writer.head(_software(writer)), table("", body), *_curve(writer)]
        yield f"link/{writer.name}-peer.toml", "\n".join(parts) + "\n"


def _peer(writer: Writer) -> Link | None:
    """Return the catalogue's peer link if the all-reduce was faster than the host link."""
    rate, upload = writer.read("gpu", "all_reduce_bandwidth"), writer.read("gpu", "h2d_pinned")
    if rate is None or upload is None or rate.value <= upload.value:
        return None
    return writer.known.peer


def _rates(writer: Writer) -> dict[Precision, Reading]:
    found = {precision: writer.read("gpu", f"matmul_{precision}") for precision in PRECISIONS}
    return {precision: reading for precision, reading in found.items() if reading is not None}


def _overlay(writer: Writer, known: Gpu) -> str:
    """Return an overlay of the catalogue's profile with measured rates; empty if there are none."""
    rates = [
        line
        for precision, reading in _rates(writer).items()
        if precision in known.peak and _below(writer, reading, known.peak[precision])
        for line in writer.figure(str(precision), reading)
    ]
    memory = writer.read("gpu", "memory_bandwidth")
    top: list[Line] = []
    if memory is not None and _below(writer, memory, known.memory_bandwidth):
        top = list(writer.figure("achievable_memory_bandwidth", memory))
    if not top and not rates:
        return ""
    parts = [writer.head(_software(writer)), "overlay = true", *map(str, top)]
    return "\n".join([*parts, *(["", table("achievable", rates)] if rates else [])]) + "\n"


def _below(writer: Writer, reading: Reading, peak: float) -> bool:
    """Return True if a rate is plausible for its datasheet peak; else add a warning."""
    if reading.value <= _ROUNDING * peak:
        return True
    shown = units.show(reading.value, reading.unit), units.show(peak, reading.unit)
    writer.warnings.append(f"{reading.key} of {shown[0]} is above the peak of {shown[1]}; left out")
    return False


def _new_gpu(writer: Writer) -> str:
    """Return the profile of an accelerator that is not in the catalogue; empty if data is missing.

    Measured rates are used as its peaks.
    """
    found, memory = writer.probed.accelerator, writer.read("gpu", "memory_bandwidth")
    rates = _rates(writer)
    if found is None or memory is None or not rates:
        writer.warnings.append("too little was measured of the GPU for a profile")
        return ""
    writer.warnings.append(f"no profile is called {found.product}: measured rates are its peaks")
    lines = [
        f"maker = {quote(found.product.partition(' ')[0])}",
        f"architecture = {quote(found.product)}",
        'stack = "cuda"',
        str(writer.line("memory", quote(binary_size(found.memory)))),
        str(
            writer.line(
                "memory_bandwidth", quantity(memory.value, memory.unit), _MEASURED, verified=False
            )
        ),
    ]
    if writer.read("gpu", "h2d_pinned") is not None:
        lines.append(str(writer.line("host_link", quote(f"{writer.name}-host"))))
    peaks = [
        writer.line(str(precision), quantity(r.value, r.unit), _MEASURED, verified=False)
        for precision, r in rates.items()
    ]
    return "\n".join([writer.head(_software(writer)), *lines, "", table("peak", peaks)]) + "\n"


def _software(writer: Writer) -> str:
    found = writer.probed.accelerator
    return "" if found is None else f"{found.product}, {found.software}."


def _host_link(writer: Writer, upload: Reading) -> str:
    """Return the profile of the host link; its peak is the catalogue's unless measured higher."""
    known = writer.known.link
    if known is not None and upload.value <= _ROUNDING * known.peak:
        peak = _datasheet(known)
    else:
        measured = quantity(upload.value, upload.unit)
        peak = writer.line("peak", measured, _MEASURED, verified=False)
    lines = [peak, *writer.figure("achievable", upload)]
    pageable = writer.read("gpu", "h2d_pageable")
    if pageable is not None and pageable.value <= upload.value:
        lines += writer.figure("pageable", pageable)
    body: list[Line | str] = [f"kind = {quote(str(LinkKind.PCIE))}", "", *lines]
    curve = [] if _peer(writer) is not None else _curve(writer)
    return "\n".join([writer.head(_software(writer)), table("", body), *curve]) + "\n"


def _datasheet(link: Link) -> Line:
    """Return the line of the peak of a catalogue link, with its source."""
    cited = link.sources.get("peak")
    return Line(
        key="peak",
        value=quantity(link.peak, units.BYTE_PER_SECOND),
        source=link.name if cited is None else cited.reference,
        date="undated" if cited is None else cited.date,
        verified=cited is not None and cited.verified,
    )


def _curve(writer: Writer) -> Iterator[str]:
    """Yield the ``[[collective]]`` table of the measured all-reduce, for a link profile."""
    rate, latency = (writer.read("gpu", f"all_reduce_{key}") for key in ("bandwidth", "latency"))
    found = writer.probed.accelerator
    if rate is None or latency is None or found is None:
        return
    regime = [
        f"latency = {quantity(latency.value, latency.unit)}",
        f"bandwidth = {quantity(rate.value, rate.unit)}",
    ]
    yield "\n".join(
        [
            "",
            "[[collective]]",
            f"operation = {quote(str(Collective.ALL_REDUCE))}",
            f"ranks = {found.count}",
            "machines = 1",
            f"regimes = [{{ {', '.join(regime)} }}]",
            f"source = {quote(writer.probed.source)}",
            f"date = {quote(writer.probed.date)}",
            f"note = {quote(rate.note)}",
        ]
    )


_DISK: Final = {
    "achievable_read_bandwidth": "read_bandwidth",
    "write_bandwidth": "write_bandwidth",
    "read_operations": "read_operations",
    "read_latency": "read_latency",
    "open_latency": "open_latency",
}
"""Readings by key of a storage profile."""


def profiles(
    probed: Probed, name: str, known: Known | None = None
) -> tuple[dict[str, str], list[str]]:
    """Convert measurements to profiles.

    Parameters
    ----------
    probed : Probed
        The measurements.
    name : str
        Name of the machine and its drive.
    known : Known, optional
        Catalogue profiles of the accelerator and its links.

    Returns
    -------
    tuple of dict and list
        Texts by file name relative to a profile directory, parts before the node, and warnings:
        ``storage/<name>.toml`` if the disk was measured; ``gpu/`` and ``link/`` if an accelerator
        was; ``node/<name>.toml`` unless only the disk was.
    """
    writer = Writer(probed, name, known or Known())
    texts: dict[str, str] = {}
    if writer.read("disk", "read_bandwidth") is not None:
        texts[f"storage/{name}.toml"] = _storage(writer)
    if probed.accelerator is not None:
        texts |= dict(accelerator(writer))
    if any(device != "disk" for device in probed.wanted.devices):
        texts[f"node/{name}.toml"] = _node(writer, texts)
    return texts, writer.warnings


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
    """Convert any text to a name for files and profiles.

    Examples
    --------
    >>> slug("My Host.local"), slug("-")
    ('my-host.local', 'this-machine')
    """
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in text.lower())
    return kept.strip("-._") or "this-machine"
