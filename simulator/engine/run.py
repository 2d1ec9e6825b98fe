"""Simulate a scenario's job: a cold epoch, a warm one, and the run composed of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from simulator.engine import compose, microbatch_merging
from simulator.engine.epoch import run_epoch
from simulator.engine.recorder import MOST_EVENTS, Epoch, Plan
from simulator.engine.simulated import Asked, simulated
from simulator.engine.tracing import trace_of
from simulator.pipeline.ledger import entries
from simulator.pipeline.loads import limiting_time, pressures
from simulator.pipeline.run_length import Extras, Lengths, checkpoint_loads, worker_start
from simulator.pipeline.shared_cores import least_shared_step
from simulator.pipeline.stages.base import Phase, Resource, StageDemands
from simulator.pipeline.stages.communication import hidden_exchange
from simulator.pipeline.topology import Topology
from simulator.results.binding import binding
from simulator.results.prediction import Communication, StepSplit, Timing
from simulator.schema.scenario import Scenario
from simulator.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How much to simulate.

    `most_steps` of an epoch are simulated if it never gets steady, by default as many as what is
    in flight asks for; `most_events` end it in any case. `replay` simulates every step of every
    epoch kind and stops nowhere.
    """

    seed: int = 0
    most_steps: int | None = None
    most_events: int = MOST_EVENTS
    replay: bool = False
    trace: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationInput:
    """What is simulated: the scenario, its units, demands (cold and warm) and lengths."""

    scenario: Scenario
    topology: Topology
    demands: Mapping[Phase, tuple[StageDemands, ...]]
    lengths: Lengths
    extras: Extras


def solve(inputs: SimulationInput, options: Options) -> Timing:
    """Simulate the run.

    Parameters
    ----------
    inputs : SimulationInput
        What is run, on what.
    options : Options
        Seed and limits.

    Returns
    -------
    Timing
        Steady steps, epochs, the whole run, utilization and bottleneck.
    """
    merged = _merged(inputs)
    epochs = [_simulate(merged, phase, options) for phase in _phases(merged)]
    return _timing(inputs, merged, epochs, options)


def later_epoch(inputs: SimulationInput, options: Options) -> Seconds | None:
    """Time of each epoch after the first [s], as `solve` has it; None where all are like the first.

    Who simulates the same inputs soon after finds this part of it done (`simulated`).
    """
    merged = _merged(inputs)
    if len(_phases(merged)) == 1:
        return None
    warm = _simulate(merged, Phase.WARM, options)
    beside = merged.extras.per_step * merged.lengths.steps
    return _later_epoch(merged, warm, start=0.0) + beside


def _phases(inputs: SimulationInput) -> tuple[Phase, ...]:
    """The kinds of epochs that differ."""
    demands = inputs.demands
    again = inputs.lengths.epochs > 1.0 and demands[Phase.WARM] != demands[Phase.COLD]
    return (Phase.COLD, Phase.WARM) if again else (Phase.COLD,)


def _timing(
    asked: SimulationInput, inputs: SimulationInput, epochs: Sequence[Epoch], options: Options
) -> Timing:
    """The whole run out of its cold epoch, and a warm one if that is another."""
    beside = hidden_exchange(asked.scenario)
    lengths, extras = inputs.lengths, inputs.extras
    cold, warm, again = epochs[0], epochs[-1], len(epochs) > 1
    first_epoch = compose.epoch_time(cold, lengths.steps)
    once = 0.0 if inputs.scenario.job.loader.policy.restarts else worker_start(inputs.scenario)
    epoch = _later_epoch(inputs, warm, start=0.0 if again else once)
    lines, hidden = compose.ledger(warm, extras.per_step)
    parts = StepSplit(**entries(lines))
    step = compose.distribution(warm, parts.total)
    beside_steps = checkpoint_loads(asked.scenario, inputs.topology)
    used = compose.usage(warm, inputs.topology, step.mean, beside_steps)
    imposed = pressures(inputs.scenario, inputs.topology, inputs.demands[_phase(again)])
    limits = binding(imposed, parts, used)
    samples = _samples_a_step(inputs.scenario) * lengths.fullest
    gpu = used.get(str(Resource.GPU))
    return Timing(
        step_time=step,
        first_step=cold.ends[0],
        first_steps=(cold.own_first_step, warm.own_first_step - (0.0 if again else once)),
        epoch_time=(epoch if lengths.epochs > 1.0 else first_epoch)
        + extras.per_step * lengths.steps,
        first_epoch_time=first_epoch + extras.per_step * lengths.steps,
        total_time=compose.total_time(first_epoch, epoch, lengths, extras),
        throughput=float(samples / step.mean) if step.mean else math.inf,
        split=parts,
        ledger=lines,
        communication=Communication(exposed=parts.communication, hidden=hidden + beside),
        usage=used,
        bottleneck=limits[0],
        next_bottleneck=limits[1] if len(limits) > 1 else None,
        accelerator_utilization=None if gpu is None else gpu.mean,
        half_width=warm.half_width,
        simulated_steps=cold.steps + (warm.steps if again else 0),
        step_times=tuple(b - a for a, b in zip((0.0, *cold.ends), cold.ends, strict=False)),
        trace=trace_of(asked.scenario, inputs.topology, warm) if options.trace else None,
        bounded=cold.bounded or warm.bounded,
    )


def _samples_a_step(scenario: Scenario) -> float:
    """Samples that all ranks of all jobs take in a full step."""
    train = scenario.job.train
    return train.batch_size * train.accumulation * scenario.ranks * scenario.job.copies


def _merged(inputs: SimulationInput) -> SimulationInput:
    """The inputs with accumulated batches merged where that changes nothing."""
    scenario = inputs.scenario
    together = microbatch_merging.merged_together(scenario, inputs.topology, inputs.demands)
    if together == 1:
        return inputs
    return replace(
        inputs,
        scenario=microbatch_merging.merge_scenario(scenario, together),
        demands={
            phase: microbatch_merging.merge_stages(stages, together)
            for phase, stages in inputs.demands.items()
        },
        lengths=microbatch_merging.merge_lengths(inputs.lengths, together),
    )


def _phase(again: bool) -> Phase:  # noqa: FBT001 - a choice between two
    return Phase.WARM if again else Phase.COLD


def _simulate(inputs: SimulationInput, phase: Phase, options: Options) -> Epoch:
    plan, stages = plan_of(inputs, phase, options), inputs.demands[phase]
    given = inputs.scenario, inputs.topology, stages, plan, options.seed
    if options.trace or options.progress is not None:  # a watched run is simulated in full
        return run_epoch(*given)
    return simulated(Asked.of(*given), _answer)


def _answer(asked: Asked) -> Epoch:
    return run_epoch(asked.scenario, asked.topology, asked.stages, asked.plan, asked.seed)


def plan_of(inputs: SimulationInput, phase: Phase, options: Options) -> Plan:
    """How an epoch of a inputs is to be run."""
    loader, lengths = inputs.scenario.job.loader, inputs.lengths
    starts = phase is Phase.COLD or loader.policy.restarts
    least = least_shared_step(inputs.scenario, inputs.topology, inputs.demands[phase])
    return Plan(
        batches=lengths.batches,
        last_share=lengths.last_share,
        start_delay=loader.epoch_start + (worker_start(inputs.scenario) if starts else 0.0),
        most_steps=options.most_steps,
        most_events=options.most_events,
        # The only step of an epoch may hold less than a whole one.
        least_step=float(least) * min(1.0, lengths.full_steps),
        replay=options.replay,
        trace=options.trace,
        progress=options.progress,
    )


def _later_epoch(inputs: SimulationInput, epoch: Epoch, start: Seconds) -> Seconds:
    """Time of an epoch after the first [s]; `start` is in `epoch` but may not come again."""
    steps = inputs.lengths.steps
    policy = inputs.scenario.job.loader.policy
    if policy.crosses_epochs and epoch.settled:
        whole = epoch.last < epoch.steps
        passed = epoch.mean_step * (inputs.lengths.full_steps if whole else steps)
        # a short epoch may live on batches made ahead of it, of which the next one finds fewer
        stages = inputs.demands[Phase.WARM]
        slowest = float(limiting_time(inputs.scenario, inputs.topology, stages))
        return max(passed, slowest * inputs.lengths.full_steps)
    return compose.epoch_time(epoch, steps) - start
