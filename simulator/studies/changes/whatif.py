"""What each resource is worth: the same job with a little more of it, predicted like any other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.errors import BrokenInvariant, InputError, PlanError, UnknownName
from simulator.physics.footprint import Verdict
from simulator.predict import predict
from simulator.results.metrics import measurable, number_at, select
from simulator.results.prediction import Prediction
from simulator.studies.changes.levers import Knob, Read, turned
from simulator.studies.search.outcome import BugLog, log_bug
from simulator.units import Usd, UsdPerSecond

Progress = Callable[[float], None]

NOTHING: Final = 0.005
"""Relative change below which a change is said to have no effect: which workers meet at what they
share changes by as much with a store's speed or the number of workers (shipped scenarios on stores
of 0.2 to 50 GB/s, prefetch 1 to 8: up to 0.5%)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step of a knob: `name` is what people call it and price it by."""

    knob: Knob
    step: str
    value: float

    @property
    def name(self) -> str:
        """Such as ``vCPUs x2``."""
        return f"{self.knob.name} {self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a change does; `prediction` is None where there is no such job, and `reason` says why.

    `rent` is what the change adds to the price of the machines [$/s], None where no price is
    known. `saved` is the rent that shorter machine time saves [$], `spent` what the change costs
    while the job runs [$].
    """

    change: Change
    prediction: Prediction | None = None
    reason: str = ""
    rent: UsdPerSecond | None = None
    to_train: Usd | None = None
    saved: Usd | None = None
    spent: Usd | None = None

    @property
    def per_dollar(self) -> float | None:
        """Dollars saved per dollar spent; None where the change costs nothing, or nobody knows."""
        if self.saved is None or not self.spent:
            return None
        return self.saved / self.spent

    @property
    def fits(self) -> bool:
        """Whether the changed job fits into memory."""
        return self.prediction is not None and self.prediction.fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The job as it is, and every change, the most effective on `metric` first.

    `floor` is the relative change that is no effect: what the simulation knows of a mean step.
    """

    base: Prediction
    metric: str
    worths: tuple[Worth, ...]
    floor: float = NOTHING

    def effect(self, worth: Worth, metric: str = "") -> float | None:
        """Relative change of a metric; None where it has no value before or after."""
        name = metric or self.metric
        after = None if worth.prediction is None else number_at(worth.prediction, name)
        return relative(number_at(self.base, name), after)

    def matters(self, worth: Worth) -> bool:
        """Whether a change moves the metric, the throughput or the time of the run at all.

        It must move one of them by more than what both simulations know of a mean step.
        """
        return self._moved(worth) > max(self.floor, self.component(worth))

    def is_open(self, worth: Worth) -> bool:
        """Whether a change seems to have an effect that chance in the simulations could make."""
        return self.floor < self._moved(worth) <= self.component(worth)

    def component(self, worth: Worth) -> float:
        """What both simulations know of a mean step, as a share of it."""
        return math.hypot(chance(self.base), chance(worth.prediction))

    def _moved(self, worth: Worth) -> float:
        """The largest relative change of the figures that are shown."""
        shown = (self.metric, "throughput_samples_per_s", "total_time_s")
        return max(abs(self.effect(worth, name) or 0.0) for name in shown)


def chance(prediction: Prediction | None) -> float:
    """How well the mean step of a simulation is known: half of its 95% interval over the mean."""
    if prediction is None or prediction.timing.step_time.mean <= 0.0:
        return 0.0
    return prediction.timing.half_width / prediction.timing.step_time.mean


def check_number(metric: str) -> None:
    """Refuse what is no number of a prediction.

    Raises
    ------
    UnknownName
        If there is no such metric, or it is a word, a table or several; names the nearest.
    """
    if measurable(metric) is not None:
        return
    found = select(metric)
    numbers = [one.name for one in found if measurable(one.name) is not None]
    hint = f"; name one, such as '{numbers[0]}'" if numbers else ""
    msg = f"the metric '{metric}' is not one number{hint}"
    raise UnknownName(msg)


def relative(before: float | None, after: float | None) -> float | None:
    """How much more `after` is than `before`, as a share of it."""
    if before is None or after is None or before == 0.0:
        return None
    return after / before - 1.0


def changes(knobs: Sequence[Knob]) -> tuple[Change, ...]:
    """Every step of every knob."""
    return tuple(
        Change(knob=knob, step=step, value=value) for knob in knobs for step, value in knob.steps
    )


def margins(  # noqa: PLR0913 - what a caller may want beside the changes
    read: Read,
    wanted: Sequence[Change],
    *,
    metric: str = "total_time_s",
    prices: Mapping[str, UsdPerSecond] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    met: BugLog | None = None,
) -> Margins:
    """Predict the job as it is and with every change.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    wanted : sequence of Change
        What to try, one at a time.
    metric : str
        The changes that move it most come first.
    prices : mapping of str to float, optional
        What changes add to the price of all machines [$/s], by name.
    seed : int
        Of all draws; the same for every change, so that chance cancels.
    progress : callable, optional
        Told the share that is done.
    met : Met, optional
        Where bugs of ours that changes meet are noted; without it the first one is raised.

    Raises
    ------
    PlanError
        If the scenario itself cannot be read or is not modelled.
    """
    base = predict(read({}), seed=seed, intervals=False)
    found: list[Worth] = []
    for number, change in enumerate(wanted, start=1):
        found.append(_worth(read, base, change, prices or {}, met))
        if progress is not None:
            progress(number / len(wanted))
    floor = max(NOTHING, chance(base))
    worths = Margins(base=base, metric=metric, worths=tuple(found), floor=floor)
    ordered = sorted(found, key=lambda worth: _rank(worths, worth))
    return replace(worths, worths=tuple(ordered))


def _rank(margins_: Margins, worth: Worth) -> tuple[int, int, float]:
    """Most effective first; of changes that do alike, what is free, then what has a price."""
    effect = abs(margins_.effect(worth) or 0.0)
    alike = round(effect / margins_.floor)
    price = 2 if worth.rent is None else int(worth.rent > 0.0)
    return -alike, price, -effect


def _worth(
    read: Read,
    base: Prediction,
    change: Change,
    prices: Mapping[str, UsdPerSecond],
    met: BugLog | None,
) -> Worth:
    try:
        scenario = turned(read, change.knob, change.value)
        after = predict(scenario, seed=base.seed or 0, intervals=False)
    except PlanError as error:
        return Worth(change=change, reason=reason_of(error))
    except BrokenInvariant as error:
        return Worth(change=change, reason=log_bug(error, met))
    rent = _added_rent(base, after, change, prices)
    known = base.cost.per_second
    if known is None:
        return Worth(change=change, prediction=after, rent=rent)
    lasts = _billed(after)
    paid = after.in_all
    own = prices.get(change.name, 0.0)
    return Worth(
        change=change,
        prediction=after,
        rent=rent,
        to_train=None if paid is None else paid + own * lasts,
        saved=known * (_billed(base) - lasts),
        spent=None if rent is None else rent * lasts,
    )


def _added_rent(
    base: Prediction, after: Prediction, change: Change, prices: Mapping[str, UsdPerSecond]
) -> UsdPerSecond | None:
    """What the change adds to the rent [$/s]: as stated, else by the catalogue, else unknown."""
    stated = prices.get(change.name)
    before, now = base.cost.per_second, after.cost.per_second
    machines = 0.0 if before is None or now is None else now - before
    if stated is not None:
        return stated + machines
    if change.knob.free:
        return 0.0
    return machines if machines != 0.0 else None


def _billed(prediction: Prediction) -> float:
    """Time that is paid for [s]."""
    return prediction.cost.time_to_train + prediction.scenario.cost.provisioning


def reason_of(error: PlanError) -> str:
    """Why there is no such job, in one line."""
    if not isinstance(error, InputError):
        return str(error)
    problem = error.problems[0]
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.key or problem.origin} {problem.message}{hint}"


def misfit(prediction: Prediction) -> str:
    """Which memory is too small; empty where everything fits."""
    if prediction.memory is not None and prediction.memory.verdict is Verdict.NO:
        return "GPU memory"
    return "RAM" if prediction.host_ram.verdict is Verdict.NO else ""
