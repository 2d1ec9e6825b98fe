"""The nearest measured relative of a device whose kernels nobody measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from simulator.files.fitted.kernel_figures import RelativeTable, kernel_files, source_of
from simulator.scenario.hardware.gpu import Gpu, Relative

_FOLLOWS: Final = "{note}; kernels as on {device}"


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
