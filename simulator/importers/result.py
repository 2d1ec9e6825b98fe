"""What importers return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from simulator.provenance import Source
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one quantity on one device, in the order of time.

    `values` is finite; missing samples are left out and counted in `missing`.
    """

    name: str
    device: str
    values: NDArray[np.float64]
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """What was seen of devices while a job ran.

    `busy` holds shares of the whole (0 to 1) by resource name, `memory` device memory [B],
    `power` [W], `rates` bandwidths by resource name [B/s]; one series for each device.
    `interval` is the time between samples where the file says it.
    """

    busy: tuple[Series, ...] = ()
    memory: tuple[Series, ...] = ()
    power: tuple[Series, ...] = ()
    rates: tuple[Series, ...] = ()
    interval: Seconds | None = None
    summary: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
