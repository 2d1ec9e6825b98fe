"""What no prediction may break, whatever the scenario: a number that does is a bug, not an answer.

Each law looks at a finished prediction beside the question it answers, and tells what breaks it.
`obey` is asked by `predict` for every prediction before anybody sees it.

Tolerances are for rounding alone. The engine's clock is a sum of up to some 10^5 floats, each good
to 2^-53 of the clock's reading, and a run counts as steady when its steps agree to 10^-9
(`engine.watch.SAME`), by which the composed run may then be off: `ROUNDING` of the figure covers
both. Where samples are drawn, the work that was drawn differs from its mean by chance; a run may
then be shorter than its bound by what chance explains, see `chance`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Final, NamedTuple, TypeAlias

from simulator.engine.run import Question
from simulator.engine.steady_state import PRECISION
from simulator.errors import BrokenLaw
from simulator.physics.footprint import verdict
from simulator.pipeline.loads import fastest_batch, unit_loads
from simulator.pipeline.stages.base import MAKERS, Phase
from simulator.results.metrics import METRICS
from simulator.results.prediction import Prediction
from simulator.units import SECOND, Seconds, show

ROUNDING: Final = 1e-7
"""Relative difference that rounding explains."""
SIGMAS: Final = 6.0
"""Standard deviations that chance explains: beyond it lies one normal draw in 10^9."""
NORMAL_95: Final = 1.96
"""Half-width of a 95% interval of a normal distribution over its standard deviation."""
INFINITE: Final = frozenset({"break_even_epochs"})
"""Metrics that may be infinite: staging that never pays for itself."""

Check: TypeAlias = Callable[[Question, Prediction], Iterator[str]]


class Law(NamedTuple):
    """What must hold; `broken` tells with figures what breaks it, and nothing if it holds."""

    name: str
    broken: Check


class Violation(NamedTuple):
    """A law that a prediction breaks, and the figures that do."""

    law: str
    figures: str

    def __str__(self) -> str:
        return f"{self.law}: {self.figures}"


def violations(
    question: Question, prediction: Prediction, laws: Sequence[Law]
) -> tuple[Violation, ...]:
    """Everything in a prediction that cannot be so.

    Parameters
    ----------
    question : Question
        What was asked: units, demands and lengths.
    prediction : Prediction
        The answer, with or without intervals.
    laws : sequence of Law
        Those to look at, such as `LAWS`.
    """
    found: list[Violation] = []
    for law in laws:
        found += [Violation(law.name, figures) for figures in law.broken(question, prediction)]
        if found and law in FIRST:
            break
    return tuple(found)


def obey(question: Question, prediction: Prediction, laws: Sequence[Law]) -> None:
    """Let a prediction pass if it breaks none of `laws`.

    Raises
    ------
    BrokenLaw
        If it does: a bug of ours, told with the laws, the figures and the scenario's name.
    """
    found = violations(question, prediction, laws)
    if found:
        told = "; ".join(str(one) for one in found)
        msg = f"the prediction of '{prediction.scenario.name}' contradicts itself: {told}"
        raise BrokenLaw(msg)


def _finite(_: Question, prediction: Prediction) -> Iterator[str]:
    for metric in METRICS:
        value = metric.get(prediction)
        parts = value if isinstance(value, Mapping) else {"": value}
        for part, number in parts.items():
            if isinstance(number, str) or number is None:
                continue
            allowed = metric.name in INFINITE and number == math.inf
            if not (math.isfinite(number) or allowed):
                yield f"{metric.name}{part and '.' + part} = {number}"


def _negative(_: Question, prediction: Prediction) -> Iterator[str]:
    for metric in METRICS:
        value = metric.get(prediction)
        parts = value if isinstance(value, Mapping) else {"": value}
        least = -ROUNDING * prediction.timing.step_time.mean if _is_part(metric.name) else 0.0
        for part, number in parts.items():
            if not isinstance(number, str) and number is not None and number < least:
                yield f"{metric.name}{part and '.' + part} = {number}"


def _is_part(name: str) -> bool:
    """Whether a metric is a difference of times on a step's timeline, which takes up rounding."""
    return name.startswith(("step_split_s.", "communication_s."))


def _takes_time(_: Question, prediction: Prediction) -> Iterator[str]:
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


def _in_order(_: Question, prediction: Prediction) -> Iterator[str]:
    steps = prediction.timing.step_time
    if not steps.p50 <= steps.p95 <= steps.p99:
        yield f"step_time_s: p50 {steps.p50}, p95 {steps.p95}, p99 {steps.p99}"


def _interval_in_order(_: Question, prediction: Prediction) -> Iterator[str]:
    for name, band in prediction.interval.items():
        low, middle, high = (band[point] for point in ("p10", "p50", "p90"))
        if not (math.isfinite(low) and low <= middle <= high < math.inf):
            yield f"interval of {name}: p10 {low}, p50 {middle}, p90 {high}"


def _at_least_the_bound(question: Question, prediction: Prediction) -> Iterator[str]:
    total, steps = prediction.timing.total_time, prediction.total_steps
    least = prediction.bounds.lower * steps
    if total < least * (1.0 - _slack(prediction)):
        yield f"total {_time(total)}, bound {_time(least)} over {steps} steps"
    once = question.extras.once
    if total < once * (1.0 - ROUNDING):
        yield f"total {_time(total)}, of which {_time(once)} beside the epochs"


def _step_within_epoch(question: Question, prediction: Prediction) -> Iterator[str]:
    timing = prediction.timing
    step = timing.step_time.mean - question.extras.per_step
    longest = max(timing.first_epoch_time, timing.epoch_time)
    if step > longest / (1.0 - _slack(prediction)):
        yield f"step {_time(step)}, epoch {_time(longest)}"


def _bounds_in_order(_: Question, prediction: Prediction) -> Iterator[str]:
    lower, upper = prediction.bounds.lower, prediction.bounds.upper
    if lower > upper * (1.0 + ROUNDING):
        yield f"lower {_time(lower)}, upper {_time(upper)} a step"


def _within_capacity(question: Question, prediction: Prediction) -> Iterator[str]:
    timing, lengths = prediction.timing, question.lengths
    batches = lengths.batches - 1.0 + lengths.last_share
    again = lengths.epochs > 1.0
    epochs = {Phase.COLD: timing.first_epoch_time}
    if again:
        epochs[Phase.WARM] = timing.epoch_time
    for phase, time in epochs.items():
        most = time * (1.0 + ROUNDING) / (1.0 - _slack(prediction))
        if batches * float(fastest_batch(question.topology, question.demands[phase])) > most:
            yield from _overloaded(question, phase, batches, time)


def _overloaded(question: Question, phase: Phase, batches: float, time: Seconds) -> Iterator[str]:
    """Which unit would carry more in an epoch of so many batches than it can."""
    stages = question.demands[phase]
    groups = {stage.group for stage in stages if stage.actor in MAKERS}
    busy = {
        unit: batches * float(load) / max(1, len(groups))
        for unit, load in unit_loads(question.topology, stages).items()
    }
    unit = max(busy, key=lambda name: busy[name])
    yield f"'{unit}' needs {_time(busy[unit])} for an epoch of {_time(time)}"


def _busy_at_most_always(_: Question, prediction: Prediction) -> Iterator[str]:
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


def _adds_up(_: Question, prediction: Prediction) -> Iterator[str]:
    mean, parts = prediction.timing.step_time.mean, astuple(prediction.timing.split)
    if abs(sum(parts) - mean) > ROUNDING * mean:
        names = [one.name for one in fields(prediction.timing.split)]
        told = ", ".join(f"{n} {p:.6g}" for n, p in zip(names, parts, strict=True) if p)
        yield f"step {_time(mean)}, parts {told} s"


def _holds_its_parts(_: Question, prediction: Prediction) -> Iterator[str]:
    fits = {"host RAM": prediction.host_ram, "accelerator": prediction.memory}
    for name, fit in fits.items():
        if fit is None:
            continue
        total, most = float(fit.total), max(fit.items.values(), default=0.0)
        if total < most * (1.0 - ROUNDING):
            yield f"{name}: {total:.9g} B in all, one item {most:.9g} B"
        # Helpers may be shorter of RAM than the machine shown, never the other way round.
        waste, off = fit.items.get("fragmentation", 0.0), getattr(fit, "log_sd", 0.0)
        own = verdict(total, fit.capacity, waste, off)
        if fit.verdict != own and not (name == "host RAM" and prediction.scenario.job.remote):
            yield f"{name}: {total:.9g} of {fit.capacity:.9g} B is said to fit: {fit.verdict}"
    memory = prediction.memory
    if memory is not None and memory.stages:
        fullest = max(memory.stages.values())
        if fullest > float(memory.total) * (1.0 + ROUNDING):
            yield f"a stage of the pipeline holds {fullest:.9g} B, the fullest {memory.total:.9g} B"


def _billed(_: Question, prediction: Prediction) -> Iterator[str]:
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
    """Share by which a run may be shorter than its bound: rounding, and chance."""
    return min(0.5, ROUNDING + chance(prediction))


def chance(prediction: Prediction) -> float:
    """Share by which drawn work may fall short of its mean.

    The mean of n draws has 1/sqrt(n) of the deviation of one. Of the simulated steps at least a
    quarter stand for all others (the engine's steady window, of one of two epochs), with one
    rank's samples at least. Bursts at the ends of that window are in its own confidence interval:
    that of a first epoch, which `Timing` does not hold, is the one at which the engine stops.
    """
    job, timing = prediction.scenario.job, prediction.timing
    spreads = (job.dataset.size_spread, job.preprocessing.cost_spread)
    deviation = max((s.relative_deviation for s in spreads if s.varies), default=0.0)
    if deviation == 0.0:
        return 0.0
    drawn = job.train.batch_size * job.train.accumulation * max(1.0, timing.simulated_steps / 4.0)
    half_width = max(timing.half_width / timing.step_time.mean, PRECISION)
    return SIGMAS * max(deviation / math.sqrt(drawn), half_width / NORMAL_95)


def _time(seconds: Seconds) -> str:
    return show(float(seconds), SECOND, digits=6)


FIRST: Final = (
    Law("steps and runs take time", _takes_time),
    Law("every figure is finite", _finite),
)
"""Laws without which the others make no sense."""
LAWS: Final = (
    *FIRST,
    Law("no figure is negative", _negative),
    Law("percentiles are in order", _in_order),
    Law("no run is shorter than its lower bound", _at_least_the_bound),
    Law("no step is longer than its epoch", _step_within_epoch),
    Law("the lower bound is at most the upper one", _bounds_in_order),
    Law("nothing carries more than its capacity", _within_capacity),
    Law("nothing is busy more than always", _busy_at_most_always),
    Law("the parts of a step add up to it", _adds_up),
    Law("memory holds its parts", _holds_its_parts),
    Law("the bill covers the run", _billed),
)
"""Laws of the figures."""
INTERVAL_LAWS: Final = (Law("intervals are in order, and finite", _interval_in_order),)
"""Laws of what is said about how well the figures are known."""
