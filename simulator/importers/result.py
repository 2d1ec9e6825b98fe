"""What importers return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from simulator.uncertainty.provenance import Source
from simulator.units import Seconds


class Kind(StrEnum):
    """What a fragment is; for profiles, the folder the catalogue looks for them in."""

    STORAGE = "storage"
    LINK = "link"
    NODE = "node"
    GPU = "gpu"
    SCENARIO = "scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A hardware profile, or sections of a scenario, as TOML text that `plan` reads.

    `summary` is what was taken, in lines for people; `warnings` what was left out or is doubtful.
    """

    kind: Kind
    text: str
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run as its log tells it: keys of a scenario, and what was seen, named as in ``--json``.

    `overrides` are ``section.key=value`` as for ``--set``; `measured` holds SI values.
    """

    id: str
    overrides: tuple[str, ...]
    measured: Mapping[str, float]
    source: Source
    labels: Mapping[str, str] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Quantity(StrEnum):
    """What a sample of a device says; the text is what people read."""

    GPU_BUSY = "GPU: a kernel runs"
    GPU_ENGINE = "GPU: compute engine active"
    TENSOR = "GPU: tensor cores active"
    DEVICE_MEMORY_BUSY = "GPU: memory busy"
    DEVICE_MEMORY = "GPU: memory used"
    DEVICE_MEMORY_SHARE = "GPU: share of memory used"
    POWER = "GPU: power"
    TO_DEVICE = "PCIe: to the GPU"
    FROM_DEVICE = "PCIe: from the GPU"
    CPU_BUSY = "CPU: busy"
    HOST_MEMORY_SHARE = "host: share of RAM used"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one quantity on one device, in the order of time.

    `values` is in SI units, shares from 0 to 1; NaN is a missing sample. All series of one device
    that one file holds have the same length: samples at one index were taken together.
    """

    quantity: Quantity
    device: str
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """What was seen of devices while a job ran.

    `interval` is the time between samples where the files say it [s].
    """

    series: tuple[Series, ...]
    interval: Seconds | None = None
    warnings: tuple[str, ...] = ()


def set_rows(runs: Sequence[MeasuredRun]) -> list[dict[str, str]]:
    """Rows of a measurement set, one a run; logs of many runs may bear the same name."""
    again: Counter[str] = Counter()
    return [
        {
            "id": _unique(run.id, again),
            **run.labels,
            **dict(override.split("=", 1) for override in run.overrides),
            **{f"measured.{metric}": repr(value) for metric, value in run.measured.items()},
            "source": f"{run.source.reference}, {run.source.date}",
        }
        for run in runs
    ]


def _unique(name: str, again: Counter[str]) -> str:
    """A row's name, numbered from its second use on."""
    again[name] += 1
    return name if again[name] == 1 else f"{name}~{again[name]}"
