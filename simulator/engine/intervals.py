"""Intervals of a prediction: the same job at many plausible rates.

Every uncertainty component of the scenario is a rate that may be faster or slower. At each of
`POINTS` points of a quasi-random set all rates are drawn at once, and the closed form gives the
slowdown of the step: the slowest of all resources, of all serial actors, and of the exposed parts
of a simulated step. Where the simulated step is longer than that, the shorter of loading and
consuming a batch is added with the share that explains it. That ratio multiplies the simulated
metric: one simulation gives the level, the closed form the slopes. A test compares it with
simulations at other rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from simulator.engine.run import SimulationInput
from simulator.equations.step import step_time
from simulator.pipeline.loads import (
    TINY,
    actor_times,
    least_step,
    limiting_time,
    longest,
    producer_count,
    unit_loads,
)
from simulator.pipeline.run_length import worker_start
from simulator.pipeline.stages.base import PRODUCERS, Actor, Phase, Resource, StageDemands
from simulator.pipeline.topology import (
    RATE_OF,
    Speeds,
    Topology,
    scale_stage,
    scale_topology,
)
from simulator.records import dataclass
from simulator.results.cost import bill_of_stores, paid_time
from simulator.results.energy import LOG_SD as POWER_LOG_SD
from simulator.results.energy import electricity_of, energy_of, joules_per_step
from simulator.results.metrics import JOB_METRICS
from simulator.results.prediction import Cost, Prediction, StepSplit, Timing
from simulator.schema.provenance import Source
from simulator.schema.uncertainty import (
    Rate,
    UncertaintyComponent,
    covariance,
    normal_points,
    within_reason,
)
from simulator.units import Real, Seconds

BITS: Final = 8
"""Logarithm of the number of points: the ends of an 80% interval are exact to about 1% of its
width."""
QUANTILES: Final = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
P10_TO_P90: Final = 2.5631
"""From the 10% to the 90% quantile of a normal distribution over its standard deviation."""
HALF_WIDTH: Final = 1.96
"""Half-width of a 95% interval of a normal distribution over its standard deviation."""

BY_CHANCE: Final = "run to run"
"""Name of the uncertainty that a simulation with chance leaves."""
_SIMULATED: Final = Source(reference="half-width of the simulated mean step", date="undated")

MIN_WAIT_SHARE: Final = 0.005
"""Share of a step beyond its slowest part from which waiting for each other counts."""
SUPPLY: Final = PRODUCERS | {Actor.PIN_MEMORY}
"""Actors that make batches and pass them on."""

Vector: TypeAlias = NDArray[np.float64]
_ONE_OFF: Final = {"placing the data": Rate.STORAGE, "preparing the data": Rate.WORKERS}
"""Rates of one-off parts; others scale with the step or are stated."""
_ENERGIES: Final = ("energy.", "cost.energy")
"""Prefixes of figures that scale with power."""
_BILLED_ENERGY: Final = frozenset(
    {"cost.usd_to_train", "cost.usd_for_machines", "cost.usd_with_storage"}
)
"""Bills that include the electricity of owned machines."""
_STATED: Final = frozenset({"start-up", "shut-down"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """Slowdown at each sampled point: of a warm step, of a cold step, and of the first step."""

    step: Vector
    cold: Vector
    first: Vector


def with_intervals(inputs: SimulationInput, prediction: Prediction) -> Prediction:
    """Return the prediction with the 10%, 50% and 90% quantiles of each uncertain metric.

    It is returned without quantiles if the scenario has no uncertainty and the simulation no
    randomness.

    Parameters
    ----------
    inputs : SimulationInput
        The simulation input; its scenario holds the uncertainties.
    prediction : Prediction
        The prediction at the nominal rates; its seed is that of the sampled points.
    """
    found: dict[str, dict[str, float]] = {}
    uncertainties = uncertainty_components(inputs, prediction)
    if uncertainties:
        seed = prediction.seed or 0
        speeds = draw(uncertainties, seed)
        drawn = figures(inputs, prediction, speeds, chance=_share_of_chance(uncertainties))
        drawn |= _with_power(prediction, drawn, seed)
        table = np.quantile(list(drawn.values()), list(QUANTILES.values()), axis=1, method="hazen")
        found = {
            name: dict(zip(QUANTILES, column.tolist(), strict=True))
            for name, column in zip(drawn, table.T, strict=True)
        }
    fit = prediction.memory
    if fit is not None and fit.log_sd > 0.0 and fit.known_verdict is not None:
        low, high = fit.band
        found["gpu_memory_bytes.total"] = {"p10": low, "p50": float(fit.total), "p90": high}
    return replace(prediction, interval=found)


def _with_power(
    prediction: Prediction, drawn: Mapping[str, Vector], seed: int
) -> dict[str, Vector]:
    """Return energy metrics, and costs with electricity, with uncertain power draw."""
    # Power is not correlated with rates of the step, so its points are permuted.
    points = np.random.default_rng(seed).permutation(normal_points(BITS, 1, seed)[:, 0])
    off = np.exp(POWER_LOG_SD * points)
    found: dict[str, Vector] = {}
    for metric in JOB_METRICS:
        value = drawn.get(metric.name, metric.get(prediction))
        if value is None or isinstance(value, str | Mapping):
            continue
        if metric.name.startswith(_ENERGIES):
            found[metric.name] = off * value
        elif metric.name in _BILLED_ENERGY and prediction.cost.electricity:
            found[metric.name] = value + prediction.cost.electricity * (off - 1.0)
    return found


def uncertainty_components(
    inputs: SimulationInput, prediction: Prediction
) -> tuple[UncertaintyComponent, ...]:
    """Return all uncertainty components of a prediction, as ratios; empty if all are 0.

    They are the components of the scenario, run-to-run chance, and a remainder that raises the
    uncertainty of the whole step to the smallest one that the evidence allows.
    """
    timing = prediction.timing
    mean, first = timing.step_time.mean, timing.first_steps[0] or timing.first_step
    stated = (
        component.for_step(first if component.rate is Rate.START else mean)
        for component in inputs.scenario.uncertainties
    )
    by_chance = []
    if timing.half_width > 0.0 and mean > 0.0:
        deviation = timing.half_width / HALF_WIDTH / mean
        by_chance.append(
            UncertaintyComponent(
                name=BY_CHANCE, rate=Rate.STEP, log_sd=deviation, source=_SIMULATED
            )
        )
    uncertainties = (*stated, *by_chance)
    if not any(component.log_sd > 0.0 for component in uncertainties):
        return ()
    longer = slowdown(inputs, timing, draw(uncertainties, prediction.seed or 0)).step
    component = max(uncertainties, key=lambda d: d.least)
    low, high = np.quantile(longer, [0.1, 0.9], method="hazen")
    lacks = component.least**2 - (float(np.log(high / low)) / P10_TO_P90) ** 2
    if lacks <= 0.0:
        return uncertainties
    whole = replace(component, name="the step as a whole", rate=Rate.STEP, log_sd=math.sqrt(lacks))
    return (*uncertainties, whole)


def figures(
    inputs: SimulationInput, prediction: Prediction, speeds: Speeds, *, chance: float = 0.0
) -> dict[str, Vector]:
    """Return the metrics that change at other rates, with one value for each sampled point.

    Parameters
    ----------
    inputs, prediction : SimulationInput, Prediction
        Simulation input and prediction at the nominal rates.
    speeds : mapping of Rate to array
        Factor on each rate at each point; rates that are not given stay nominal.
    chance : float, optional
        Share of the variance of `Rate.STEP` that is run-to-run chance, which makes no step shorter
        than its slowest resource or serial actor allows.
    """
    longer = slowdown(inputs, prediction.timing, speeds)
    longer = _begun(inputs, prediction.timing, longer, speeds)
    if chance > 0.0:
        longer = _no_shorter(inputs, prediction.timing, longer, speeds, chance)
    timing = _drawn_timing(inputs, prediction.timing, longer, speeds)
    usage = {
        name: replace(used, mean=_number(_drawn_usage(name, used.mean, longer.step, speeds)))
        for name, used in prediction.timing.usage.items()
    }
    working = replace(timing, usage=usage)
    cost = _drawn_cost(prediction, working, longer.step)
    energy = energy_of(prediction.scenario, working)
    # With arrays for numbers, every metric is computed for all points at once.
    storage = bill_of_stores(prediction.scenario, timing)
    drawn = replace(prediction, timing=timing, cost=cost, energy=energy, storage=storage)
    found: dict[str, object] = {metric.name: metric.get(drawn) for metric in JOB_METRICS}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


def _drawn_usage(name: str, mean: float, longer: Vector, speeds: Speeds) -> Vector:
    """Return the utilization of a resource in longer steps, at other rates.

    Stores and links carry constant bytes at their own rate, processors do constant work. An error
    of the step as a whole may make it shorter than a full resource allows, which then stays full.
    """
    resource = Resource(name.rpartition(".")[2])
    processor = resource in {Resource.GPU, Resource.CPU}
    rate = 1.0 if processor else speeds.get(RATE_OF[resource], 1.0)
    return np.minimum(1.0, mean / longer / rate)


def _begun(inputs: SimulationInput, timing: Timing, longer: Slowdown, speeds: Speeds) -> Slowdown:
    """Limit the slowdown of the first step: it takes at least the work of a later step.

    The start-up time of a program is far less certain than the time of its steps.
    """
    points = len(longer.step)
    split = replace(timing.split, data_stall=0.0, checkpoint=0.0, other=0.0)
    working = _Times(inputs, split, Phase.COLD, _known(speeds, points)).working
    begun = min(timing.first_step, float(step_time(**asdict(split)))) / max(TINY, timing.first_step)
    least = begun * _ratio(np.maximum(TINY, working), points) / speeds.get(Rate.STEP, 1.0)
    return replace(longer, first=np.maximum(longer.first, least))


def _no_shorter(
    inputs: SimulationInput, timing: Timing, longer: Slowdown, speeds: Speeds, chance: float
) -> Slowdown:
    """Limit steps to at least the time of the slowest resource, as chance makes none shorter.

    `chance` is the share of run-to-run chance in the variance of the step; the expected part of
    chance in a sampled deviation is the same share.
    """
    points = len(longer.step)
    without = {**speeds, Rate.STEP: speeds[Rate.STEP] ** (1.0 - chance)}

    def shortest(phase: Phase, mean: Seconds) -> Vector:
        times = _Times(inputs, timing.split, phase, _known(without, points))
        stages = inputs.demands[phase]
        least = float(least_step(inputs.scenario, inputs.topology, stages))
        ratio = _ratio(np.maximum(TINY, times.slowest), points) / without[Rate.STEP]
        return min(1.0, least / mean) * ratio

    later = Phase.WARM if _again(inputs) else Phase.COLD
    return replace(
        longer,
        step=np.maximum(longer.step, shortest(later, timing.step_time.mean)),
        cold=np.maximum(longer.cold, shortest(Phase.COLD, _at_first(inputs, timing))),
    )


def _again(inputs: SimulationInput) -> bool:
    """Return True if later epochs differ from the first."""
    demands = inputs.demands
    return inputs.lengths.epochs > 1.0 and demands[Phase.WARM] != demands[Phase.COLD]


def _at_first(inputs: SimulationInput, timing: Timing) -> Seconds:
    """Return the mean step of the first epoch [s]."""
    if not _again(inputs):
        return timing.step_time.mean
    return timing.first_epoch_time / inputs.lengths.steps


def _drawn_timing(
    inputs: SimulationInput, timing: Timing, longer: Slowdown, speeds: Speeds
) -> Timing:
    """Return the timing with each uncertain time as an array over the sampled points.

    `longer` is the slowdown of steps at these points, `speeds` the factors on the rates.
    """
    busy = timing.accelerator_utilization
    if busy is not None:
        busy = _number(np.minimum(1.0, busy / speeds.get(Rate.DEVICE, 1.0) / longer.step))
    first, later = (time * longer.first for time in timing.first_steps)
    first_epoch, epoch = _epochs(timing, longer)
    return replace(
        timing,
        split=_drawn_split(inputs, timing, speeds),
        step_time=replace(timing.step_time, mean=_number(timing.step_time.mean * longer.step)),
        first_step=_number(timing.first_step * longer.first),
        first_steps=(_number(first), _number(later)),
        epoch_time=_number(epoch),
        first_epoch_time=_number(first_epoch),
        total_time=_number(_total(inputs, timing, longer, speeds)),
        throughput=_number(timing.throughput / longer.step),
        accelerator_utilization=busy,
    )


def _drawn_split(inputs: SimulationInput, timing: Timing, speeds: Speeds) -> StepSplit:
    """Return the step's parts, communication and checkpoints as arrays over the sampled points.

    The other parts stay as they are at the nominal rates: rates that are shared decide them.
    """
    split, whole = timing.split, speeds.get(Rate.STEP, 1.0)
    points = max((np.size(speed) for speed in speeds.values()), default=1)
    later = Phase.WARM if _again(inputs) else Phase.COLD
    times = _Times(inputs, split, later, _known(speeds, points))
    parts = {
        "communication": times.communication,
        "checkpoint": split.checkpoint / times.speed(Rate.CHECKPOINT),
    }
    drawn = {
        name: _number(getattr(split, name) * _ratio(part, points) / whole)
        for name, part in parts.items()
        if getattr(split, name) > 0.0
    }
    return replace(split, **drawn)


def _epochs(timing: Timing, longer: Slowdown) -> tuple[Vector, Vector]:
    """Return the times of the first and of a later epoch [s], each with its own first step."""
    first, later = timing.first_steps
    cold = first * longer.first + (timing.first_epoch_time - first) * longer.cold
    return cold, later * longer.first + (timing.epoch_time - later) * longer.step


def _drawn_cost(prediction: Prediction, timing: Timing, longer: Vector) -> Cost:
    """Return the cost at each sampled point; prices are taken as certain, times are not."""
    cost, figured = prediction.cost, prediction.timing
    paid, energy = cost.for_machines, cost.energy_per_step
    if paid is not None and cost.per_second is not None:
        drawn_time, time = (paid_time(prediction.scenario, t.total_time) for t in (timing, figured))
        paid += _number((drawn_time - time) * cost.per_second)
        drawn = electricity_of(prediction.scenario, timing)
        if drawn is not None and cost.electricity is not None:
            paid += _number(drawn.value - cost.electricity)
    if energy is not None:
        drawn = joules_per_step(prediction.scenario, timing)
        energy = energy if drawn is None else _number(drawn.value + 0.0 * longer)
    return replace(
        cost,
        per_step=None if cost.per_step is None else _number(cost.per_step * longer),
        samples_per_usd=cost.samples_per_usd
        and _number(cost.samples_per_usd * figured.epoch_time / timing.epoch_time),
        for_machines=paid,
        time_to_train=timing.total_time,
        energy_per_step=energy,
    )


def _number(points: Real) -> float:
    return cast("float", points)


def draw(uncertainties: Sequence[UncertaintyComponent], seed: int) -> Speeds:
    """Sample a factor on each uncertain rate at each point; lognormal with median 1."""
    rates = [rate for rate in Rate if any(d.rate is rate and d.log_sd > 0.0 for d in uncertainties)]
    known = [component for component in uncertainties if component.log_sd > 0.0]
    values, vectors = np.linalg.eigh(within_reason(covariance(known, rates)))
    root = vectors * np.sqrt(np.maximum(0.0, values)) @ vectors.T
    places = [list(Rate).index(rate) for rate in rates]
    drawn = normal_points(BITS, len(Rate), seed)[:, places] @ root
    return {rate: np.exp(drawn[:, i]) for i, rate in enumerate(rates)}


def _share_of_chance(uncertainties: Sequence[UncertaintyComponent]) -> float:
    """Return the share of run-to-run chance in the variance of the whole step."""
    own = {
        component.name: component.log_sd**2
        for component in uncertainties
        if component.rate is Rate.STEP
    }
    return own.get(BY_CHANCE, 0.0) / max(TINY, sum(own.values()))


def slowdown(inputs: SimulationInput, timing: Timing, speeds: Speeds) -> Slowdown:
    """Return the slowdown of steps at other speeds.

    Parameters
    ----------
    inputs, timing : SimulationInput, Timing
        Simulation input and result.
    speeds : mapping of Rate to float or array
        Factor on each rate at each point; rates that are not given stay nominal.
    """
    points = max((np.size(speed) for speed in speeds.values()), default=1)
    known = _known(speeds, points)
    begun = _Times(inputs, timing.split, Phase.COLD, known)
    cold = _ratio(_step(begun, _at_first(inputs, timing)), points)
    warm = cold
    if _again(inputs):
        later = _Times(inputs, timing.split, Phase.WARM, known)
        warm = _ratio(_step(later, timing.step_time.mean), points)
    whole = speeds.get(Rate.STEP, 1.0)
    return Slowdown(
        step=warm / whole,
        cold=cold / whole,
        first=_ratio(begun.first, points) / whole / speeds.get(Rate.START, 1.0),
    )


def _known(speeds: Speeds, points: int) -> Speeds:
    """Prepend the nominal rate (factor 1) to the sampled factors of each rate."""
    return {
        rate: np.concatenate(([1.0], np.broadcast_to(speed, points)))
        for rate, speed in speeds.items()
    }


def _step(times: _Times, mean: Seconds) -> Real:
    """Return the closed-form step time at each sampled point, up to a common factor.

    `mean` is the mean step time of the simulation [s].
    """
    longest = np.maximum(TINY, times.slowest)
    if _figured(times.working) > _figured(longest) * (1.0 + MIN_WAIT_SHARE):
        # Exposed parts count only if the slowest resource does not explain the step.
        longest = np.maximum(longest, times.working)
    beside = mean - _figured(longest)
    if beside <= MIN_WAIT_SHARE * mean:
        return longest
    # Loading and consuming overlap only in theory: a part of the shorter one is added.
    hidden = min(beside, _figured(times.shorter))
    on_top = hidden * times.shorter / _figured(times.shorter)
    return longest + on_top + (beside - hidden) * times.waiting


def _figured(times: Real) -> Seconds:
    """Return the time at the nominal rates, which is the first element [s]."""
    return float(np.atleast_1d(times)[0])


def _ratio(times: Real, points: int) -> Vector:
    """Return the ratio of the sampled times to the nominal time."""
    every = np.broadcast_to(times, points + 1)
    longer: Vector = every[1:] / every[0]
    return longer


class _Times:
    """Closed-form times of a step [s]: at the nominal rates, then at each sampled point."""

    def __init__(
        self, inputs: SimulationInput, split: StepSplit, phase: Phase, speeds: Speeds
    ) -> None:
        self._inputs, self._split, self._speeds = inputs, split, speeds
        self._topology = scale_topology(inputs.topology, speeds)
        self._stages = tuple(scale_stage(stage, speeds) for stage in inputs.demands[phase])

    @cached_property
    def slowest(self) -> Real:
        """Time of the slowest resource or serial actor."""
        return limiting_time(self._inputs.scenario, self._topology, self._stages)

    @cached_property
    def working(self) -> Real:
        """Step time without data stall."""
        split, speeds = self._split, self._speeds
        return step_time(
            data_stall=0.0,
            h2d=split.h2d * self._slower(Actor.COPY_ENGINE, Rate.PCIE),
            compute=split.compute / speeds.get(Rate.DEVICE, 1.0),
            communication=self.communication,
            bubble=split.bubble / speeds.get(Rate.DEVICE, 1.0),
            checkpoint=split.checkpoint / speeds.get(Rate.CHECKPOINT, 1.0),
            other=split.other * self.waiting,
        )

    @property
    def communication(self) -> Real:
        """Exposed time of communication."""
        slower = self._slower(Actor.COMMUNICATION_STREAM, Rate.COLLECTIVES)
        return self._split.communication * slower

    def speed(self, rate: Rate) -> Real:
        """Return the factor on a rate."""
        return self._speeds.get(rate, 1.0)

    def _slower(self, actor: Actor, rate: Rate) -> Real:
        """Return the ratio of an actor's time to its time at the nominal rates."""
        alone = alone_time(self._topology, self._stages, actor)
        if _figured(alone) <= TINY:
            # No stage demands this actor, so only its rate is known.
            alone = 1.0 / self._speeds.get(rate, 1.0)
        return alone / _figured(alone)

    @cached_property
    def waiting(self) -> Real:
        """Factor by which idle waits are longer at the drawn rates than at the nominal ones."""
        return 1.0 / self._speeds.get(Rate.WAITING, 1.0)

    @cached_property
    def shorter(self) -> Real:
        """The shorter of the time to load a batch and the time to consume it."""
        making = [stage for stage in self._stages if stage.actor in SUPPLY]
        made = limiting_time(self._inputs.scenario, self._topology, making)
        return np.maximum(TINY, np.minimum(made, self.working))

    @cached_property
    def first(self) -> Real:
        """Time of the first batch from the start of the workers to the end of its compute."""
        scenario, topology, stages = self._inputs.scenario, self._topology, self._stages
        groups = {stage.group for stage in stages if stage.actor in PRODUCERS}
        made: Real = 0.0
        for group in groups:
            own = [stage for stage in stages if stage.actor in PRODUCERS and stage.group == group]
            alone = sum(actor_times(topology, own, Actor.WORKER, group).values(), 0.0)
            at_once = max(1, producer_count(scenario, topology, group))
            crowded = longest(unit_loads(topology, own).values()) * at_once
            made = np.maximum(made, np.maximum(alone, crowded))
        then = (
            alone_time(topology, stages, actor)
            for actor in (Actor.SENDER, Actor.PIN_MEMORY, Actor.COPY_ENGINE, Actor.COMPUTE_STREAM)
        )
        return np.maximum(TINY, worker_start(scenario) + made + sum(then, 0.0))


def alone_time(topology: Topology, stages: Sequence[StageDemands], actor: Actor) -> Real:
    """Return the time of one actor of a rank for a batch without contention [s]."""
    return sum(actor_times(topology, stages, actor).values(), 0.0)


def _total(inputs: SimulationInput, timing: Timing, longer: Slowdown, speeds: Speeds) -> Real:
    """Return the time of the whole run: one-off parts, the first epoch and all later epochs [s]."""
    parts, epochs = inputs.extras.parts, inputs.lengths.epochs
    first_epoch, epoch = _epochs(timing, longer)
    training = timing.total_time - sum(parts.values())
    cold = min(training, min(1.0, epochs) * timing.first_epoch_time)
    total: Real = cold * first_epoch / max(TINY, timing.first_epoch_time)
    total = total + (training - cold) * epoch / max(TINY, timing.epoch_time)
    for name, time in parts.items():
        pace = longer.step if name not in _ONE_OFF else 1.0 / speeds.get(_ONE_OFF[name], 1.0)
        total = total + time * (1.0 if name in _STATED else pace)
    return total
