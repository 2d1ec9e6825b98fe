"""Fewest workers, and a prefetch depth, with which the devices are not starved.

Every setting is predicted. More workers are assumed to starve a device no more than fewer do, so
the fewest are found by bisection; settings that do not fit into RAM are excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.errors import NotModelled
from simulator.physics.footprint import Verdict
from simulator.predict import predict
from simulator.records import dataclass
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.studies.levers.catalogue import ADVISE_INPUT, lever
from simulator.studies.levers.data_loading import PREFETCH_DEPTHS
from simulator.studies.levers.lever import Read
from simulator.studies.search.outcome import BugLog, Progress, attempt
from simulator.units import Bytes, Seconds

_WORKERS, _PREFETCH = (lever(name).keys[0] for name in ADVISE_INPUT)
MIN_WORKERS_TRIED: Final = 16
MAX_WORKERS_TRIED: Final = 128
"""However many vCPUs there are, no fewer and no more workers than these are tried."""
TYPICAL_TRIES: Final = 24
"""Settings that are tried in all, more or less."""
MIN_SHARE: Final = 1e-9
"""What is left of a step where a device may wait for all of it."""
EQUAL_STEP: Final = 1.01
"""Step time over the shortest one up to which a setting is as good as the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A pair of workers and prefetch with its prediction, or the reason why there is none."""

    workers: int
    prefetch: int
    prediction: Prediction | None = None
    reason: str = ""

    @property
    def stall(self) -> float:
        """Share of a step that the device waits for data; 1 without a prediction."""
        if self.prediction is None:
            return 1.0
        timing = self.prediction.timing
        return timing.split.data_stall / timing.step_time.mean

    @property
    def step(self) -> float:
        """Mean step time [s]; infinite without a prediction."""
        return float("inf") if self.prediction is None else self.prediction.timing.step_time.mean

    @property
    def ram(self) -> Bytes:
        """RAM needed by one machine [B]; 0 without a prediction."""
        return 0.0 if self.prediction is None else self.prediction.host_ram.total

    @property
    def fits(self) -> bool:
        """True if the RAM of the machine is sufficient."""
        return self.prediction is not None and self.prediction.host_ram.verdict is not Verdict.NO


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Recommended workers and prefetch; `chosen` is None if no setting is sufficient.

    `within` is the share of a step that a device may wait. `best` has the shortest step of all
    settings that fit, with the fewest workers among equals; None if none fits. `top` is the maximum
    number of workers tried, `table` are settings similar to the chosen or best one.
    """

    base: Setting
    within: float
    top: int
    chosen: Setting | None
    best: Setting | None
    table: tuple[Setting, ...]


class _Tried:
    """Predictions of settings, each made once."""

    def __init__(self, read: Read, seed: int, tell: Progress, met: BugLog | None) -> None:
        self._read, self._seed, self._tell, self._met = read, seed, tell, met
        self.known: dict[tuple[int, int], Setting] = {}

    def at(self, workers: int, prefetch: int) -> Setting:
        """Return the setting with its prediction, from the cache if possible."""
        key = (workers, prefetch)
        if key not in self.known:
            found = attempt(lambda: self._predicted(*key), self._met)
            self.known[key] = (
                Setting(workers=workers, prefetch=prefetch, reason=found)
                if isinstance(found, str)
                else Setting(workers=workers, prefetch=prefetch, prediction=found)
            )
            self._tell(min(1.0, len(self.known) / TYPICAL_TRIES))
        return self.known[key]

    def _predicted(self, workers: int, prefetch: int) -> Prediction:
        scenario = self._read({_WORKERS: workers, _PREFETCH: prefetch})
        return predict(scenario, seed=self._seed, intervals=False)


def advise_input(
    read: Read,
    within: float,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    met: BugLog | None = None,
) -> Advice:
    """Find the fewest workers with which the devices wait no longer than allowed.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    within : float
        Share of a step that a device may wait for data.
    seed : int
        Seed of all random draws.
    progress : callable, optional
        Called with the finished share.
    met : BugLog, optional
        Log of internal errors; without it the first one is raised.

    Raises
    ------
    NotModelled
        If only remote machines prepare batches.
    """
    scenario = read({})
    pipeline = scenario.job.input
    if scenario.job.remote is not None and pipeline.workers == 0:
        msg = "remote machines make all batches: set remote.workers, or give input.workers"
        raise NotModelled(msg)
    base = Setting(
        workers=pipeline.workers,
        prefetch=pipeline.prefetch,
        prediction=predict(scenario, seed=seed, intervals=False),
    )
    tried = _Tried(read, seed, progress or (lambda _: None), met)
    if pipeline.workers > 0:
        tried.known[pipeline.workers, pipeline.prefetch] = base
    top = _top(scenario)
    chosen = _chosen(tried, pipeline.prefetch, top, within)
    best = _best(tried, pipeline.prefetch)
    centre = chosen or best
    table = () if centre is None else tuple(_around(tried, centre, base, top))
    return Advice(base=base, within=within, top=top, chosen=chosen, best=best, table=table)


def _chosen(tried: _Tried, prefetch: int, top: int, within: float) -> Setting | None:
    """Return the setting with the fewest workers over all prefetch depths; None if none suffices.

    A batch that is ready just in time is copied while the device waits. This does not count as data
    stall, but lengthens the step as much: settings whose step is longer than the shortest by more
    than `within` are excluded.
    """
    longest = float("inf")
    for _ in range(2):
        found = [_fewest(tried, depth, top, within, longest) for depth in PREFETCH_DEPTHS]
        chosen = min(
            (setting for setting in found if setting is not None),
            key=lambda setting: _fewer(setting, prefetch),
            default=None,
        )
        fitting = [setting.step for setting in tried.known.values() if setting.fits]
        longest = min(fitting, default=longest) / max(1.0 - within, MIN_SHARE)
    return chosen


def _top(scenario: Scenario) -> int:
    each = scenario.cluster.trainers.host.cpu.threads / scenario.ranks_per_host
    usual = min(MAX_WORKERS_TRIED, max(MIN_WORKERS_TRIED, 2 * round(each)))
    return max(usual, scenario.job.input.workers)


def _fewest(
    tried: _Tried, prefetch: int, top: int, within: float, longest: Seconds
) -> Setting | None:
    """Return the setting with the fewest sufficient workers at a prefetch depth, or None."""

    def enough(workers: int) -> bool:
        found = tried.at(workers, prefetch)
        return found.fits and found.stall <= within and found.step <= longest

    high = 1
    while high < top and not enough(high) and not _too_big(tried.at(high, prefetch)):
        high = min(top, 2 * high)
    if not enough(high):
        return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return tried.at(high, prefetch)


def _too_big(setting: Setting) -> bool:
    return setting.prediction is not None and not setting.fits


def _fewer(setting: Setting, prefetch: int) -> tuple[int, bool, int]:
    """Return a sort key: workers, then the current `prefetch`, then the smallest prefetch.

    A prefetch without a gain is not changed.
    """
    return setting.workers, setting.prefetch != prefetch, setting.prefetch


def _best(tried: _Tried, prefetch: int) -> Setting | None:
    fitting = [setting for setting in tried.known.values() if setting.fits]
    if not fitting:
        return None
    shortest = min(setting.step for setting in fitting)
    equals = [setting for setting in fitting if setting.step <= EQUAL_STEP * shortest]
    return min(equals, key=lambda setting: _fewer(setting, prefetch))


def _around(tried: _Tried, centre: Setting, base: Setting, top: int) -> Iterator[Setting]:
    """Yield settings similar to `centre`, by workers and then by prefetch."""
    workers, depth = centre.workers, centre.prefetch
    several = {workers // 2, workers - 1, workers, workers + 1, 2 * workers}
    keys = {(number, depth) for number in several if 1 <= number <= top}
    keys |= {(workers, other) for other in PREFETCH_DEPTHS}
    found = [tried.at(*key) for key in keys]
    if (base.workers, base.prefetch) not in keys:
        found.append(base)
    yield from sorted(found, key=lambda setting: (setting.workers, setting.prefetch))
