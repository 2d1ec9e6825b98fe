"""Files of `data/kernels/`: fitted figures with their bounds and sources.

A device that was not measured uses the kernels of its most similar measured device (its relative).
A device may also reach a smaller fraction of its memory bandwidth than another measured
architecture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias

from simulator.reading.document import check, read_document
from simulator.reading.shipped import DATA
from simulator.records import dataclass
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
    """Fitted value."""
    source: TextField
    """Key of the source with the runs it was fitted to."""
    low: NumberOrZeroField | None = None
    """Lower physical bound."""
    high: NumberOrZeroField | None = None
    """Upper physical bound."""
    at_bound: Literal["low", "high"] | None = None
    """The bound that the fit would have crossed."""
    note: TextField | None = None
    """Remarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantTable:
    """Devices that differ from the rest of their architecture."""

    gpus: list[TextField]
    """Profiles of the devices."""
    products: NumberField
    """Factor on the efficiency of matrix products of linear layers."""
    others: NumberField = 1.0
    """Factor on the efficiency of products that are always in 16 bit: attention scores and head."""
    attention: dict[str, NumberField] = field(default_factory=dict)
    """Factor on the efficiency of attention, by kernel."""
    source: TextField
    """Key of the source with the runs they were fitted to."""
    low: NumberOrZeroField | None = None
    """Lower physical bound."""
    high: NumberOrZeroField | None = None
    """Upper physical bound."""
    note: TextField | None = None
    """Remarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """Networks with another efficiency of collectives and sends."""

    links: list[TextField]
    """Profiles of the network links."""
    gradients: NumberField
    """Factor on the efficiency of data-parallel collectives."""
    sends: NumberField
    """Factor on the efficiency of sends between stages."""
    source: TextField
    """Key of the source with the runs they were fitted to."""
    low: NumberOrZeroField | None = None
    """Lower physical bound."""
    high: NumberOrZeroField | None = None
    """Upper physical bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeTable:
    """Devices without measurements, and the measured device whose kernels they use."""

    gpus: list[TextField] = field(default_factory=list)
    """Profiles of devices, even if others of their architecture were measured."""
    architectures: list[TextField]
    """Architectures of the devices."""
    stacks: list[TextField]
    """Software stacks of devices whose architecture is in no table."""
    device: TextField
    """Profile of the measured device."""
    architecture: TextField
    """Architecture of the measured device."""
    multiprocessors: int
    """Number of multiprocessors of the measured device."""
    best: NumberField
    """Fraction of its peak that its fastest measured matrix product reached."""
    products: NumberField
    """Median fraction of its peak over large matrix products."""
    memory: NumberField
    """Median fraction of its memory bandwidth over products of few rows."""
    source: TextField
    """Key of the source of this choice."""
    note: TextField | None = None
    """Remarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """A file of fitted figures."""

    kind: Literal["shared", "architecture", "software", "framework", "networks", "relatives"]
    """Kind of the file."""
    figures: dict[str, FigureTable] = field(default_factory=dict)
    """Figures by name."""
    architectures: list[TextField] = field(default_factory=list)
    """Architectures of the accelerators to which they apply."""
    variant: list[VariantTable] = field(default_factory=list)
    """Devices that differ from the rest of their architecture."""
    frameworks: list[TextField] = field(default_factory=list)
    """Frameworks to which they apply."""
    stands_for: list[TextField] = field(default_factory=list)
    """Other frameworks for which they are used, with a wider uncertainty."""
    generic: bool = False
    """Whether they are used for any framework without measurements."""
    compiled: bool | None = None
    """Whether they are for compiled models; None: for both."""
    carried_over: bool = False
    """Whether nothing was fitted to it, and its figures are those of another device or
    framework."""
    attention_kernel: TextField | None = None
    """Fused attention kernel of the framework."""
    gradient_sum: Annotated[GradientSum, Choice(GradientSum)] = GradientSum.IN_PLACE
    """Gradient accumulation of the framework."""
    network: list[NetworkTable] = field(default_factory=list)
    """Networks that differ from the rest."""
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
        Files to change; by default those that ship.
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
    """Return the source with the key `key`."""
    return _sources()[key]


class Figures:
    """Figures of several files by name; later files take precedence."""

    def __init__(self, *files: KernelFile) -> None:
        self._tables = {name: table for file in files for name, table in file.figures.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def value(self, name: str) -> float:
        """Return the value of a figure."""
        return float(self._tables[name].value)

    def first(self, *names: str) -> float:
        """Return the value of the first figure of `names` that exists."""
        return self.value(next(name for name in names if name in self))

    def at_bound(self) -> Iterator[str]:
        """Yield the names of figures at a physical bound, which the fit would have crossed."""
        return (name for name, table in self._tables.items() if table.at_bound)

    def source(self, name: str) -> Source:
        """Return the source of a figure."""
        return _sources()[self._tables[name].source]

    def sources(self) -> dict[str, Source]:
        """Return the source of each figure."""
        return {name: _sources()[table.source] for name, table in self._tables.items()}


def launch_factor(found: Figures, software: Software) -> float:
    """Return the factor of the host's launch time for this software over the oldest software."""
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
    """Return the architecture with the best measured memory efficiency; None if it is its own."""
    own = gpu.architecture if gpu.relative is None else gpu.relative.architecture
    reached = {a: (file, _of_bandwidth(file)) for file in _measured() for a in file.architectures}
    if own not in reached:
        return None
    best = max(reached, key=lambda architecture: reached[architecture][1])
    ratio = reached[own][1] * gpu.streaming / reached[best][1]
    source = source_of(reached[best][0].figures[_MEMORY].source)
    return Outdone(architecture=best, ratio=ratio, source=source) if ratio < 1.0 else None


_MEMORY: Final = "memory"
"""Name of the figure for the fraction of the memory bandwidth."""


def _of_bandwidth(file: KernelFile) -> float:
    return Figures(file).value(_MEMORY)


@cache
def _measured() -> tuple[KernelFile, ...]:
    own = [file for file in kernel_files().values() if file.kind == "architecture"]
    return tuple(f for f in own if source_of(f.figures[_MEMORY].source).verified)


def with_relative(gpu: Gpu) -> Gpu:
    """Return the accelerator with its measured relative, if its own kernels were not measured.

    If its profile states no number of multiprocessors, it is that of the relative, or of measured
    devices of its architecture.
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
    """Return the table for a device: by its profile, its architecture or its software stack."""
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
