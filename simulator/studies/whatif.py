"""What-if studies: effect of more of each resource, bottleneck shifts, other accelerators.

Each change is a scenario that is predicted like any other. Bottlenecks come from predictions;
closed forms only show where to look first, as they give the load of each resource without a
simulation.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from simulator.records import dataclass
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
"""Relative change below which a change has no effect.

Which workers meet at what they share changes by as much with a store's speed or the number of
workers (shipped scenarios on stores of 0.2 to 50 GB/s, prefetch 1 to 8: up to 0.5%).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobStep:
    """One change of the amount of a resource or setting (`Knob`) to `value`."""

    knob: Knob
    step: str
    value: float

    @property
    def name(self) -> str:
        """Name of the change in reports and price options, such as ``vCPUs x2``."""
        return f"{self.knob.name} {self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Effect of one change; `prediction` is None if the job cannot run, for the given `reason`.

    `rent` is the additional price of the machines [$/s], None if unknown. `to_train` is the cost of
    the run [$], `saved` the rent saved by a shorter run [$], and `spent` the cost of the change
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
        """Dollars saved per dollar spent; None if the change costs nothing, or if it is unknown."""
        if self.saved is None or not self.spent:
            return None
        return self.saved / self.spent

    @property
    def fits(self) -> bool:
        """True if the changed job fits into memory."""
        return self.prediction is not None and self.prediction.fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Prediction of the job and effects of all changes, largest effect on `metric` first.

    `floor` is the relative change below which a change has no effect, at least the noise of the
    simulated mean step.
    """

    base: Prediction
    metric: str
    worths: tuple[Worth, ...]
    floor: float = MIN_EFFECT

    def effect(self, worth: Worth, metric: str = "") -> float | None:
        """Return the relative change of a metric; None if its value is unknown before or after."""
        name = metric or self.metric
        after = None if worth.prediction is None else number_at(worth.prediction, name)
        return relative(number_at(self.base, name), after)

    def matters(self, worth: Worth) -> bool:
        """Return whether a change has an effect on the metric, the throughput or the run time.

        The relative change of one of them must exceed the noise of both simulated mean steps.
        """
        return self._moved(worth) > max(self.floor, self.noise(worth))

    def is_open(self, worth: Worth) -> bool:
        """Return whether the effect of a change is within the noise of the simulations."""
        return self.floor < self._moved(worth) <= self.noise(worth)

    def noise(self, worth: Worth) -> float:
        """Return the combined noise of both simulated mean steps, as a share of a step."""
        return math.hypot(relative_noise(self.base), relative_noise(worth.prediction))

    def _moved(self, worth: Worth) -> float:
        shown = (self.metric, "throughput_samples_per_s", "total_time_s")
        return max(abs(self.effect(worth, name) or 0.0) for name in shown)


def relative_noise(prediction: Prediction | None) -> float:
    """Return the half-width of the 95% interval of the mean step, as a share of the step."""
    if prediction is None or prediction.timing.step_time.mean <= 0.0:
        return 0.0
    return prediction.timing.half_width / prediction.timing.step_time.mean


def check_number(metric: str) -> None:
    """Raise an error if a metric is not a single number of a prediction.

    Raises
    ------
    UnknownName
        If there is no such metric, or if it is a text or a table; the message names the nearest.
    """
    if measurable(metric) is not None:
        return
    found = select(metric)
    numbers = [one.name for one in found if measurable(one.name) is not None]
    hint = f"; name one, such as '{numbers[0]}'" if numbers else ""
    msg = f"the metric '{metric}' is not one number{hint}"
    raise UnknownName(msg)


def relative(before: float | None, after: float | None) -> float | None:
    """Return the relative change from `before` to `after`; None if undefined."""
    if before is None or after is None or before == 0.0:
        return None
    return after / before - 1.0


def knob_steps(knobs: Sequence[Knob]) -> tuple[KnobStep, ...]:
    """Return all changes that a what-if tries."""
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
    """Predict the job without changes and with each change.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    wanted : sequence of KnobStep
        Changes to try, one at a time.
    metric : str
        Metric by whose relative change the changes are sorted.
    prices : mapping of str to float, optional
        Additional price of all machines by name of the change [$/s].
    seed : int
        Seed of all random draws, the same for every change.
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
    """Return a sort key: largest effect first; then free changes, then those with a known price."""
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
    """Return the additional rent [$/s]: stated, else by the catalogue, else None."""
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
    """Return the memory that is too small; empty if everything fits."""
    if prediction.memory is not None and prediction.memory.verdict is Verdict.NO:
        return "GPU memory"
    return "RAM" if prediction.host_ram.verdict is Verdict.NO else ""


MAX_FACTOR: Final = 64.0
"""Largest factor by which the amount of a resource is increased or decreased."""
MAX_COUNT: Final = 256.0
"""Largest count that is tried, such as of workers."""
FLIP_TOLERANCE: Final = 1.04
"""Ratio of the values on both sides of a bottleneck change at which the search stops."""
MAX_STEPS: Final = 100
"""Maximum number of simulated steps of an epoch; the bottleneck needs fewer than its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Change of the bottleneck from `before` to `after` when an amount is changed to `at`.

    `at` is beyond the change, by less than `FLIP_TOLERANCE`; `rises`: the amount is increased.
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
    """Find the amount of each resource at which the bottleneck changes, nearest first.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    knobs : sequence of Knob
        Amounts to vary, one at a time, by a factor of up to `MAX_FACTOR`.
    seed : int
        Seed of all random draws.
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
    """Search of the amount at which the bottleneck changes; a bottleneck is empty if no job runs.

    `base` is the bottleneck without changes, `imposing` the one that closed forms give.
    """

    read: Read
    knob: Knob
    seed: int
    base: str
    imposing: str
    met: BugLog | None

    def moves(self, value: float) -> bool:
        """Return whether the bottleneck changes at `value`; simulate if closed forms are unsure."""
        sure = self.base == self.imposing and self.guess(value) == self.base
        return not sure and self.limit(value) not in {"", self.base}

    def limit(self, value: float) -> str:
        """Return the simulated bottleneck at `value`."""
        return self._ask(value, lambda scenario: _limit(scenario, self.seed))

    def guess(self, value: float) -> str:
        """Return the closed-form bottleneck at `value`."""
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
    """Return the nearest value with another bottleneck, and the name of that bottleneck."""
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
    """Return a value just beyond a guess and one just before it; the last one is tried first."""
    outward = 1.0 if far > near else -1.0
    if whole:
        return [guess - outward, guess]
    return [guess / FLIP_TOLERANCE ** (outward / 3.0), guess * FLIP_TOLERANCE ** (outward / 3.0)]


def _guessed(search: _FlipSearch, near: float, far: float) -> float | None:
    """Return the value at which the closed-form bottleneck changes; None if it does not."""
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
    """The job with another accelerator; `prediction` is None if it cannot run, for `reason`.

    `own`: it is the accelerator of the scenario's machine.
    """

    gpu: str
    own: bool = False
    prediction: Prediction | None = None
    reason: str = ""

    @property
    def possible(self) -> PerSecond:
        """Throughput if every batch were ready in time [samples/s]; 0 if it cannot run."""
        return (unstarved_rate(self.prediction) or 0.0) if self.prediction is not None else 0.0

    @property
    def starved(self) -> bool:
        """True if data stalls take at least `STARVED` of the step."""
        if self.prediction is None:
            return False
        timing = self.prediction.timing
        return timing.split.data_stall >= STARVED * timing.step_time.mean

    @property
    def cpu_bound(self) -> bool:
        """True if the accelerator is starved and the CPUs are the bottleneck."""
        return (
            self.starved
            and self.prediction is not None
            and self.prediction.timing.bottleneck.endswith(Resource.CPU)
        )

    @property
    def fits(self) -> bool | None:
        """True if the job fits into the memory of the accelerator; None if unknown."""
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
    """Predict the job on the same machine with each accelerator, slowest first, failed ones last.

    Measured step times are scaled by the ratio of the computed device times of both accelerators.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    gpus : sequence of str
        Names of accelerators; that of the machine is added.
    seed : int
        Seed of all random draws.
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
    """Return the slowest accelerator for which the job is CPU-bound; None if there is none."""
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
    """Return the changed scenario with measured steps scaled by computed device times."""
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
    """Return the computed device time of a batch [s]; None if the model gives none."""
    job: Job = replace(scenario.job, step_times=None)
    if job.model is None:
        return None
    found = device_time(replace(scenario, jobs=(job,)))
    total = None if found is None else float(found.total)
    return total or None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Answer of `plan whatif`; parts that were not requested are None.

    `turned` are the amounts that were varied to find changes of the bottleneck, `flips`.
    """

    margins: Margins
    flips: Sequence[Flip]
    turned: Sequence[Knob] = ()
    generations: Sequence[Generation] | None = None
    tornado: Sensitivity | None = None


def prices_of(texts: Sequence[str], known: Sequence[KnobStep]) -> dict[str, UsdPerSecond]:
    """Parse the prices of changes, by name [$/s], from texts such as ``vCPUs x2=$0.50/h``.

    Raises
    ------
    InputError
        If a text has no price, or there is no such change.
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
    """Return the accelerators that match a list of names and patterns; ``all`` matches all.

    Parameters
    ----------
    text : str
        List such as ``l4,a100*``, with or without ``gpu/``.
    known : sequence of str
        Names of accelerators in the catalogue.

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
