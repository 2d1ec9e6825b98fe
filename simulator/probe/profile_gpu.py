"""The profiles of accelerators that were measured: themselves, and their links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator import units
from simulator.probe.gpu import PRECISIONS
from simulator.probe.profile_lines import Writer
from simulator.probe.reading import Reading
from simulator.reading.hardware.profile_text import Line, binary_size, quantity, quote, table
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import PeerTopology
from simulator.schema.hardware.link import Collective, Link, LinkKind
from simulator.schema.precision import Precision

_ROUNDING: Final = 1.001
_STANDS_IN: Final = "measured; stands in for a datasheet"


def gpu_lines(writer: Writer) -> Iterator[Line]:
    """The [gpu] table of the machine."""
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
    """Name of the accelerator's profile: the catalogue's where it is known, else a new one."""
    known = writer.known.gpu
    return f"{writer.name}-gpu" if known is None else known.name.partition("/")[2]


def accelerator(writer: Writer) -> Iterator[tuple[str, str]]:
    """File names and texts of the accelerator's profile and of its links."""
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
    """The link of its peers, if an all-reduce was faster than the link to the host can carry."""
    rate, upload = writer.read("gpu", "all_reduce_bandwidth"), writer.read("gpu", "h2d_pinned")
    if rate is None or upload is None or rate.value <= upload.value:
        return None
    return writer.known.peer


def _rates(writer: Writer) -> dict[Precision, Reading]:
    found = {precision: writer.read("gpu", f"matmul_{precision}") for precision in PRECISIONS}
    return {precision: reading for precision, reading in found.items() if reading is not None}


def _overlay(writer: Writer, known: Gpu) -> str:
    """What was measured, over the catalogue's profile; empty if nothing can be."""
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
    """Whether a rate may stand beside its datasheet peak; a warning if not."""
    if reading.value <= _ROUNDING * peak:
        return True
    shown = units.show(reading.value, reading.unit), units.show(peak, reading.unit)
    writer.warnings.append(f"{reading.key} of {shown[0]} is above the peak of {shown[1]}; left out")
    return False


def _new_gpu(writer: Writer) -> str:
    """An accelerator that the catalogue lacks: what was measured stands in for its datasheet."""
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
                "memory_bandwidth", quantity(memory.value, memory.unit), _STANDS_IN, verified=False
            )
        ),
    ]
    if writer.read("gpu", "h2d_pinned") is not None:
        lines.append(str(writer.line("host_link", quote(f"{writer.name}-host"))))
    peaks = [
        writer.line(str(precision), quantity(r.value, r.unit), _STANDS_IN, verified=False)
        for precision, r in rates.items()
    ]
    return "\n".join([writer.head(_software(writer)), *lines, "", table("peak", peaks)]) + "\n"


def _software(writer: Writer) -> str:
    found = writer.probed.accelerator
    return "" if found is None else f"{found.product}, {found.software}."


def _host_link(writer: Writer, upload: Reading) -> str:
    """The link to the host; its peak is the catalogue's where that can be."""
    known = writer.known.link
    if known is not None and upload.value <= _ROUNDING * known.peak:
        peak = _datasheet(known)
    else:
        measured = quantity(upload.value, upload.unit)
        peak = writer.line("peak", measured, _STANDS_IN, verified=False)
    lines = [peak, *writer.figure("achievable", upload)]
    pageable = writer.read("gpu", "h2d_pageable")
    if pageable is not None and pageable.value <= upload.value:
        lines += writer.figure("pageable", pageable)
    body: list[Line | str] = [f"kind = {quote(str(LinkKind.PCIE))}", "", *lines]
    curve = [] if _peer(writer) is not None else _curve(writer)
    return "\n".join([writer.head(_software(writer)), table("", body), *curve]) + "\n"


def _datasheet(link: Link) -> Line:
    """The peak of a link of the catalogue, with its source."""
    cited = link.sources.get("peak")
    return Line(
        key="peak",
        value=quantity(link.peak, units.BYTE_PER_SECOND),
        source=link.name if cited is None else cited.reference,
        date="undated" if cited is None else cited.date,
        verified=cited is not None and cited.verified,
    )


def _curve(writer: Writer) -> Iterator[str]:
    """The all-reduce that was measured, as a collective of the link."""
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
