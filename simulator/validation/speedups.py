"""How much faster a job gets on another accelerator: predicted ratios beside measured ones.

A pair is two measured runs of one set that differ in nothing but the machine, with as many
accelerators of another type. What users choose machines by is their ratio, in which errors that
both predictions share cancel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from simulator.reading.hardware.catalogue import Catalogue
from simulator.uncertainty.measurement import MeasurementSet, Row
from simulator.validation.validate import Judged

TIMES: Final = ("step_time_s.mean",)
RATES: Final = ("throughput_samples_per_s",)
_HARDWARE: Final = "hardware."


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """How many times as fast a job ran on `faster` as on `slower`, measured and predicted.

    The two are full names of accelerators; `rows` are the ids of their runs in that order.
    """

    set: str
    family: str
    metric: str
    slower: str
    faster: str
    rows: tuple[str, str]
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """The predicted ratio over the measured one, less 1."""
        return self.predicted / self.measured - 1.0


def speedups(
    found: MeasurementSet, judged: Iterable[Judged], catalogue: Catalogue
) -> tuple[Speedup, ...]:
    """Every pair of judged runs of a set that differ in the accelerator alone.

    Parameters
    ----------
    found : MeasurementSet
        Whose rows say what was run.
    judged : iterable of Judged
        Their measured and predicted figures; those that are no time or rate are passed over.
    catalogue : Catalogue
        Which accelerators a machine has.
    """
    rows = {row.id: row for row in found.rows}
    alike: dict[tuple[object, ...], list[tuple[str, Judged]]] = defaultdict(list)
    for one in judged:
        if one.metric not in (*TIMES, *RATES):
            continue
        gpu, count = _accelerators(rows[one.id], catalogue)
        if gpu:
            job = _all_but_hardware(rows[one.id])
            alike[one.family, one.metric, rows[one.id].base, job, count].append((gpu, one))
    return tuple(pair for runs in alike.values() for pair in _pairs(runs))


def _pairs(runs: Sequence[tuple[str, Judged]]) -> Iterator[Speedup]:
    for one, other in combinations(runs, 2):
        if one[0] == other[0]:
            continue
        slow, fast = sorted((one, other), key=lambda run: _measured_rate(run[1]))
        slower, faster = slow[1], fast[1]
        predicted = faster.point.predicted / slower.point.predicted
        yield Speedup(
            set=faster.set,
            family=faster.family,
            metric=faster.metric,
            slower=slow[0],
            faster=fast[0],
            rows=(slower.id, faster.id),
            measured=_measured_rate(faster) / _measured_rate(slower),
            predicted=1.0 / predicted if faster.metric in TIMES else predicted,
        )


def _measured_rate(one: Judged) -> float:
    return 1.0 / one.point.measured if one.metric in TIMES else one.point.measured


def _accelerators(row: Row, catalogue: Catalogue) -> tuple[str, int]:
    """The accelerator of a row's machines, and how many there are; none where no key names it."""
    keys = _keys(row)
    if "hardware.machine" not in keys:
        return "", 0
    host = catalogue.host(keys["hardware.machine"])
    if host.gpu is None or host.gpu.emulated:
        return "", 0
    in_one = int(keys.get("hardware.gpus", host.gpu_count))
    return keys.get("hardware.gpu", host.gpu.name), in_one * int(keys.get("hardware.count", "1"))


def _all_but_hardware(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in _keys(row).items() if not item[0].startswith(_HARDWARE)))


def _keys(row: Row) -> Mapping[str, str]:
    return dict(override.split("=", 1) for override in row.overrides)
