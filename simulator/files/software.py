"""What software is known to be worth on a device: efficiencies and factors, with their sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from pydantic import Field

from simulator.calibration import Efficiency, Factor
from simulator.files.document import FileModel, check, read_document
from simulator.files.model_sections import SourcedTable
from simulator.files.quantity import FractionField, NumberField, TextField
from simulator.hardware.gpu import Gpu
from simulator.precision import Precision
from simulator.provenance import Source

_FILE: Final = Path(__file__).resolve().parents[1] / "data" / "software.toml"
_ANY: Final = "any"
_WITHOUT_MATRIX_UNITS: Final = frozenset({"Kepler", "Maxwell", "Pascal", "M1"})
_ON_VECTOR_UNITS: Final = (Precision.FP32, Precision.FP64)
_COUNTED: Final = Source(
    reference="counted in the operators of a transformer: no matrix of scores in device memory",
    date="undated",
)


class EfficiencyTable(SourcedTable):
    """Shares of the datasheet peaks that a training step reaches."""

    framework: TextField
    """Framework it was fitted to; any: all of them."""
    matrix: FractionField
    """Share of the rate of matrix units."""
    vector: FractionField
    """Share of the rate without matrix units."""
    memory: FractionField
    """Share of the memory bandwidth."""


class FactorTable(SourcedTable):
    """What a switch multiplies the compute speed by."""

    switch: TextField
    """The switch, as the software section calls it."""
    framework: TextField
    """Framework it was measured with."""
    accelerators: list[TextField]
    """Profiles of the accelerators it was measured on."""
    value: NumberField
    """Above 1: faster."""


class SoftwareFile(FileModel):
    """What software is worth on a device."""

    efficiency: list[EfficiencyTable] = Field(default_factory=list)
    """By framework."""
    factor: list[FactorTable] = Field(default_factory=list)
    """By switch, framework and accelerator."""


@cache
def _shipped() -> SoftwareFile:
    return check(SoftwareFile, read_document(_FILE))


def efficiency(gpu: Gpu | None, framework: str, precision: Precision) -> Efficiency:
    """Shares of the datasheet peaks that training reaches where no step was measured.

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
    table = tables.get(framework.lower(), tables[_ANY])
    runs_as = precision if gpu is None else gpu.fallback.get(precision, precision)
    plain = gpu is None or gpu.architecture in _WITHOUT_MATRIX_UNITS
    vector = plain or runs_as in _ON_VECTOR_UNITS
    return Efficiency(
        matrix=(table.vector if vector else table.matrix) * (1.0 if gpu is None else gpu.reach),
        memory=table.memory,
        source=table.origin,
    )


def factors(
    gpu: Gpu | None,
    framework: str,
    version: str,
    compiled: bool,  # noqa: FBT001 - the switches of the software section, in its order
    fused_attention: bool,  # noqa: FBT001 - likewise
) -> tuple[Factor, ...]:
    """What the switches of the software multiply the compute speed by.

    Parameters
    ----------
    gpu : Gpu or None
        The accelerator; a factor holds only where it was measured.
    framework, version : str
        Such as ``pytorch`` and ``2.5``.
    compiled : bool
        Whether the model is compiled.
    fused_attention : bool
        Whether attention is one kernel.

    Returns
    -------
    tuple of Factor
        One for each switch that is on; 1.0, and says so, where no source covers the accelerator.
    """
    found = []
    if compiled:
        found.append(_stated("compile", gpu, framework, version))
    if fused_attention:
        found.append(Factor(name="fused attention", value=1.0, source=_COUNTED))
    return tuple(found)


def _stated(switch: str, gpu: Gpu | None, framework: str, version: str) -> Factor:
    name = "" if gpu is None else gpu.name.rpartition("/")[2]
    for table in _shipped().factor:
        fits = table.switch == switch and table.framework == framework.lower()
        if fits and name in table.accelerators:
            return Factor(name=switch, value=table.value, source=table.origin)
    software = f"{framework} {version}".strip()
    where = "a machine without accelerator" if gpu is None else gpu.name
    missing = f"no source says what '{switch}' is worth with {software} on {where}"
    return Factor(
        name=switch,
        value=1.0,
        source=Source(reference=missing, date="undated", verified=False),
    )
