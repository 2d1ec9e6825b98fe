"""A device among the measured ones: its nearest relative, and who reaches more than it does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from simulator.reading.fitted.kernel_figures import (
    Figures,
    KernelFile,
    RelativeTable,
    kernel_files,
    source_of,
)
from simulator.schema.hardware.gpu import Gpu, Outdone, Relative

_FOLLOWS: Final = "{note}; kernels as on {device}"


def among_measured(gpu: Gpu) -> Gpu:
    """The accelerator with its relative, and with the architecture that outdoes its kernels."""
    known = with_relative(gpu)
    return replace(known, outdone=_outdone(known))


def _outdone(gpu: Gpu) -> Outdone | None:
    """Who reaches the largest share of its memory's bandwidth by measured rows, if not its own."""
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
    """Files of architectures whose share of the memory's bandwidth rests on measured rows."""
    own = [file for file in kernel_files().values() if file.kind == "architecture"]
    return tuple(f for f in own if source_of(f.figures[_MEMORY].source).verified)


def with_relative(gpu: Gpu) -> Gpu:
    """The accelerator with the device whose kernels stand in for its own, if nobody measured those.

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
    """The table that holds for a device: by its profile, its architecture, else its software."""
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
