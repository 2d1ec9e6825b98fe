"""Invariants of every prediction: a figure that violates one is a bug of `plan`.

Each invariant compares a finished prediction with its simulation input. `predict` calls
`check_invariants` on every prediction before it returns it.

Tolerances cover rounding alone. The engine's clock is a sum of up to some 10^5 floats, each good
to 2^-53 of the clock's reading, and a run counts as steady when its steps agree to 10^-9
(`engine.recorder.SAME_STEP`), by which the composed run may then be off: `ROUNDING` of the
figure covers both. Where samples are drawn, the drawn work differs from its mean by chance, so a
run may be shorter than its bound by that much, see `chance`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Final, NamedTuple, TypeAlias

from simulator.engine.recorder import PRECISION
from simulator.engine.run import SimulationInput, usage_of_units
from simulator.errors import BrokenInvariant
from simulator.physics.footprint import verdict
from simulator.pipeline.loads import fastest_batch, unit_loads
from simulator.pipeline.run_length import checkpoint_loads
from simulator.pipeline.stages.base import PRODUCERS, Path, Phase, Resource
from simulator.pipeline.topology import Location
from simulator.results.metrics import JOB_METRICS, Metric
from simulator.results.prediction import Prediction
from simulator.units import BYTE, SECOND, Seconds, in_common, show

ROUNDING: Final = 1e-7
"""Relative difference that rounding can cause."""
SIGMAS: Final = 6.0
"""Standard deviations allowed to chance: one normal draw in 10^9 lies beyond."""
NORMAL_95: Final = 1.96
"""Half-width of a 95% interval of a normal distribution over its standard deviation."""
INFINITE: Final = frozenset({"break_even_epochs"})
"""Metrics that may be infinite: break-even of staging that never pays off."""

REMOTE: Final = frozenset({Path.STORE_TO_HOST, Path.HOST_TO_STORE, Path.HOST_TO_TRAINER})
"""Paths on which bytes of stores, checkpoints and remote workers reach or leave a machine."""

Check: TypeAlias = Callable[[SimulationInput, Prediction], Iterator[str]]


class Invariant(NamedTuple):
    """A condition on predictions; `broken` yields the offending metrics of each violation."""

    name: str
    broken: Check


class Violation(NamedTuple):
    """A violated invariant and the offending figures."""

    invariant: str
    figures: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.figures}"


def violations(
    inputs: SimulationInput, prediction: Prediction, invariants: Sequence[Invariant]
) -> tuple[Violation, ...]:
    """Return all violations of a prediction.

    Parameters
    ----------
    inputs : SimulationInput
        Units, demands and lengths that were simulated.
    prediction : Prediction
        The result, with or without intervals.
    invariants : sequence of Invariant
        Those to check, such as `INVARIANTS`.
    """
    found: list[Violation] = []
    for invariant in invariants:
        found += [
            Violation(invariant.name, figures) for figures in invariant.broken(inputs, prediction)
        ]
        if found and invariant in BASIC:
            break
    return tuple(found)


def check_invariants(
    inputs: SimulationInput, prediction: Prediction, invariants: Sequence[Invariant]
) -> None:
    """Raise an error if a prediction violates any of `invariants`.

    Raises
    ------
    BrokenInvariant
        With the violated invariants, their figures and the scenario's name.
    """
    violated = violations(inputs, prediction, invariants)
    if violated:
        listed = "; ".join(map(str, violated))
        msg = f"the prediction of '{prediction.scenario.name}' contradicts itself: {listed}"
        raise BrokenInvariant(msg)


def _finite(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    for metric, name, number in _numbers(prediction):
        allowed = metric.name in INFINITE and number == math.inf
        if not (math.isfinite(number) or allowed):
            yield f"{name} = {number}"


def _negative(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    rounding = -ROUNDING * prediction.timing.step_time.mean
    for metric, name, number in _numbers(prediction):
        least = rounding if metric.name.startswith(("step_split_s.", "communication_s.")) else 0.0
        if number < least and not metric.signed:
            yield f"{name} = {number}"


def _numbers(prediction: Prediction) -> Iterator[tuple[Metric, str, float]]:
    """Yield the numbers of all metrics, with the full name of each."""
    for metric in JOB_METRICS:
        value = metric.get(prediction)
        parts = value if isinstance(value, Mapping) else {"": value}
        for part, number in parts.items():
            if not isinstance(number, str) and number is not None:
                yield metric, f"{metric.name}{part and '.' + part}", number


def _takes_time(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    timing = prediction.timing
    shown = {
        "step_time_s.mean": timing.step_time.mean,
        "first_step_s": timing.first_step,
        "epoch_time_s": timing.epoch_time,
        "total_time_s": timing.total_time,
        "throughput_samples_per_s": timing.throughput,
    }
    for name, value in shown.items():
        if value <= 0.0:
            yield f"{name} = {value}"


def _in_order(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    steps = prediction.timing.step_time
    if not steps.p50 <= steps.p95 <= steps.p99:
        yield f"step_time_s: p50 {steps.p50}, p95 {steps.p95}, p99 {steps.p99}"


def _interval_in_order(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    for name, band in prediction.interval.items():
        low, middle, high = (band[point] for point in ("p10", "p50", "p90"))
        if not (math.isfinite(low) and low <= middle <= high < math.inf):
            yield f"interval of {name}: p10 {low}, p50 {middle}, p90 {high}"


def _at_least_the_bound(inputs: SimulationInput, prediction: Prediction) -> Iterator[str]:
    total, steps = prediction.timing.total_time, prediction.total_steps
    least = prediction.bounds.lower * steps
    if total < least * (1.0 - _slack(prediction)):
        yield f"total {_time(total)}, bound {_time(least)} over {steps} steps"
    once = inputs.extras.once
    if total < once * (1.0 - ROUNDING):
        yield f"total {_time(total)}, of which {_time(once)} outside the epochs"


def _step_within_epoch(inputs: SimulationInput, prediction: Prediction) -> Iterator[str]:
    timing = prediction.timing
    step = timing.step_time.mean - inputs.extras.per_step
    longest = max(timing.first_epoch_time, timing.epoch_time)
    if step > longest / (1.0 - _slack(prediction)):
        yield f"step {_time(step)}, epoch {_time(longest)}"


def _bounds_in_order(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    lower, upper = prediction.bounds.lower, prediction.bounds.upper
    if lower > upper * (1.0 + ROUNDING):
        yield f"lower {_time(lower)}, upper {_time(upper)} a step"


def _within_capacity(inputs: SimulationInput, prediction: Prediction) -> Iterator[str]:
    timing, lengths = prediction.timing, inputs.lengths
    batches = lengths.batches - 1.0 + lengths.last_share
    again = lengths.epochs > 1.0
    epochs = {Phase.COLD: timing.first_epoch_time}
    if again:
        epochs[Phase.WARM] = timing.epoch_time
    for phase, time in epochs.items():
        most = time * (1.0 + ROUNDING) / (1.0 - _slack(prediction))
        if batches * float(fastest_batch(inputs.topology, inputs.demands[phase])) > most:
            yield from _overloaded(inputs, phase, batches, time)


def _overloaded(
    inputs: SimulationInput, phase: Phase, batches: float, time: Seconds
) -> Iterator[str]:
    """Name the most overloaded unit of an epoch."""
    stages = inputs.demands[phase]
    groups = {stage.group for stage in stages if stage.actor in PRODUCERS}
    busy = {
        unit: batches * float(load) / max(1, len(groups))
        for unit, load in unit_loads(inputs.topology, stages).items()
    }
    unit = max(busy, key=lambda name: busy[name])
    yield f"'{unit}' needs {_time(busy[unit])} for an epoch of {_time(time)}"


def _stays_in_machine(inputs: SimulationInput, prediction: Prediction) -> Iterator[str]:
    """Yield what a single training machine sends to other machines without need."""
    if in_common(prediction.scenario.cluster.trainers.count) > 1:
        return
    topology = inputs.topology
    networks = {name for name, u in topology.units.items() if u.resource is Resource.NETWORK}
    for phase, stages in inputs.demands.items():
        asked = ((one.stage, demand) for one in stages for demand in one.demands)
        for name, demand in asked:
            if demand.path in REMOTE:
                continue
            way = topology.way(demand, Location(rank=0))
            sent = float(demand.amount) * sum(float(use) for unit, use in way if unit in networks)
            if sent > ROUNDING * float(demand.amount):
                yield f"'{name}' ({phase}) sends {show(sent, BYTE)} over the network"


def _carries_its_bytes(inputs: SimulationInput, prediction: Prediction) -> Iterator[str]:
    """Compare the use of stores, links, networks and memory with the bytes of a step.

    Utilization x rate x step = bytes of a step, counted here from the demands. Batches in flight
    at the ends of the steady window belong to other steps. Of several groups that make batches it
    is not known which makes how many, so that jobs with several are left out.
    """
    timing, topology, lengths = prediction.timing, inputs.topology, inputs.lengths
    stages = inputs.demands[Phase.WARM if lengths.epochs > 1.0 else Phase.COLD]
    producing = {stage.group for stage in stages if stage.actor in PRODUCERS}
    if timing.steady_steps == 0 or len(producing) > 1:
        return
    step, batches = timing.step_time.mean, lengths.accumulation
    loads = unit_loads(topology, stages)
    written = checkpoint_loads(inputs.scenario, topology, timing.checkpoints, timing.saving)
    needed = {
        unit: (batches * float(loads.get(unit, 0.0)) + written.get(unit, 0.0)) / step
        for unit in topology.units
    }
    allowed = _slack(prediction) + _steps_in_flight(prediction) / timing.steady_steps
    for name, expected in usage_of_units(topology, needed).items():
        found = timing.usage[name]
        for many, most in ((found.total, expected.total), (found.busiest, expected.busiest)):
            if abs(many - most) > allowed * most + ROUNDING:
                yield f"{name} carries {many:.6g} of its capacity, a step needs {most:.6g}"
                break


def _steps_in_flight(prediction: Prediction) -> float:
    """Return the steps whose batches may be in flight at one end of a window of steps.

    A simulated batch may be all micro-batches of a step; the last step may be a partial one.
    """
    job = prediction.scenario.job
    helpers = 0 if job.remote is None else job.remote.queue + job.remote.workers
    return 2.0 + job.input.policy.credits + helpers


def _busy_at_most_always(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    timing = prediction.timing
    for name, usage in timing.usage.items():
        most = max(usage.mean, usage.busiest, usage.total / max(1, usage.units))
        if most > 1.0 + ROUNDING:
            yield f"{name} is {most:.9g} busy"
    busy = timing.accelerator_utilization
    if busy is not None and busy > 1.0 + ROUNDING:
        yield f"accelerator_utilization = {busy}"
    if prediction.cache_hit_ratio > 1.0 + ROUNDING:
        yield f"cache_hit_ratio = {prediction.cache_hit_ratio}"


def _adds_up(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    mean, parts = prediction.timing.step_time.mean, astuple(prediction.timing.split)
    if abs(sum(parts) - mean) > ROUNDING * mean:
        names = [one.name for one in fields(prediction.timing.split)]
        listed = ", ".join(f"{n} {p:.6g}" for n, p in zip(names, parts, strict=True) if p)
        yield f"step {_time(mean)}, parts {listed} s"


def _holds_its_parts(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    fits = {"host RAM": prediction.host_ram, "accelerator": prediction.memory}
    for name, fit in fits.items():
        if fit is None:
            continue
        total, most = float(fit.total), max(fit.items.values(), default=0.0)
        if total < most * (1.0 - ROUNDING):
            yield f"{name}: {total:.9g} B in all, one item {most:.9g} B"
        # Helpers may have less free RAM than the machine shown, not the reverse.
        waste, off = fit.items.get("fragmentation", 0.0), getattr(fit, "log_sd", 0.0)
        own = verdict(total, fit.capacity, waste, off)
        if fit.verdict != own and not (name == "host RAM" and prediction.scenario.job.remote):
            yield f"{name}: {total:.9g} of {fit.capacity:.9g} B is said to fit: {fit.verdict}"
    memory = prediction.memory
    if memory is not None and memory.stages:
        fullest = max(memory.stages.values())
        if fullest > float(memory.total) * (1.0 + ROUNDING):
            yield f"a stage of the pipeline holds {fullest:.9g} B, the fullest {memory.total:.9g} B"


def _billed(_: SimulationInput, prediction: Prediction) -> Iterator[str]:
    cost, timing = prediction.cost, prediction.timing
    if cost.time_to_train < timing.total_time * (1.0 - ROUNDING):
        yield f"billed {_time(cost.time_to_train)} of {_time(timing.total_time)}"
    if cost.per_second is None or cost.for_machines is None:
        return
    least = cost.per_second * timing.total_time
    if cost.for_machines < least * (1.0 - ROUNDING):
        yield f"${cost.for_machines:.9g} for what takes ${least:.9g} of machine time"
    whole = prediction.in_all
    if whole is not None and whole < cost.for_machines * (1.0 - ROUNDING):
        yield f"${whole:.9g} in all, ${cost.for_machines:.9g} of it for machines"


def _slack(prediction: Prediction) -> float:
    """Return the fraction by which a run may be shorter than its bound: rounding and chance."""
    return min(0.5, ROUNDING + chance(prediction))


def chance(prediction: Prediction) -> float:
    """Return the share by which drawn work may fall short of its mean.

    The mean of n draws has 1/sqrt(n) of the deviation of one. At least a quarter of the simulated
    steps (the engine's steady window, of one of two epochs) represent all others, with the samples
    of one rank at least. Bursts at the ends of that window are in its own confidence interval; for
    a first epoch, whose interval `Timing` does not hold, it is the one at which the engine stops.
    """
    job, timing = prediction.scenario.job, prediction.timing
    spreads = (job.dataset.size_spread, job.input.cost_spread)
    deviation = max((s.deviation for s in spreads if s.varies), default=0.0)
    if deviation == 0.0 and timing.half_width == 0.0:
        return 0.0
    drawn = job.train.batch_size * job.train.accumulation * max(1.0, timing.simulated_steps / 4.0)
    half_width = max(timing.half_width / timing.step_time.mean, PRECISION)
    return SIGMAS * max(deviation / math.sqrt(drawn), half_width / NORMAL_95)


def _time(seconds: Seconds) -> str:
    return show(float(seconds), SECOND, digits=6)


BASIC: Final = (
    Invariant("steps and runs take time", _takes_time),
    Invariant("every figure is finite", _finite),
)
"""Invariants that the others rely on."""
INVARIANTS: Final = (
    *BASIC,
    Invariant("no figure is negative", _negative),
    Invariant("percentiles are in order", _in_order),
    Invariant("no run is shorter than its lower bound", _at_least_the_bound),
    Invariant("no step is longer than its epoch", _step_within_epoch),
    Invariant("the lower bound is at most the upper one", _bounds_in_order),
    Invariant("nothing carries more than its capacity", _within_capacity),
    Invariant("the devices of one machine send nothing over the network", _stays_in_machine),
    Invariant("nothing is busy more than always", _busy_at_most_always),
    Invariant("what is carried is what a step reads and sends", _carries_its_bytes),
    Invariant("the parts of a step add up to it", _adds_up),
    Invariant("memory holds its parts", _holds_its_parts),
    Invariant("the bill covers the run", _billed),
)
"""Invariants of the figures."""
INTERVAL_INVARIANTS: Final = (Invariant("intervals are in order, and finite", _interval_in_order),)
"""Invariants of the intervals."""
