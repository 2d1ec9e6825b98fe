"""Files of `data/kernels/`: figures with their bounds and sources, and devices without figures.

A device that was not measured takes the kernels of its nearest measured relative. A device may also
reach less of its memory's rate than another measured architecture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias

from simulator.reading.document import check, read_document
from simulator.reading.shipped import DATA
from simulator.schema.accelerators import Gpu, Outdone, Relative
from simulator.schema.fields import Choice, NumberField, NumberOrZeroField, TextField
from simulator.schema.provenance import Source
from simulator.schema.software import CudaGraphs, GradientSum, Software

_FOLDER: Final = DATA / "kernels"
_SOURCES: Final = "sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    """One fitted figure and its physical bounds."""

    value: NumberOrZeroField
    """What holds."""
    source: TextField
    """Key of what it was fitted to."""
    low: NumberOrZeroField | None = None
    """The least that is physically possible."""
    high: NumberOrZeroField | None = None
    """The most."""
    at_bound: Literal["low", "high"] | None = None
    """Which of the two the fit would have gone beyond."""
    note: TextField | None = None
    """What to know about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantTable:
    """Devices that reach other shares than the rest of their architecture."""

    gpus: list[TextField]
    """Their profiles."""
    products: NumberField
    """Factor of the share of matrix products of linear layers."""
    others: NumberField = 1.0
    """Factor of that of products that are always in 16 bit: scores and head."""
    attention: dict[str, NumberField] = field(default_factory=dict)
    """Factor of the share of attention, by kernel."""
    source: TextField
    """Key of what they were fitted to."""
    low: NumberOrZeroField | None = None
    """The least that is physically possible."""
    high: NumberOrZeroField | None = None
    """The most."""
    note: TextField | None = None
    """What to know about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """Networks over which exchange reaches other shares of the rate."""

    links: list[TextField]
    """Profiles of their links."""
    gradients: NumberField
    """Factor of the share of collectives of data parallelism."""
    sends: NumberField
    """Factor of the share of sends between stages."""
    source: TextField
    """Key of what they were fitted to."""
    low: NumberOrZeroField | None = None
    """The least that is physically possible."""
    high: NumberOrZeroField | None = None
    """The most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeTable:
    """Devices without measurements, and the measured device whose kernels they use."""

    gpus: list[TextField] = field(default_factory=list)
    """Profiles, though others of their architecture were measured."""
    architectures: list[TextField]
    """Architectures."""
    stacks: list[TextField]
    """Software by which devices of an unlisted architecture are programmed."""
    device: TextField
    """Profile of the measured one."""
    architecture: TextField
    """Its architecture."""
    multiprocessors: int
    """How many multiprocessors it has."""
    best: NumberField
    """Share of its peak that its best measured matrix product reached."""
    products: NumberField
    """Share of it that large ones reach in the median."""
    memory: NumberField
    """Share of its memory's bandwidth that products of few rows reach in the median."""
    source: TextField
    """Key of what the choice rests on."""
    note: TextField | None = None
    """What to know about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """A file of figures."""

    kind: Literal["shared", "architecture", "software", "framework", "networks", "relatives"]
    """What they are for."""
    figures: dict[str, FigureTable] = field(default_factory=dict)
    """By name."""
    architectures: list[TextField] = field(default_factory=list)
    """Of accelerators they hold for."""
    variant: list[VariantTable] = field(default_factory=list)
    """Devices apart from the rest."""
    frameworks: list[TextField] = field(default_factory=list)
    """Names of frameworks they hold for."""
    stands_for: list[TextField] = field(default_factory=list)
    """Unfitted frameworks that they are used for, with a wider uncertainty."""
    generic: bool = False
    """Whether they are used for any framework without measurements."""
    compiled: bool | None = None
    """Whether they hold for compiled models; both by default."""
    carried_over: bool = False
    """Whether nothing was fitted to it: its figures are those of another device or framework."""
    attention_kernel: TextField | None = None
    """Fused attention kernel the framework takes."""
    gradient_sum: Annotated[GradientSum, Choice(GradientSum)] = GradientSum.IN_PLACE
    """How it adds up gradients."""
    network: list[NetworkTable] = field(default_factory=list)
    """Networks apart from the rest."""
    relative: list[RelativeTable] = field(default_factory=list)
    """Devices without measurements."""


KernelFiles: TypeAlias = Mapping[str, KernelFile]
"""A set of kernel figures: files by name."""


@cache
def kernel_files() -> KernelFiles:
    """Return the files that ship, by name."""
    paths = sorted(path for path in _FOLDER.glob("*.toml") if path.stem != _SOURCES)
    return {path.stem: check(KernelFile, read_document(path)) for path in paths}


def with_values(values: Mapping[str, float], files: KernelFiles | None = None) -> KernelFiles:
    """Return the files with other values of some figures.

    Parameters
    ----------
    values : mapping of str to float
        By name: FILE.FIGURE, FILE.variant.N.FACTOR or FILE.network.N.FACTOR.
    files : mapping of str to KernelFile, optional
        Those that ship by default.
    """
    found = dict(kernel_files() if files is None else files)
    for name in {one.partition(".")[0] for one in values}:
        own = {key: value for key, value in values.items() if key.split(".")[0] == name}
        found[name] = _changed(found[name], own)
    return found


def _changed(file: KernelFile, values: Mapping[str, float]) -> KernelFile:
    figures = dict(file.figures)
    lists: dict[str, Any] = {"variant": [*file.variant], "network": [*file.network]}
    for name, value in values.items():
        _, figure, *rest = name.split(".")
        if not rest:
            figures[figure] = replace(figures[figure], value=value)
            continue
        number, factor = int(rest[0]), rest[1]
        old = getattr(lists[figure][number], factor)
        new = dict.fromkeys(old, value) if isinstance(old, Mapping) else value
        lists[figure][number] = replace(lists[figure][number], **{factor: new})
    return replace(file, figures=figures, **lists)


@cache
def _sources() -> Mapping[str, Source]:
    document = read_document(_FOLDER / f"{_SOURCES}.toml")
    keys = [key for key in document.data if key != "schema"]
    return {key: check(Source, document, at=(key,)) for key in keys}


def source_of(key: str) -> Source:
    """Return the source with this key."""
    return _sources()[key]


class Figures:
    """Figures by name; those of later files win."""

    def __init__(self, *files: KernelFile) -> None:
        self._tables = {name: table for file in files for name, table in file.figures.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def value(self, name: str) -> float:
        """Return the value of a figure."""
        return float(self._tables[name].value)

    def first(self, *names: str) -> float:
        """Return the value of the first of them that there is."""
        return self.value(next(name for name in names if name in self))

    def at_bound(self) -> Iterator[str]:
        """Return names of those that the fit would have moved beyond what is possible."""
        return (name for name, table in self._tables.items() if table.at_bound)

    def source(self, name: str) -> Source:
        """Return the source of a figure."""
        return _sources()[self._tables[name].source]

    def sources(self) -> dict[str, Source]:
        """Return the source of each figure."""
        return {name: _sources()[table.source] for name, table in self._tables.items()}


def launch_factor(found: Figures, software: Software) -> float:
    """Return the launch time of a software era over that of the oldest."""
    factor = found.value("launch")
    if software.cuda_graphs is not CudaGraphs.NONE:
        factor *= found.value(f"graphs_{software.cuda_graphs}")
    return factor * (found.value("launch_blocking") if software.blocking_launches else 1.0)


_FOLLOWS: Final = "{note}; kernels as on {device}"


def among_measured(gpu: Gpu) -> Gpu:
    """Return the accelerator with its relative and the architecture that outdoes it."""
    known = with_relative(gpu)
    return replace(known, outdone=_outdone(known))


def _outdone(gpu: Gpu) -> Outdone | None:
    """Return the architecture with the largest measured share of bandwidth, if another one."""
    own = gpu.architecture if gpu.relative is None else gpu.relative.architecture
    reached = {a: (file, _of_bandwidth(file)) for file in _measured() for a in file.architectures}
    if own not in reached:
        return None
    best = max(reached, key=lambda architecture: reached[architecture][1])
    ratio = reached[own][1] * gpu.streaming / reached[best][1]
    source = source_of(reached[best][0].figures[_MEMORY].source)
    return Outdone(architecture=best, ratio=ratio, source=source) if ratio < 1.0 else None


_MEMORY: Final = "memory"
"""The figure of a share of the memory's bandwidth."""


def _of_bandwidth(file: KernelFile) -> float:
    return Figures(file).value(_MEMORY)


@cache
def _measured() -> tuple[KernelFile, ...]:
    own = [file for file in kernel_files().values() if file.kind == "architecture"]
    return tuple(f for f in own if source_of(f.figures[_MEMORY].source).verified)


def with_relative(gpu: Gpu) -> Gpu:
    """Return the accelerator with its measured relative, if its own kernels were not measured.

    Where its profile states no multiprocessors it has those of that device, or of the measured
    ones of its architecture.
    """
    table = _table_of(gpu.name, gpu.architecture, gpu.stack)
    if table is None:
        return gpu
    source = replace(
        source_of(table.source),
        reference=_FOLLOWS.format(note=table.note or "no row tells", device=table.device),
    )
    relative = Relative(
        device=table.device,
        architecture=table.architecture,
        best=table.best,
        products=table.products,
        memory=table.memory,
        source=source,
    )
    stated = gpu.multiprocessors is not None
    sources = gpu.sources if stated else {**gpu.sources, "multiprocessors": source}
    return replace(
        gpu,
        relative=relative,
        multiprocessors=gpu.multiprocessors or table.multiprocessors,
        sources=sources,
    )


@cache
def _table_of(name: str, architecture: str, stack: str) -> RelativeTable | None:
    """Return the table that holds for a device.

    By its profile, its architecture, else its software.
    """
    files = kernel_files().values()
    tables = [table for file in files for table in file.relative]
    named = next((table for table in tables if name in table.gpus), None)
    if named is not None:
        return named
    if any(architecture in file.architectures for file in files):
        return None
    by_architecture = (table for table in tables if architecture in table.architectures)
    by_stack = (table for table in tables if stack in table.stacks)
    return next(by_architecture, next(by_stack, None))
