"""Profiles of accelerators, processors, links and stores, with checks; arithmetic of processors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

from simulator.errors import InputError, Problem
from simulator.reading.document import Document, check, read_document
from simulator.reading.fitted.kernel_files import among_measured
from simulator.reading.shipped import DATA
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.fields import NumberField, PositiveShareField, Profile, TextField
from simulator.schema.machines import Cpu, Link, VectorUnits
from simulator.schema.provenance import Assumption, Source
from simulator.schema.storage import Storage, StoreClient

_PATH: Final = DATA / "processors.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTable:
    """Arithmetic rate of a group of processors."""

    name: TextField
    """Text that their names contain."""
    flop_per_cycle: NumberField
    """Peak of a core in fp32."""
    note: TextField
    """Reason for the value."""
    share: PositiveShareField
    """Fraction of the peak at the base clock that a tuned library reaches."""
    source: TextField
    """Source of the values."""
    date: TextField
    """Date of the source."""
    verified: bool = True
    """Whether it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTable:
    """Processors whose cores have matrix units."""

    names: list[TextField]
    """Texts that their names contain."""
    flop_per_cycle: NumberField
    """Peak of a core in 16 bit."""
    note: TextField
    """Reason for the value."""
    source: TextField
    """Source of the values."""
    date: TextField
    """Date of the source."""
    verified: bool = True
    """Whether it is from the source itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorFile:
    """The file of arithmetic rates of processors."""

    memory_share: PositiveShareField
    """Fraction of the memory bandwidth that is reached."""
    memory_source: TextField
    """Source of that fraction, which was not measured."""
    memory_date: TextField
    """Date of the source."""
    core: list[CoreTable]
    """Groups of processors; the first with a matching name applies."""
    matrix: list[MatrixTable]
    """Groups of processors with matrix units; all others have none."""


@cache
def _processors() -> ProcessorFile:
    return check(ProcessorFile, read_document(_PATH))


def share_note(units: VectorUnits) -> Assumption:
    """Return the assumption about compute on cores."""
    what = "share of their peak at the base clock that cores reach"
    return Assumption(what=what, value=f"{units.share:g}", source=units.source)


def core_notes(units: VectorUnits) -> Iterator[Assumption]:
    """Yield assumptions about a forward pass on cores: fractions of peak and bandwidth."""
    yield share_note(units)
    what = "share of the memory's rate that cores reach"
    yield Assumption(what=what, value=f"{units.memory_share:g}", source=units.memory_source)


def vector_units_of(model: str) -> VectorUnits | None:
    """Return the arithmetic rates of a processor's cores; None for an unknown kind.

    Parameters
    ----------
    model : str
        Name of its profile.
    """
    file = _processors()
    core = next((one for one in file.core if one.name in model), None)
    if core is None:
        return None
    matrix = next((one for one in file.matrix if any(name in model for name in one.names)), None)
    said = file.memory_source
    return VectorUnits(
        flop_per_cycle=core.flop_per_cycle,
        share=core.share,
        memory_share=file.memory_share,
        source=Source(reference=core.source, date=core.date, verified=core.verified),
        memory_source=Source(reference=said, date=file.memory_date, verified=False),
        matrix_per_cycle=None if matrix is None else matrix.flop_per_cycle,
    )


ROUNDING: Final = 1.001
"""Largest ratio of a measured rate to the rounded peak."""

Cite: TypeAlias = Callable[[Source], Source]
"""A function that looks up the reference for a key of a sources.toml."""
AnyProfile = TypeVar("AnyProfile", bound=Profile)


def read_profile(kind: type[AnyProfile], name: str, document: Document, cite: Cite) -> AnyProfile:
    """Read the profile of a device, with its name and the sources of its figures.

    Raises
    ------
    InputError
        With all mistakes of its keys.
    """
    profile = check(kind, document)
    sources = {key: cite(source) for key, source in profile.sources.items()}
    return replace(profile, name=name, sources=sources)


def refuse_if(problems: list[Problem]) -> None:
    """Raise an `InputError` of all `problems`, if there are any."""
    if problems:
        raise InputError(tuple(problems))


def to_gpu(name: str, document: Document, cite: Cite) -> Gpu:
    """Read the profile of an accelerator.

    Raises
    ------
    InputError
        If it has no rate at all, falls back on a format it has no rate for, or is said to
        achieve more than its peak.
    """
    gpu = read_profile(Gpu, name, document, cite)
    refuse_if(list(_gpu_problems(gpu, document)))
    lent = {f"peak.{lacks}": gpu.sources[f"peak.{as_}"] for lacks, as_ in gpu.fallback.items()}
    return among_measured(replace(gpu, sources={**gpu.sources, **lent}))


def _gpu_problems(gpu: Gpu, document: Document) -> Iterator[Problem]:
    if not gpu.peak:
        yield document.problem(("peak",), "is empty", hint="give one rate at least")
    for lacks, runs_as in gpu.fallback.items():
        path = ("fallback", str(lacks))
        if lacks in gpu.peak:
            yield document.problem(path, "is not needed: it has a peak of its own")
        if runs_as not in gpu.peak:
            known = ", ".join(gpu.peak)
            yield document.problem(path, "has no peak", hint=f"those with one: {known}")
    for precision, best in gpu.achievable.items():
        path = ("achievable", str(precision))
        peak = gpu.peak.get(precision)
        if peak is None:
            yield document.problem(path, "has no peak to be held against")
        elif best > ROUNDING * peak:
            yield document.problem(path, "is above the peak")


def to_cpu(name: str, document: Document, cite: Cite) -> Cpu:
    """Read the profile of a processor socket.

    Raises
    ------
    InputError
        If it has fewer threads than cores.
    """
    cpu = read_profile(Cpu, name, document, cite)
    if cpu.threads < cpu.cores:
        path = ("threads", "value")
        raise InputError((document.problem(path, "is less than the number of cores"),))
    return cpu


def to_link(name: str, document: Document, cite: Cite) -> Link:
    """Read the profile of a link.

    Raises
    ------
    InputError
        If it is said to achieve more than its peak.
    """
    link = read_profile(Link, name, document, cite)
    rates = {"achievable": link.achievable, "pageable": link.pageable}
    refuse_if(
        [
            document.problem((key,), "is above the peak", hint="the peak is that of one direction")
            for key, rate in rates.items()
            if rate is not None and rate > ROUNDING * link.peak
        ]
    )
    curves = (replace(each, source=cite(each.cited).reference) for each in link.collective)
    return replace(link, collective=tuple(curves))


def to_client(name: str, document: Document, cite: Cite) -> StoreClient:
    """Read the profile of a client of object stores."""
    return read_profile(StoreClient, name, document, cite)


def to_storage(name: str, document: Document, cite: Cite) -> Storage:
    """Read the profile of a store; a missing read bandwidth is the measured one.

    Raises
    ------
    InputError
        If it has no read rate at all, is said to achieve more than its datasheet, or has tiers of
        prices out of order.
    """
    store = read_profile(Storage, name, document, cite)
    measured = store.achievable_read_bandwidth
    rate = store.read_bandwidth or measured
    if rate is None:
        hint = "or achievable_read_bandwidth"
        raise InputError((document.problem(("read_bandwidth",), "is missing", hint=hint),))
    if measured is not None and measured > ROUNDING * rate:
        key = "achievable_read_bandwidth"
        raise InputError((document.problem((key,), "is above read_bandwidth"),))
    tiers = () if store.charges is None else store.charges.internet
    ends = [math.inf if tier.to is None else tier.to for tier in tiers]
    if any(after <= before for before, after in pairwise(ends)):
        problem = document.problem(("charges", "internet"), "is not in the order of its amounts")
        raise InputError((problem,))
    sources = dict(store.sources)
    for number, tier in enumerate(tiers, start=1):
        sources[f"charges.internet.{number}"] = cite(tier.cited)
    if not store.read_bandwidth:
        sources["read_bandwidth"] = sources["achievable_read_bandwidth"]
    return replace(store, read_bandwidth=rate, sources=sources)
