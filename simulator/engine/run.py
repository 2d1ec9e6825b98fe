"""A simulated run: a cold epoch, a warm one, and the whole run composed of them.

An epoch of n steps takes the time of the simulated one of k steps, start and drain included, plus n
- k mean steady steps. A run is its start-up, a first epoch with cold caches, warm epochs,
evaluation passes, checkpoints and shut-down.

Candidates of a search often differ only in values that an epoch does not depend on, such as prices,
the store that data is copied from before the run, or a store that is idle as the data is in RAM.
`EpochCacheKey` leaves those out, so that equal epochs are simulated once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

import numpy as np

from simulator.engine.epoch import phases_matter, run_epoch
from simulator.engine.loader import JITTER
from simulator.engine.recorder import MAX_EVENTS, Epoch, Plan
from simulator.engine.symmetry import (
    SymmetryReduction,
    merge_lengths,
    merge_scenario,
    merge_stages,
    merged_together,
)
from simulator.engine.trace import trace_of
from simulator.equations.step import step_time
from simulator.pipeline.checkpoints import CheckpointTimes, checkpoint_times
from simulator.pipeline.loads import limiting_time, pressures, resource_name
from simulator.pipeline.program import CHECKPOINTING, DATA, by_line, entries
from simulator.pipeline.run_length import (
    Extras,
    Lengths,
    checkpoint_loads,
    checkpoints,
    worker_start,
)
from simulator.pipeline.shared_cores import least_shared_step
from simulator.pipeline.stages.base import Path, Phase, Resource, StageDemands
from simulator.pipeline.stages.communication import hidden_exchange
from simulator.pipeline.topology import (
    CPU,
    NETWORK_IN,
    NETWORK_OPERATIONS,
    NETWORK_OUT,
    OPERATIONS,
    REQUESTS,
    STORAGE_NETWORK,
    STORE,
    Topology,
    compute_stream,
)
from simulator.records import dataclass
from simulator.results.binding import binding
from simulator.results.prediction import Distribution, StepSplit, Timing, Usage
from simulator.schema.fields import Section, Shape, Spread
from simulator.schema.long_run import Checkpoints
from simulator.schema.machines import Group
from simulator.schema.scenario import CostPlan, Scenario
from simulator.schema.storage import Scope, Storage
from simulator.units import Seconds

MAX_EPOCHS: Final = 96
"""Simulated epochs that are kept for the next candidates of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCacheKey:
    """All inputs that an epoch depends on: scenario, units, demands, length and seed."""

    scenario: Scenario
    topology: Topology
    stages: tuple[StageDemands, ...]
    plan: Plan
    seed: int

    @staticmethod
    def of(
        scenario: Scenario,
        topology: Topology,
        stages: tuple[StageDemands, ...],
        plan: Plan,
        seed: int,
    ) -> EpochCacheKey:
        """Return the key, without names, notes, sources, prices and unused stores."""
        demands = [d for s in stages for d in s.demands if d.path in _WITH_STORE]
        idle = all(float(d.amount) == 0.0 == float(d.latency) for d in demands)
        job, sites, units = scenario.job, topology.sites, topology.units
        if job.remote is not None:
            job = replace(job, remote=replace(job.remote, machine="", storage=None, price=None))
        sections = {f.name: getattr(job, f.name) for f in fields(job)}
        unsourced: dict[str, Any] = {
            name: replace(section, sources={})
            for name, section in sections.items()
            if isinstance(section, Section)
        }
        job = replace(job, **unsourced)
        # Checkpoints are written between epochs.
        job = replace(job, train=replace(job.train, checkpoint_process_rate=math.inf))
        if idle:
            job = replace(job, client=None)
            stages = tuple(
                replace(s, demands=tuple(d for d in s.demands if d.path not in _WITH_STORE))
                for s in stages
            )
            sites = tuple(replace(site, shared="") for site in sites)
            # Units of helpers have the name of their machine as a prefix.
            units = {
                name: unit
                for name, unit in units.items()
                if unit.resource is not Resource.STORAGE and not name.endswith(_STORE_WIRES)
            }

        def bare(group: Group) -> Group:
            found = replace(group, origin=None, price=None)
            return replace(found, storage=_UNUSED, cache=None) if idle else found

        cluster = replace(scenario.cluster, groups=tuple(map(bare, scenario.cluster.groups)))
        return EpochCacheKey(
            scenario=replace(
                scenario,
                name="",
                title="",
                notes=(),
                uncertainties=(),
                stated=None,
                cost=CostPlan(),
                cluster=cluster,
                jobs=(job,),
                interruptions=None,
                checkpoints=Checkpoints(),
                energy=None,
                owned=None,
            ),
            topology=replace(
                topology,
                sites=tuple(replace(site, group=bare(site.group)) for site in sites),
                units=units,
            ),
            stages=stages,
            plan=plan,
            seed=seed,
        )


_WITH_STORE: Final = frozenset({Path.STORE_TO_HOST, Path.CACHE_TO_HOST, Path.HOST_TO_STORE})
_STORE_WIRES: Final = (STORAGE_NETWORK, NETWORK_OPERATIONS)
_UNUSED: Final = Storage(name="", scope=Scope.LOCAL, read_bandwidth=1.0)
"""Placeholder of a store without reads and writes."""


def cached_epoch(asked: EpochCacheKey, simulate: Callable[[EpochCacheKey], Epoch]) -> Epoch:
    """Return the epoch of a key, from the cache if equal inputs were simulated before."""
    for known, epoch in tuple(_RECENT):
        if known == asked:
            return epoch
    epoch = simulate(asked)
    _RECENT.append((asked, epoch))
    return epoch


_RECENT: Final[deque[tuple[EpochCacheKey, Epoch]]] = deque(maxlen=MAX_EPOCHS)


NO_LOADS: Final[Mapping[str, Seconds]] = {}


def epoch_time(epoch: Epoch, steps: int) -> Seconds:
    """Return the time of an epoch of `steps` steps [s]; those not simulated take the mean step."""
    return epoch.end + (steps - epoch.steps) * epoch.mean_step


def mean_step(epoch: Epoch, checkpoint: Seconds) -> tuple[dict[str, Seconds], Seconds]:
    """Return the ledger of the mean step of the average rank, and the exchange time it hides [s].

    `checkpoint` is the time of checkpoints per step, which are outside of the epochs. Where the
    mean step is a bound above the simulated steps, the difference counts as data stall. Lines of 0
    are left out.
    """
    first, last = epoch.snapshots[epoch.first], epoch.snapshots[epoch.last]
    *spent, hidden = (
        (fmean(after, epoch.reduction.counts) - fmean(before, epoch.reduction.counts))
        / (epoch.last - epoch.first)
        for before, after in zip(
            zip(*first.ledgers, strict=True), zip(*last.ledgers, strict=True), strict=True
        )
    )
    lines = by_line(spent) | {slot.name: checkpoint for slot in CHECKPOINTING}
    lines[DATA] += epoch.mean_step - epoch.seen_step
    found = {name: seconds for name, seconds in lines.items() if seconds != 0.0}
    return found, max(0.0, hidden)  # corrections may leave a rounding error


def usage(
    epoch: Epoch, topology: Topology, step: Seconds, composed: Mapping[str, Seconds] = NO_LOADS
) -> Mapping[str, Usage]:
    """Return the utilization of each resource over mean steps.

    Names of resources of machines that do not train begin with the group's name. The utilization
    of a link or a store is that of its busier direction or limit.

    Parameters
    ----------
    epoch : Epoch
        The simulated epoch; its steady window has the work of a step.
    topology : Topology
        All units.
    step : float
        The mean step, composed times included [s].
    composed : mapping of str to float, optional
        Busy time of units per step by work that is not simulated, such as checkpoints [s].
    """
    first, last = epoch.snapshots[epoch.first], epoch.snapshots[epoch.last]
    # Ranks that end steps at other times than the first one may make the composed step a little
    # shorter than the simulated one, in which the units were busy.
    window = (epoch.last - epoch.first) * max(step, epoch.seen_step)
    share = {
        unit: (busy - first.busy[unit]) / window if window > 0.0 else 0.0
        for unit, busy in last.busy.items()
    }
    found = _pools(share, topology, epoch.reduction)
    if topology.host.gpu is not None:
        gpus = [share[compute_stream(rank)] for rank in epoch.reduction.ranks]
        # all accelerators of a model-parallel replica are equally busy
        there = max(topology.ranks, topology.sites[0].group.gpus_per_host)
        mean = fmean(gpus, epoch.reduction.counts)
        found[str(Resource.GPU)] = Usage(
            mean=mean, total=mean * there, units=there, busiest=max(gpus)
        )
    # A store that was not used was not simulated.
    carried = {
        name: share.get(epoch.reduction.units.get(name, name), 0.0) + composed.get(name, 0.0) / step
        for name in topology.units
    }
    return found | usage_of_units(topology, carried)


def usage_of_units(topology: Topology, busy: Mapping[str, float]) -> dict[str, Usage]:
    """Return the utilization of stores, links, network and memory from that of their units.

    Parameters
    ----------
    topology : Topology
        All units.
    busy : mapping of str to float
        Share of the time in which each unit is busy; units that are not given are idle.
    """
    things: dict[str, dict[str, float]] = {}
    for name in topology.units:
        group = things.setdefault(resource_name(topology, name), {})
        thing = _thing(name)
        group[thing] = max(group.get(thing, 0.0), busy.get(name, 0.0))
    return {name: _over(list(group.values())) for name, group in things.items()}


_LIMITS = (
    *(NETWORK_OPERATIONS, STORAGE_NETWORK, OPERATIONS, REQUESTS, STORE),
    *(NETWORK_IN, NETWORK_OUT, " up", " down"),
)


def _thing(unit: str) -> str:
    """Return the name of the link or store to which a unit (one direction or limit) belongs."""
    for limit in _LIMITS:
        if unit.endswith(limit):
            return unit.removesuffix(limit)
    return unit


def _pools(
    share: Mapping[str, float], topology: Topology, reduction: SymmetryReduction
) -> dict[str, Usage]:
    threads: dict[str, list[tuple[float, float]]] = {}
    for number, site in enumerate(topology.sites):
        unit = topology.sites[reduction.site(number)].prefix + CPU
        entry = (share[unit], float(site.host.cpu.threads))
        threads.setdefault(resource_name(topology, unit), []).append(entry)
    return {
        name: Usage(
            mean=sum(s * n for s, n in pools) / sum(n for _, n in pools),
            total=sum(s * n for s, n in pools),
            units=math.ceil(sum(n for _, n in pools)),
            busiest=max(s for s, _ in pools),
        )
        for name, pools in threads.items()
    }


def _over(shares: Sequence[float]) -> Usage:
    total = sum(shares)
    return Usage(mean=total / len(shares), total=total, units=len(shares), busiest=max(shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Extent of a simulation.

    `most_steps` limits the steps of an epoch that does not become steady, by default a multiple of
    the batches in flight; `most_events` limits its events. `replay` simulates every step of each
    kind of epoch.
    """

    seed: int = 0
    most_steps: int | None = None
    most_events: int = MAX_EVENTS
    replay: bool = False
    trace: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationInput:
    """Input of a simulation: scenario, units, cold and warm demands, lengths, composed times."""

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
        The job and its machines.
    options : Options
        Seed and limits.

    Returns
    -------
    Timing
        Steady steps, epochs, the whole run, utilization and bottleneck.
    """
    merged = _merged(inputs)
    phases = _phases(merged)
    epochs = [_simulate(merged, phase, options) for phase in phases]
    cold, warm, again = epochs[0], epochs[-1], len(epochs) > 1
    scenario, lengths, extras = merged.scenario, merged.lengths, merged.extras
    train, demands = scenario.job.train, merged.demands[phases[-1]]
    first_epoch = epoch_time(cold, lengths.steps)
    once = 0.0 if again or scenario.job.input.policy.restarts else worker_start(scenario)
    epoch = _later_epoch(merged, warm, start=once)
    # A run is its one-off times, a first epoch with cold caches, and later ones.
    of_first, later = min(1.0, lengths.epochs), max(0.0, lengths.epochs - 1.0)
    training = first_epoch * of_first + epoch * later
    written, saving = _checkpoints(inputs, merged, warm, extras.once + training)
    per_step = 0.0
    if saving is not None:
        # The steps between two checkpoints, without the start of an epoch.
        steady = sum(mean_step(warm, 0.0)[0].values()) * lengths.total_steps
        pause = saving.pause(min(training, steady) / written)
        per_step = written * pause / lengths.total_steps
    lines, hidden = mean_step(warm, per_step)
    if warm.last < warm.steps or lengths.full_steps == lengths.steps:
        # In whole steps the compute stream is busy for the time of its equations.
        lines |= {
            stage.stage: lengths.accumulation * stage.times * work
            for stage in demands
            if (work := stage.compute_time) > 0.0
        }
    split = StepSplit(**entries(lines))
    mean = float(step_time(**asdict(split)))
    p50, p95, p99 = np.percentile(np.asarray(warm.steady_steps), [50, 95, 99]).tolist()
    composed = checkpoint_loads(inputs.scenario, merged.topology, written, saving)
    used = usage(warm, merged.topology, mean, composed)
    limits = binding(pressures(scenario, merged.topology, demands), split, used)
    samples = train.batch_size * train.accumulation * scenario.ranks * scenario.job.copies
    gpu = used.get(str(Resource.GPU))
    ends = [snapshot.time for snapshot in cold.snapshots]
    return Timing(
        step_time=Distribution(mean=mean, p50=p50, p95=p95, p99=p99),
        first_step=cold.snapshots[1].time,
        first_steps=(cold.own_first_step, warm.own_first_step - once),
        epoch_time=(epoch if lengths.epochs > 1.0 else first_epoch) + per_step * lengths.steps,
        first_epoch_time=first_epoch + per_step * lengths.steps,
        total_time=extras.once + training + per_step * lengths.total_steps,
        checkpoints=written,
        saving=saving,
        throughput=float(samples * lengths.fullest / mean) if mean else math.inf,
        split=split,
        ledger=lines,
        hidden_communication=hidden + hidden_exchange(inputs.scenario),
        usage=used,
        bottleneck=limits[0],
        next_bottleneck=limits[1] if len(limits) > 1 else None,
        accelerator_utilization=None if gpu is None else gpu.mean,
        half_width=warm.half_width,
        simulated_steps=cold.steps + (warm.steps if again else 0),
        steady_steps=warm.last - warm.first,
        step_times=tuple(b - a for a, b in pairwise((0.0, *ends[1:]))),
        trace=trace_of(inputs.scenario, merged.topology, warm) if options.trace else None,
        bounded=cold.bounded or warm.bounded,
    )


def _checkpoints(
    inputs: SimulationInput, merged: SimulationInput, warm: Epoch, training: Seconds
) -> tuple[float, CheckpointTimes | None]:
    """Return the number of checkpoints of a run, and the times of one; None if it writes none.

    `training` is the time of the run without checkpoints [s].
    """
    scenario = inputs.scenario
    written = float(checkpoints(scenario, training))
    if not written:
        return 0.0, None
    step = mean_step(warm, 0.0)[0]
    used = usage(warm, merged.topology, sum(step.values()))
    found = checkpoint_times(
        scenario, {name: use.mean for name, use in used.items()}, merged.topology
    )
    return written, found


def later_epoch(inputs: SimulationInput, options: Options) -> Seconds | None:
    """Return the time of each epoch after the first [s]; None if all epochs are equal.

    The simulated epoch is cached for `solve`.
    """
    merged = _merged(inputs)
    if len(_phases(merged)) == 1:
        return None
    warm = _simulate(merged, Phase.WARM, options)
    beside = merged.extras.per_step * merged.lengths.steps
    return _later_epoch(merged, warm, start=0.0) + beside


def _phases(inputs: SimulationInput) -> tuple[Phase, ...]:
    """Return the phases (cold, warm) that need a simulation: one if all epochs are equal."""
    demands = inputs.demands
    again = inputs.lengths.epochs > 1.0 and demands[Phase.WARM] != demands[Phase.COLD]
    return (Phase.COLD, Phase.WARM) if again else (Phase.COLD,)


def _merged(inputs: SimulationInput) -> SimulationInput:
    """Return the inputs with micro-batches merged, if that changes no metric."""
    scenario = inputs.scenario
    together = merged_together(scenario, inputs.topology, inputs.demands)
    if together == 1:
        return inputs
    return replace(
        inputs,
        scenario=merge_scenario(scenario, together),
        demands={phase: merge_stages(stages, together) for phase, stages in inputs.demands.items()},
        lengths=merge_lengths(inputs.lengths, together),
    )


BOUND_MET: Final = 1e-3
"""Part by which a mean step may exceed its bound and count as explained by it."""


def _simulate(inputs: SimulationInput, phase: Phase, options: Options) -> Epoch:
    scenario, plan, stages = inputs.scenario, plan_of(inputs, phase, options), inputs.demands[phase]
    epoch = _simulated(inputs, plan, stages, options)
    if not _locked_in(inputs, plan, stages, epoch):
        return epoch
    drifting = replace(inputs, scenario=_with_jitter(scenario))
    # Batches that differ represent equal ones, whose mean step is never below its bound.
    return replace(_simulated(drifting, plan, stages, options), floor=plan.least_step)


def _with_jitter(scenario: Scenario) -> Scenario:
    """Return the scenario with batches of any size, whose work deviates a little."""
    job = scenario.job
    each = JITTER * math.sqrt(job.train.batch_size)
    spread = Spread(shape=Shape.GAMMA, relative_deviation=each)
    dataset = replace(job.dataset, size_spread=spread)
    return replace(
        scenario,
        jobs=(replace(job, dataset=dataset, input=replace(job.input, cost_spread=spread)),),
    )


def _locked_in(
    inputs: SimulationInput, plan: Plan, stages: tuple[StageDemands, ...], epoch: Epoch
) -> bool:
    """Return True if equal batches make a step longer than all its bounds by their phases."""
    scenario = inputs.scenario
    if scenario.job.dataset.size_spread.varies or scenario.job.input.cost_spread.varies:
        return False
    if epoch.mean_step <= plan.least_step * (1.0 + BOUND_MET):
        return False
    waits = mean_step(epoch, 0.0)[0].get(DATA, 0.0) > BOUND_MET * epoch.mean_step
    return waits and phases_matter(scenario, inputs.topology, stages, plan)


def _simulated(
    inputs: SimulationInput, plan: Plan, stages: tuple[StageDemands, ...], options: Options
) -> Epoch:
    given = inputs.scenario, inputs.topology, stages, plan, options.seed
    if options.trace or options.progress is not None:  # a watched run is simulated in full
        return run_epoch(*given)
    return cached_epoch(
        EpochCacheKey.of(*given),
        lambda key: run_epoch(key.scenario, key.topology, key.stages, key.plan, key.seed),
    )


def plan_of(inputs: SimulationInput, phase: Phase, options: Options) -> Plan:
    """Return the extent of the simulation of an epoch of this phase."""
    pipeline, lengths = inputs.scenario.job.input, inputs.lengths
    starts = phase is Phase.COLD or pipeline.policy.restarts
    least = least_shared_step(inputs.scenario, inputs.topology, inputs.demands[phase])
    return Plan(
        batches=lengths.batches,
        last_share=lengths.last_share,
        start_delay=pipeline.epoch_start + (worker_start(inputs.scenario) if starts else 0.0),
        most_steps=options.most_steps,
        most_events=options.most_events,
        # The only step of an epoch may be a partial one.
        least_step=float(least) * min(1.0, lengths.full_steps),
        replay=options.replay,
        trace=options.trace,
        progress=options.progress,
    )


def _later_epoch(inputs: SimulationInput, epoch: Epoch, start: Seconds) -> Seconds:
    """Return the time of an epoch after the first [s].

    `start` is the start-up time in the simulated epoch that later epochs do not have.
    """
    steps = inputs.lengths.steps
    policy = inputs.scenario.job.input.policy
    if policy.crosses_epochs and epoch.settled:
        whole = epoch.last < epoch.steps
        passed = epoch.mean_step * (inputs.lengths.full_steps if whole else steps)
        # a short epoch may use up prefetched batches, of which the next one finds fewer
        stages = inputs.demands[Phase.WARM]
        slowest = float(limiting_time(inputs.scenario, inputs.topology, stages))
        return max(passed, slowest * inputs.lengths.full_steps)
    return epoch_time(epoch, steps) - start
