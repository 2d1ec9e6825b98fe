"""From the checked profile of a device to its domain type, figure by figure with sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, TypeVar

from simulator.errors import InputError, Problem
from simulator.reading.document import Document
from simulator.reading.fitted.relatives import among_measured
from simulator.reading.hardware.figures import Figure
from simulator.reading.hardware.sections import (
    CpuFile,
    CurveFigure,
    GpuFile,
    LinkFile,
)
from simulator.reading.tables import FileTable, table_keys
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Cpu
from simulator.schema.hardware.link import Curve, Link, Regime
from simulator.uncertainty.provenance import Source

Value_co = TypeVar("Value_co", covariant=True)
Value = TypeVar("Value")

ROUNDING: Final = 1.001
"""How far a measured rate may exceed the rounded peak."""

Cite: TypeAlias = Callable[[Figure], Source]
"""Looks up what a figure's source key stands for."""


class Holds(Protocol[Value_co]):
    """A figure of some unit."""

    @property
    def value(self) -> Value_co:
        """What it says."""


def amount(figure: Holds[Value] | None) -> Value | None:
    """The value of a figure that may be missing."""
    return None if figure is None else figure.value


def cited(table: FileTable, cite: Cite) -> dict[str, Source]:
    """Sources of a table's figures by field name; ``peak.bf16`` for those in a table of rates."""
    sources: dict[str, Source] = {}
    for key in table_keys(type(table)):
        value = getattr(table, key)
        if isinstance(value, Figure):
            sources[key] = cite(value)
        elif isinstance(value, dict):
            inner = {k: cite(v) for k, v in value.items() if isinstance(v, Figure)}
            sources |= {f"{key}.{k}": source for k, source in inner.items()}
    return sources


def refuse_if(problems: list[Problem]) -> None:
    """Raise an `InputError` of all `problems`, if there are any."""
    if problems:
        raise InputError(tuple(problems))


def to_gpu(name: str, file: GpuFile, document: Document, cite: Cite) -> Gpu:
    """An accelerator from its checked profile.

    Raises
    ------
    InputError
        If it has no rate at all, falls back on a format it has no rate for, or is said to
        achieve more than its peak.
    """
    refuse_if(_gpu_problems(file, document))
    sources = cited(file, cite)
    sources |= {f"peak.{lacks}": sources[f"peak.{as_}"] for lacks, as_ in file.fallback.items()}
    gpu = Gpu(
        name=name,
        maker=file.maker,
        architecture=file.architecture,
        stack=file.stack,
        memory=file.memory.value,
        memory_bandwidth=file.memory_bandwidth.value,
        peak={precision: figure.value for precision, figure in file.peak.items()},
        achievable={precision: figure.value for precision, figure in file.achievable.items()},
        product_share={name: figure.value for name, figure in file.product_share.items()},
        memory_share=amount(file.memory_share),
        fallback=dict(file.fallback),
        achievable_memory_bandwidth=amount(file.achievable_memory_bandwidth),
        host_link=amount(file.host_link),
        peer_link=amount(file.peer_link),
        power=amount(file.power),
        idle_power=amount(file.idle_power),
        multiprocessors=amount(file.multiprocessors),
        unified_memory=file.unified_memory,
        inference_only=file.inference_only,
        desktop=file.desktop,
        note=file.note or "",
        sources=sources,
    )
    return among_measured(gpu)


def _gpu_problems(file: GpuFile, document: Document) -> list[Problem]:
    problems = []
    if not file.peak:
        problems.append(document.problem(("peak",), "is empty", hint="give one rate at least"))
    for lacks, runs_as in file.fallback.items():
        path = ("fallback", str(lacks))
        if lacks in file.peak:
            problems.append(document.problem(path, "is not needed: it has a peak of its own"))
        if runs_as not in file.peak:
            known = ", ".join(file.peak)
            problems.append(document.problem(path, "has no peak", hint=f"those with one: {known}"))
    for precision, best in file.achievable.items():
        path = ("achievable", str(precision))
        peak = file.peak.get(precision)
        if peak is None:
            problems.append(document.problem(path, "has no peak to be held against"))
        elif best.value > ROUNDING * peak.value:
            problems.append(document.problem(path, "is above the peak"))
    return problems


def to_cpu(name: str, file: CpuFile, document: Document, cite: Cite) -> Cpu:
    """A processor socket from its checked profile.

    Raises
    ------
    InputError
        If it has fewer threads than cores.
    """
    if file.threads.value < file.cores.value:
        path = ("threads", "value")
        raise InputError((document.problem(path, "is less than the number of cores"),))
    return Cpu(
        name=name,
        cores=file.cores.value,
        threads=file.threads.value,
        base_clock=file.base_clock.value,
        memory_bandwidth=amount(file.memory_bandwidth),
        memory=amount(file.memory) or "",
        pcie_generation=amount(file.pcie_generation),
        power=amount(file.power),
        note=file.note or "",
        sources=cited(file, cite),
    )


def to_link(name: str, file: LinkFile, document: Document, cite: Cite) -> Link:
    """A link from its checked profile.

    Raises
    ------
    InputError
        If it is said to achieve more than its peak.
    """
    rates = {"achievable": file.achievable, "pageable": file.pageable}
    refuse_if(
        [
            document.problem((key,), "is above the peak", hint="the peak is that of one direction")
            for key, figure in rates.items()
            if figure is not None and figure.value > ROUNDING * file.peak.value
        ]
    )
    return Link(
        name=name,
        kind=file.kind,
        peak=file.peak.value,
        achievable=amount(file.achievable),
        pageable=amount(file.pageable),
        latency=amount(file.latency) or 0.0,
        duplex=file.duplex,
        curves=tuple(_curve(figure, cite) for figure in file.collective),
        note=file.note or "",
        sources=cited(file, cite),
    )


def _curve(figure: CurveFigure, cite: Cite) -> Curve:
    return Curve(
        operation=figure.operation,
        ranks=figure.ranks,
        machines=figure.machines,
        regimes=tuple(Regime(latency=r.latency, bandwidth=r.bandwidth) for r in figure.regimes),
        in_switch=figure.in_switch,
        source=cite(figure),
    )
