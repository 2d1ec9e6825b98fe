"""What software reaches of a device's rates in training, with its sources."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Final

from pydantic import Field

from simulator.confidence.calibration import Efficiency
from simulator.files.convert.model_sections import SourcedTable
from simulator.files.document import FileModel, check, read_document
from simulator.files.fitted.kernels import device_shares
from simulator.files.quantity import Choice, FractionField, NumberField, TextField
from simulator.files.shipped import DATA
from simulator.scenario.hardware.gpu import Gpu
from simulator.scenario.precision import Precision
from simulator.scenario.workload.parallelism import Partition

_FILE: Final = DATA / "software.toml"
_ANY: Final = "any"
_WITHOUT_MATRIX_UNITS: Final = frozenset({"Kepler", "Maxwell", "Pascal", "M1"})
_ON_VECTOR_UNITS: Final = (Precision.FP32, Precision.FP64)


class EfficiencyTable(SourcedTable):
    """What a training step reaches that is timed operator by operator."""

    framework: TextField
    """Framework it was fitted to; any: all of them."""
    matrix: FractionField
    """Rate on matrix units over that of a language model's products on the device."""
    vector: FractionField
    """Share of the data sheet's rate without matrix units."""
    memory: NumberField
    """Memory bandwidth over what kernels of language models reach on the device; above 1 where
    fused kernels move less than is counted."""


class HabitTable(SourcedTable):
    """How a framework spreads a model over devices unless it is told otherwise.

    What is left out is as in most frameworks.
    """

    framework: TextField
    """Framework."""
    partition: Annotated[Partition, Choice(Partition)] = Partition.UNIFORM
    """How it deals layers to stages."""
    reduce_scatter: bool = True
    """Whether a replica gets only its part of summed gradients where the optimizer is sharded."""
    overlap_sharded: bool = True
    """Whether it exchanges gradients beside the backward pass where the optimizer is sharded."""
    joined_projections: bool = False
    """Whether one product computes queries, keys and values, and one both halves of a gated MLP."""
    scores_all: bool = False
    """Whether its encoders score all positions in training, not only those that are masked."""
    fuses_attention: bool = False
    """Whether attention is one kernel, whatever the model of the library was trained with."""


class SoftwareFile(FileModel):
    """What software is worth on a device."""

    frameworks: list[TextField] = Field(default_factory=list)
    """Frameworks that nothing was fitted to, which a scenario may name."""
    efficiency: list[EfficiencyTable] = Field(default_factory=list)
    """By framework."""
    habit: list[HabitTable] = Field(default_factory=list)
    """Of frameworks that differ from most."""


@cache
def _shipped() -> SoftwareFile:
    return check(SoftwareFile, read_document(_FILE))


def named_frameworks() -> frozenset[str]:
    """Frameworks that a scenario may name whatever its model; `any` is one of them."""
    shipped = _shipped()
    return frozenset({*shipped.frameworks, *(table.framework for table in shipped.efficiency)})


_USUAL: Final = HabitTable(framework=_ANY, source="most frameworks", date="2026-11-23")


def habit(framework: str) -> HabitTable:
    """How a framework spreads a model over devices unless it is told otherwise.

    Examples
    --------
    >>> habit("nanotron").partition.value, habit("megatron-lm").partition.value
    ('compute', 'uniform')
    """
    name = framework.lower()
    return next((own for own in _shipped().habit if own.framework == name), _USUAL)


def efficiency(gpu: Gpu | None, framework: str, precision: Precision) -> Efficiency:
    """Shares of the datasheet peaks that operators reach in training where no step was measured.

    Those of a language model's kernels on the device, times what the framework's reach of them.

    Parameters
    ----------
    gpu : Gpu or None
        The accelerator; says whether `precision` runs on matrix units.
    framework : str
        Such as ``pytorch``; one that nothing was fitted to gets the fit over all of them.
    precision : Precision
        Number format of the bulk of the arithmetic.

    Returns
    -------
    Efficiency
        `matrix` multiplies the peak rate at the precision that runs, `memory` the peak bandwidth.
    """
    tables = {table.framework: table for table in _shipped().efficiency}
    return efficiency_by(tables.get(framework.lower(), tables[_ANY]), gpu, precision)


def efficiency_by(table: EfficiencyTable, gpu: Gpu | None, precision: Precision) -> Efficiency:
    """The shares of a device's rates that follow from those of a framework's table."""
    device = None if gpu is None else device_shares(gpu, precision)
    if gpu is None or device is None:
        return Efficiency(matrix=table.vector, memory=table.memory, source=table.origin)
    runs_as = gpu.fallback.get(precision, precision)
    vector = gpu.architecture in _WITHOUT_MATRIX_UNITS or runs_as in _ON_VECTOR_UNITS
    return Efficiency(
        matrix=table.vector if vector else table.matrix * device.products,
        throttle=0.0 if vector else device.throttle,
        memory=min(1.0, table.memory * device.memory),
        source=table.origin,
    )
