"""What-if studies: the worth of more of each resource, bottleneck shifts, swapped accelerators.

Each change is a scenario of its own that is predicted like any other. Bottlenecks come from
predictions; the closed form only says where to look first, since it knows the load of each resource
without simulating.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from simulator.errors import (
    InputError,
    NotModelled,
    Problem,
    UnitError,
    UnknownName,
)
from simulator.physics.device_time import device_time, uses_fitted_kernels
from simulator.physics.footprint import Verdict
from simulator.pipeline.loads import pressures
from simulator.pipeline.stages.base import Phase, Resource
from simulator.predict import predict, simulation_input
from simulator.results.metrics import measurable, number_at, select, unstarved_rate
from simulator.results.prediction import STARVED, Prediction
from simulator.schema.fields import nearest_hint
from simulator.schema.scenario import Job, Scenario
from simulator.studies.levers import GPU_KEY
from simulator.studies.levers.lever import Knob, Read, turned
from simulator.studies.search.outcome import BugLog, Progress, attempt, tracked
from simulator.units import USD_PER_SECOND, PerSecond, Usd, UsdPerSecond, parse

if TYPE_CHECKING:
    from simulator.studies.sensitivity import Sensitivity

MIN_EFFECT: Final = 0.005
"""Relative change below which a change is said to have no effect: which workers meet at what they
share changes by as much with a store's speed or the number of workers (shipped scenarios on stores
of 0.2 to 50 GB/s, prefetch 1 to 8: up to 0.5%)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobStep:
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

    change: KnobStep
    prediction: Prediction | None = None
    reason: str = ""
    rent: UsdPerSecond | None = None
    to_train: Usd | None = None
    saved: Usd | None = None
    spent: Usd | None = None

    @property
    def per_dollar(self) -> float | None:
        """Dollars saved per dollar spent; None where the change costs nothing, or it is unknown."""
        if self.saved is None or not self.spent:
            return None
        return self.saved / self.spent

    @property
    def fits(self) -> bool:
        """Return whether the changed job fits into memory."""
        return self.prediction is not None and self.prediction.fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The job as it is, and every change, the most effective on `metric` first.

    `floor` is the relative change below which there is no effect: what the simulation knows of a
    mean step.
    """

    base: Prediction
    metric: str
    worths: tuple[Worth, ...]
    floor: float = MIN_EFFECT

    def effect(self, worth: Worth, metric: str = "") -> float | None:
        """Return the relative change of a metric; None if it has no value before or after."""
        name = metric or self.metric
        after = None if worth.prediction is None else number_at(worth.prediction, name)
        return relative(number_at(self.base, name), after)

    def matters(self, worth: Worth) -> bool:
        """Return whether a change moves the metric, the throughput or the time of the run at all.

        It must move one of them by more than what both simulations know of a mean step.
        """
        return self._moved(worth) > max(self.floor, self.noise(worth))

    def is_open(self, worth: Worth) -> bool:
        """Return whether a change has an effect within the noise of the simulations."""
        return self.floor < self._moved(worth) <= self.noise(worth)

    def noise(self, worth: Worth) -> float:
        """Return the noise of both simulated mean steps as a share of a step."""
        return math.hypot(relative_noise(self.base), relative_noise(worth.prediction))

    def _moved(self, worth: Worth) -> float:
        shown = (self.metric, "throughput_samples_per_s", "total_time_s")
        return max(abs(self.effect(worth, name) or 0.0) for name in shown)


def relative_noise(prediction: Prediction | None) -> float:
    """Return half of the 95% interval of the mean step over the mean."""
    if prediction is None or prediction.timing.step_time.mean <= 0.0:
        return 0.0
    return prediction.timing.half_width / prediction.timing.step_time.mean


def check_number(metric: str) -> None:
    """Refuse names that are not a number of a prediction.

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
    """Return the relative change from `before` to `after`; None if it has no value."""
    if before is None or after is None or before == 0.0:
        return None
    return after / before - 1.0


def knob_steps(knobs: Sequence[Knob]) -> tuple[KnobStep, ...]:
    """Return all steps of all knobs."""
    return tuple(
        KnobStep(knob=knob, step=step, value=value) for knob in knobs for step, value in knob.steps
    )


def margins(  # noqa: PLR0913 - what a caller may want beside the changes
    read: Read,
    wanted: Sequence[KnobStep],
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
    wanted : sequence of KnobStep
        What to try, one at a time.
    metric : str
        The changes that move it most come first.
    prices : mapping of str to float, optional
        What changes add to the price of all machines [$/s], by name.
    seed : int
        Of all draws; the same for every change, so that chance cancels.
    progress : callable, optional
        Called with the finished share.
    met : BugLog, optional
        Log of internal errors; without it the first one is raised.

    Raises
    ------
    PlanError
        If the scenario itself cannot be read or is not modelled.
    """
    base = predict(read({}), seed=seed, intervals=False)
    found = [_worth(read, base, change, prices or {}, met) for change in tracked(wanted, progress)]
    floor = max(MIN_EFFECT, relative_noise(base))
    worths = Margins(base=base, metric=metric, worths=tuple(found), floor=floor)
    ordered = sorted(found, key=lambda worth: _rank(worths, worth))
    return replace(worths, worths=tuple(ordered))


def _rank(margins_: Margins, worth: Worth) -> tuple[int, int, float]:
    """Return a sort key: most effective first; of equals the free ones, then those with a price."""
    effect = abs(margins_.effect(worth) or 0.0)
    alike = round(effect / margins_.floor)
    price = 2 if worth.rent is None else int(worth.rent > 0.0)
    return -alike, price, -effect


def _worth(
    read: Read,
    base: Prediction,
    change: KnobStep,
    prices: Mapping[str, UsdPerSecond],
    met: BugLog | None,
) -> Worth:
    def predicted() -> Prediction:
        scenario = turned(read, change.knob, change.value)
        return predict(scenario, seed=base.seed or 0, intervals=False)

    after = attempt(predicted, met)
    if isinstance(after, str):
        return Worth(change=change, reason=after)
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
    base: Prediction, after: Prediction, change: KnobStep, prices: Mapping[str, UsdPerSecond]
) -> UsdPerSecond | None:
    """Return the added rent [$/s]: stated, else by the catalogue, else None."""
    stated = prices.get(change.name)
    before, now = base.cost.per_second, after.cost.per_second
    machines = 0.0 if before is None or now is None else now - before
    if stated is not None:
        return stated + machines
    if change.knob.free:
        return 0.0
    return machines if machines != 0.0 else None


def _billed(prediction: Prediction) -> float:
    return prediction.cost.time_to_train + prediction.scenario.cost.provisioning


def misfit(prediction: Prediction) -> str:
    """Which memory is too small; empty where everything fits."""
    if prediction.memory is not None and prediction.memory.verdict is Verdict.NO:
        return "GPU memory"
    return "RAM" if prediction.host_ram.verdict is Verdict.NO else ""


MAX_FACTOR: Final = 64.0
"""How many times as much, or as little, of a resource is looked at."""
MAX_COUNT: Final = 256.0
"""The most of anything counted that is looked at."""
FLIP_TOLERANCE: Final = 1.04
"""Ratio of two values, of which one is before the flip and one behind it, that is close enough."""
MAX_STEPS: Final = 100
"""Steps of an epoch that are simulated at most: who limits shows in fewer than how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Turned to `at`, a knob makes `after` limit the job instead of `before`.

    `at` lies behind the flip, by less than `FLIP_TOLERANCE`; `rises`: more of it does so, else
    less.
    """

    knob: Knob
    at: float
    rises: bool
    before: str
    after: str


def flips(
    read: Read,
    knobs: Sequence[Knob],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    met: BugLog | None = None,
) -> tuple[Flip, ...]:
    """Find where more or less of each resource moves the bottleneck, the nearest first.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    knobs : sequence of Knob
        What is turned, one at a time, up to `MAX_FACTOR` times as far.
    seed : int
        Of all draws.
    progress : callable, optional
        Called with the finished share.
    met : BugLog, optional
        Log of internal errors; without it the first one is raised.
    """
    scenario = read({})
    base, imposing = _limit(scenario, seed), _highest_load(scenario)
    found: list[Flip] = []
    turnable = [knob for knob in knobs if knob.limits and knob.value > 0.0]
    for knob in tracked(turnable, progress):
        search = _FlipSearch(read=read, knob=knob, seed=seed, base=base, imposing=imposing, met=met)
        found += _of_knob(search)
    return tuple(sorted(found, key=lambda flip: abs(math.log(flip.at / flip.knob.value))))


def _ends(knob: Knob) -> Iterator[float]:
    high = max(MAX_COUNT, knob.value) if knob.whole else knob.value * MAX_FACTOR
    low = max(knob.least, 0.0 if knob.whole else knob.value / MAX_FACTOR)
    yield from (end for end in (high, low) if end != knob.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FlipSearch:
    """What limits the job with a knob at a value; empty where there is no such job.

    `base` limits it as it is; `imposing` is what the closed form says of that.
    """

    read: Read
    knob: Knob
    seed: int
    base: str
    imposing: str
    met: BugLog | None

    def moves(self, value: float) -> bool:
        """Return whether something else limits the job, simulated where closed forms are unsure."""
        sure = self.base == self.imposing and self.guess(value) == self.base
        return not sure and self.limit(value) not in {"", self.base}

    def limit(self, value: float) -> str:
        """Return the predicted bottleneck."""
        return self._ask(value, lambda scenario: _limit(scenario, self.seed))

    def guess(self, value: float) -> str:
        """Return the bottleneck in closed form."""
        return self._ask(value, _highest_load)

    def _ask(self, value: float, of: Callable[[Scenario], str]) -> str:
        found = attempt(lambda: (of(turned(self.read, self.knob, value)),), self.met)
        return "" if isinstance(found, str) else found[0]


def _of_knob(search: _FlipSearch) -> Iterator[Flip]:
    knob = search.knob
    for end in _ends(knob):
        if search.moves(end):
            at, name = _bisect(search, knob.value, end)
            yield Flip(knob=knob, at=at, rises=end > knob.value, before=search.base, after=name)


def _limit(scenario: Scenario, seed: int) -> str:
    timing = predict(scenario, seed=seed, intervals=False, max_steps=MAX_STEPS).timing
    return timing.bottleneck


def _highest_load(scenario: Scenario) -> str:
    inputs = simulation_input(scenario)
    last = Phase.WARM if inputs.lengths.epochs > 1.0 else Phase.COLD
    return next(iter(pressures(scenario, inputs.topology, inputs.demands[last])))


def _bisect(search: _FlipSearch, near: float, far: float) -> tuple[float, str]:
    """Return the nearest value at which another resource limits the job, and its name."""
    whole = search.knob.whole
    behind = search.limit(far)
    guess = _guessed(search, near, far)
    probes = [] if guess is None else _around(guess, near, far, whole=whole)
    while not _done(near, far, whole=whole):
        at = probes.pop() if probes else _between(near, far, whole=whole)
        if not min(near, far) < at < max(near, far):
            continue
        name = search.limit(at)
        if name in {"", search.base}:
            near = at
        else:
            far, behind = at, name
    return far, behind


def _done(near: float, far: float, *, whole: bool) -> bool:
    return abs(far - near) <= 1.0 if whole else max(near, far) / min(near, far) <= FLIP_TOLERANCE


def _between(near: float, far: float, *, whole: bool) -> float:
    return float((near + far) // 2.0) if whole else math.sqrt(near * far)


def _around(guess: float, near: float, far: float, *, whole: bool) -> list[float]:
    """Return a value just behind a guess and one just before it; the last is tried first."""
    outward = 1.0 if far > near else -1.0
    if whole:
        return [guess - outward, guess]
    return [guess / FLIP_TOLERANCE ** (outward / 3.0), guess * FLIP_TOLERANCE ** (outward / 3.0)]


def _guessed(search: _FlipSearch, near: float, far: float) -> float | None:
    """Return the value at which the closed form changes its bottleneck; None if it does not."""
    whole = search.knob.whole
    first = search.imposing
    if search.guess(far) in {"", first}:
        return None
    exact = FLIP_TOLERANCE ** (1.0 / 8.0)
    while abs(far - near) > 1.0 if whole else max(near, far) / min(near, far) > exact:
        at = _between(near, far, whole=whole)
        if search.guess(at) in {"", first}:
            near = at
        else:
            far = at
    return far


ALL: Final = "all"
"""All accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One accelerator in the machine; `prediction` is None where `reason` says why there is none.

    `own`: it is the one that the machine has.
    """

    gpu: str
    own: bool = False
    prediction: Prediction | None = None
    reason: str = ""

    @property
    def possible(self) -> PerSecond:
        """Samples a second it would take if every batch were ready; 0 where it cannot run."""
        return (unstarved_rate(self.prediction) or 0.0) if self.prediction is not None else 0.0

    @property
    def starved(self) -> bool:
        """Return whether it waits for data so much that the machine limits the job, not it."""
        if self.prediction is None:
            return False
        timing = self.prediction.timing
        return timing.split.data_stall >= STARVED * timing.step_time.mean

    @property
    def cpu_bound(self) -> bool:
        """Return whether it is the machine's processors that it waits for."""
        return (
            self.starved
            and self.prediction is not None
            and self.prediction.timing.bottleneck.endswith(Resource.CPU)
        )

    @property
    def fits(self) -> bool | None:
        """Return whether the job fits into its memory; None where what it needs is not known."""
        memory = None if self.prediction is None else self.prediction.memory
        known = None if memory is None else memory.known_verdict
        return None if known is None else known is not Verdict.NO


def generations(
    read: Read,
    gpus: Sequence[str],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    met: BugLog | None = None,
) -> tuple[Generation, ...]:
    """Predict the job on the same machine with each accelerator, slowest first, refused ones last.

    Where the steps of the job were measured, they are taken to change as the computed device time
    of its model does from one accelerator to the other.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    gpus : sequence of str
        Names of accelerators; the machine's own is added.
    seed : int
        Of all draws.
    progress : callable, optional
        Called with the finished share.
    met : BugLog, optional
        Log of internal errors; without it the first one is raised.

    Raises
    ------
    NotModelled
        If the scenario uses no accelerator.
    """
    scenario = read({})
    own = scenario.cluster.trainers.host.gpu
    if own is None or own.emulated or scenario.cluster.trainers.gpus_per_host == 0:
        msg = "the scenario uses no accelerator that could be another one"
        raise NotModelled(msg)
    names = tuple(dict.fromkeys((own.name, *gpus)))
    found = [_generation(read, scenario, name, seed, met) for name in tracked(names, progress)]
    return tuple(sorted(found, key=lambda one: (one.prediction is None, one.possible)))


def turning_point(found: Sequence[Generation]) -> Generation | None:
    """Return the slowest accelerator that waits for the processors; None if none does."""
    return next((one for one in found if one.cpu_bound), None)


def _generation(
    read: Read, scenario: Scenario, name: str, seed: int, met: BugLog | None
) -> Generation:
    gpu = scenario.cluster.trainers.host.gpu
    own = gpu is not None and gpu.name == name

    def predicted() -> Prediction:
        other = scenario if own else _carried(scenario, read({GPU_KEY: name}))
        return predict(other, seed=seed, intervals=False)

    found = attempt(predicted, met)
    if isinstance(found, str):
        return Generation(gpu=name, own=own, reason=found)
    return Generation(gpu=name, own=own, prediction=found)


def _carried(before: Scenario, after: Scenario) -> Scenario:
    """Return the changed scenario with measured steps scaled like the computed ones."""
    times = after.job.step_times
    if times is None or uses_fitted_kernels(after):
        return after
    was, now = _computed(before), _computed(after)
    if was is None or now is None:
        msg = "its steps were measured, and no model says what they take elsewhere"
        raise NotModelled(msg)
    seconds = tuple(time * now / was for time in times.seconds)
    jobs = tuple(replace(job, step_times=replace(times, seconds=seconds)) for job in after.jobs)
    return replace(after, jobs=jobs)


def _computed(scenario: Scenario) -> float | None:
    """Device time of a batch by the model alone [s]; None where the model says nothing of it."""
    job: Job = replace(scenario.job, step_times=None)
    if job.model is None:
        return None
    found = device_time(replace(scenario, jobs=(job,)))
    total = None if found is None else float(found.total)
    return total or None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The answer of `plan whatif`; parts that were not wanted are None.

    `turned` are the knobs that could become the limit, `flips` what moves it.
    """

    margins: Margins
    flips: Sequence[Flip]
    turned: Sequence[Knob] = ()
    generations: Sequence[Generation] | None = None
    tornado: Sensitivity | None = None


def prices_of(texts: Sequence[str], known: Sequence[KnobStep]) -> dict[str, UsdPerSecond]:
    """Read what changes add to the rent, by name [$/s], from texts such as ``vCPUs x2=$0.50/h``.

    Raises
    ------
    InputError
        If one has no price, or names no change.
    """
    names = tuple(change.name for change in known)
    found = dict[str, UsdPerSecond]()
    for text in texts:
        name, equals, price = (part.strip() for part in text.rpartition("="))
        origin = f"--price {text}"
        if not equals:
            message, hint = "has no price", "write it as 'vCPUs x2=$0.50/h'"
            raise InputError((Problem(origin=origin, message=message, hint=hint),))
        if name not in names:
            hint = nearest_hint(name, names) or f"there are {', '.join(names)}"
            message = f"unknown change '{name}'"
            raise InputError((Problem(origin=origin, message=message, hint=hint),))
        try:
            found[name] = parse(price, USD_PER_SECOND)
        except UnitError as error:
            message = f"'{price}' {error}"
            raise InputError((Problem(origin=origin, message=message),)) from error
    return found


def accelerators(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the accelerators that a list of names and patterns means; ``all`` means all.

    Parameters
    ----------
    text : str
        Such as ``l4,a100*``, with or without ``gpu/``.
    known : sequence of str
        Names of the catalogue.

    Raises
    ------
    InputError
        If a part matches no accelerator.
    """
    found = list[str]()
    for part in (part.strip() for part in text.split(",")):
        pattern = "gpu/*" if part == ALL else part if part.startswith("gpu/") else f"gpu/{part}"
        matching = fnmatch.filter(known, pattern)
        if not matching:
            message, hint = f"unknown accelerator '{part}'", nearest_hint(pattern, known)
            raise InputError((Problem(origin=f"--gpus {text}", message=message, hint=hint),))
        found += matching
    return tuple(found)
