"""Predictions: a scenario or a service in, a prediction out.

Collects the demands of all stages, simulates them, computes the bounds, and adds memory, cost,
energy and assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from simulator.engine.closed_form import bounds
from simulator.engine.intervals import figures, uncertainty_components, with_intervals
from simulator.engine.recorder import MAX_STEPS
from simulator.engine.run import Options, SimulationInput, solve
from simulator.errors import NotModelled
from simulator.invariants import INTERVAL_INVARIANTS, INVARIANTS, check_invariants
from simulator.memo import cached
from simulator.physics.footprint import (
    HostRam,
    MemoryFit,
    Verdict,
    host_ram,
    memory_fit,
    page_cache_bytes,
)
from simulator.physics.transformer import shape_of
from simulator.pipeline.loads import with_assumed_spread
from simulator.pipeline.program import check_modelled, demand_table
from simulator.pipeline.run_length import extras, lengths, placement_time
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.input import helpers_alone
from simulator.pipeline.topology import NO_SPEEDS, Speeds, build, scale_stage, scale_topology
from simulator.records import dataclass
from simulator.results.assumptions import assumptions, warnings
from simulator.results.binding import FULL, cpu_need
from simulator.results.cost import belongs_elsewhere, bill, bill_of_stores
from simulator.results.energy import energy_of
from simulator.results.prediction import Bounds, Prediction, Timing
from simulator.schema.data_loading import Placement
from simulator.schema.long_run import Interruptions
from simulator.schema.scenario import Scenario
from simulator.schema.transformers import Transformer
from simulator.schema.uncertainty import LARGEST, P90, Rate, UncertaintyComponent
from simulator.uncertainty.scenario import with_uncertainties

if TYPE_CHECKING:
    from simulator.physics.forward_pass import ForwardPass, Pass
    from simulator.results.serving import Answered, AtSaturation, Saturation, ServicePrediction
    from simulator.schema.serving import Service, Serving
    from simulator.serving.layout import Layout, Reading


PREDICTED_SIZES: Final = 4
"""Sizes of a job that are predicted in addition to the smallest; others are interpolated."""


def predict(  # noqa: PLR0913 - what a caller may want beside the figures
    scenario: Scenario,
    *,
    seed: int = 0,
    trace: bool = False,
    progress: Callable[[float], None] | None = None,
    max_steps: int | None = None,
    intervals: bool = True,
    speeds: Speeds = NO_SPEEDS,
) -> Prediction:
    """Predict time, memory, cost and energy of a job.

    Parameters
    ----------
    scenario : Scenario
        Scenario with machines and jobs.
    seed : int
        Seed of all random draws; the same seed gives the same prediction.
    trace : bool
        Record a timeline of the simulated steps.
    progress : callable, optional
        Called with the progress of the simulation, 0 to 1.
    max_steps : int, optional
        Maximum number of simulated steps per epoch.
    intervals : bool
        Compute the 80% intervals of metrics; searches that need only the metrics skip them.
    speeds : mapping of Rate to float
        Factors on the rates of the scenario; 1 by default.

    Raises
    ------
    NotModelled
        If the model does not cover the scenario.
    BrokenInvariant
        If the prediction contradicts itself, which is a bug (see `invariants`).
    """
    check_modelled(scenario)
    inputs = simulation_input(with_uncertainties(scenario), speeds)
    scenario = inputs.scenario
    topology, demands = inputs.topology, inputs.demands
    length, beside = inputs.lengths, inputs.extras
    most = max_steps or MAX_STEPS
    options = Options(
        seed=seed,
        most_steps=max_steps,
        trace=trace,
        progress=None if progress is None else lambda steps: progress(min(1.0, steps / most)),
    )
    timing = solve(inputs, options)
    last = Phase.WARM if length.epochs > 1.0 else Phase.COLD
    ram, memory = _worst(_plain(host_ram(scenario)), scenario), memory_fit(scenario)
    memory = None if memory is None else _plain_stages(_plain(memory))
    least = bounds(scenario, topology, demands, length, beside)
    rests_on = assumptions(scenario)
    prediction = Prediction(
        scenario=scenario,
        seed=seed,
        timing=timing,
        steps_per_epoch=length.steps,
        total_steps=length.total_steps,
        memory=memory,
        host_ram=ram,
        cpu_need=cpu_need(scenario, topology, demands[Phase.WARM]),
        cost=bill(scenario, timing),
        energy=energy_of(scenario, timing),
        storage=bill_of_stores(scenario, timing),
        bounds=Bounds(lower=float(least.lower), upper=float(least.upper)),
        demands=demands[last],
        one_off=beside.parts,
        break_even_epochs=_break_even(inputs, options, timing),
        page_cache_bytes=float(page_cache_bytes(scenario)),
        assumptions=rests_on,
        warnings=warnings(scenario, timing, ram, memory, rests_on),
    )
    check_invariants(inputs, prediction, INVARIANTS)
    return _with_outlook(inputs, prediction, intervals=intervals)


def _with_outlook(
    inputs: SimulationInput, prediction: Prediction, *, intervals: bool
) -> Prediction:
    """Add intervals if requested, and the forecast of a long run if interruptions are described."""
    interruptions = prediction.scenario.interruptions
    if interruptions is None:
        return _with_intervals(inputs, prediction) if intervals else prediction
    from simulator.long_run.forecast import outlook  # noqa: PLC0415 - few jobs need it

    # The uncertainty of the step widens the quantiles of the run in any case.
    known = _with_intervals(inputs, prediction)
    found = outlook(
        known,
        interruptions,
        draws=interruptions.terms.draws,
        seed=prediction.seed or 0,
        rates_with_fewer=rates_with_fewer(prediction, interruptions),
    )
    return replace(known if intervals else prediction, outlook=found)


def rates_with_fewer(prediction: Prediction, interruptions: Interruptions) -> tuple[float, ...]:
    """Return the relative throughput with one machine less, two less and so on; 1 is all machines.

    The batch per machine is constant, so fewer machines process fewer samples per step. A replica
    that spans several machines is lost if one of them is. `PREDICTED_SIZES` sizes are simulated,
    and rates between them are interpolated and at most 1.
    """
    scenario, failures = prediction.scenario, interruptions.failures
    group = scenario.cluster.trainers
    least = None if failures is None else failures.least_machines
    if least is None or least >= group.count or not _moves(prediction):
        return ()
    replica = max(1, -(-scenario.job.parallelism.devices // max(1, group.gpus_per_host)))
    whole = [many // replica * replica for many in range(group.count - 1, least - 1, -1)]
    whole = [many for many in whole if many]
    spaced = (place * (len(whole) - 1) // PREDICTED_SIZES for place in range(PREDICTED_SIZES + 1))
    places = set(spaced) if whole else set()
    rates = {whole[place]: _rate_with(prediction, whole[place]) for place in places}
    counts, found = zip(*sorted((rates | {0: 0.0, group.count: 1.0}).items()), strict=True)
    return tuple(min(1.0, float(np.interp(many, counts, found))) for many in whole)


def _moves(prediction: Prediction) -> bool:
    return 0.0 < prediction.timing.throughput < math.inf


def _rate_with(prediction: Prediction, machines: int) -> float:
    """Return the throughput with `machines` training machines relative to all of them."""
    scenario = prediction.scenario
    cluster = scenario.cluster
    groups = tuple(
        replace(group, count=machines) if group is cluster.trainers else group
        for group in cluster.groups
    )
    smaller = replace(scenario, cluster=replace(cluster, groups=groups), interruptions=None)
    found = predict(smaller, seed=prediction.seed or 0, intervals=False)
    return found.timing.throughput / prediction.timing.throughput


def _with_intervals(inputs: SimulationInput, prediction: Prediction) -> Prediction:
    known = with_intervals(inputs, prediction)
    check_invariants(inputs, known, INTERVAL_INVARIANTS)
    return known


def simulation_input(scenario: Scenario, speeds: Speeds = NO_SPEEDS) -> SimulationInput:
    """Return the simulation input of a scenario, with rates multiplied by `speeds`."""
    scenario = with_assumed_spread(scenario)
    topology = build(scenario)
    demands = {phase: demand_table(scenario, phase) for phase in Phase}
    if speeds:
        topology = scale_topology(topology, speeds)
        demands = {
            phase: tuple(scale_stage(stage, speeds) for stage in stages)
            for phase, stages in demands.items()
        }
    return SimulationInput(
        scenario=scenario,
        topology=topology,
        demands=demands,
        lengths=lengths(scenario),
        extras=extras(scenario, topology, demands[Phase.WARM]),
    )


Fit = TypeVar("Fit", HostRam, MemoryFit)


def _plain(fit: Fit) -> Fit:
    """Convert numpy scalars in `items` to float."""
    return replace(fit, items={name: float(size) for name, size in fit.items.items()})


def _plain_stages(fit: MemoryFit) -> MemoryFit:
    return replace(fit, stages={name: float(size) for name, size in fit.stages.items()})


def _worst(ram: HostRam, scenario: Scenario) -> HostRam:
    """Return the RAM of a training machine, with the worse of its verdict and the helpers'."""
    remote = scenario.job.remote
    if remote is None:
        return ram
    theirs = host_ram(helpers_alone(scenario, remote)).verdict
    order = (Verdict.YES, Verdict.UNCERTAIN, Verdict.NO)
    return replace(ram, verdict=max(ram.verdict, theirs, key=order.index))


MIN_GAIN = 1e-4
"""Minimum time saved per epoch, as a share of the epoch, for a finite break-even."""


def _break_even(inputs: SimulationInput, options: Options, timing: Timing) -> float | None:
    """Return the epochs after which staging the data has taken no longer than streaming it.

    Infinite if streaming is always faster; None if the data is streamed.
    """
    scenario = inputs.scenario
    if scenario.job.dataset.placement is Placement.STREAM:
        return None
    placed = placement_time(scenario, inputs.topology)
    streamed = streaming(scenario)
    demands = {phase: demand_table(streamed, phase) for phase in Phase}
    rival = replace(inputs, scenario=streamed, topology=build(streamed), demands=demands)
    quiet = replace(options, trace=False, progress=None)
    asked = [rival] if inputs.lengths.epochs > 1.0 else [rival, inputs]
    solved = [solve(replace(q, lengths=replace(q.lengths, epochs=2.0)), quiet) for q in asked]
    # A run of several epochs has been solved already: its first and its later ones.
    streams, copied = solved[0], solved[-1] if len(solved) > 1 else timing
    behind = placed + copied.first_epoch_time - streams.first_epoch_time
    gained = streams.epoch_time - copied.epoch_time
    if behind <= 0.0:
        return placed / (placed - behind)
    return 1.0 + behind / gained if gained > MIN_GAIN * streams.epoch_time else math.inf


def streaming(scenario: Scenario) -> Scenario:
    """Return the scenario with its data streamed from the origin instead of staged."""
    job, group = scenario.job, scenario.cluster.trainers
    dataset = replace(job.dataset, placement=Placement.STREAM)
    groups = tuple(
        replace(g, storage=g.origin or g.storage, origin=None) if g is group else g
        for g in scenario.cluster.groups
    )
    cluster = replace(scenario.cluster, groups=groups)
    return replace(scenario, cluster=cluster, jobs=(replace(job, dataset=dataset),))


@dataclass(frozen=True, slots=True, kw_only=True)
class DominantUncertainty:
    """Effect of one uncertain rate on the run time, as relative changes at its P90 and P10.

    `fast` is the change with the faster rate (P90, usually negative), `slow` with the slower one
    (P10).
    """

    component: UncertaintyComponent
    fast: float
    slow: float

    @property
    def width(self) -> float:
        """Absolute difference between `slow` and `fast`, in units of the run time."""
        return abs(self.slow - self.fast)


def dominant_uncertainties(prediction: Prediction) -> tuple[DominantUncertainty, ...]:
    """Return the uncertain rates by their effect on the run time, largest first.

    Parameters
    ----------
    prediction : Prediction
        Prediction of a job. It is not simulated again: closed forms give the effect of a rate.
    """
    inputs = simulation_input(prediction.scenario)
    uncertainties = _by_rate(uncertainty_components(inputs, prediction))
    if not uncertainties:
        return ()
    ends = [end for component in uncertainties for end in _quantile_factors(component)]
    speeds = {
        rate: np.array(
            [
                end if uncertainties[place // 2].rate is rate else 1.0
                for place, end in enumerate(ends)
            ]
        )
        for rate in dict.fromkeys(component.rate for component in uncertainties)
    }
    times = figures(inputs, prediction, speeds).get("total_time_s")
    if times is None:
        return ()
    changes = np.asarray(times) / prediction.timing.total_time - 1.0
    found = [
        DominantUncertainty(
            component=component, fast=float(changes[2 * n]), slow=float(changes[2 * n + 1])
        )
        for n, component in enumerate(uncertainties)
    ]
    return tuple(sorted(found, key=lambda one: -one.width))


def _quantile_factors(component: UncertaintyComponent) -> tuple[float, float]:
    far = math.exp(P90 * min(LARGEST, component.log_sd))
    return far, 1.0 / far


def _by_rate(uncertainties: Sequence[UncertaintyComponent]) -> tuple[UncertaintyComponent, ...]:
    """Combine uncertainties of the same rate; the result has the name of the largest one."""
    found = []
    for rate in Rate:
        own = [
            component
            for component in uncertainties
            if component.rate is rate and component.log_sd > 0.0
        ]
        if own:
            whole = math.sqrt(sum(component.log_sd**2 for component in own))
            found.append(replace(max(own, key=lambda component: component.log_sd), log_sd=whole))
    return tuple(found)


def predict_service(
    service: Service,
    *,
    seed: int = 0,
    intervals: bool = True,
    wanted: AtSaturation | None = None,
    known: Answered | None = None,
) -> ServicePrediction:
    """Predict latency, throughput, memory, cost and energy of a service under its load.

    Parameters
    ----------
    service : Service
        Service with machines, model, engine and load.
    seed : int
        Seed of token lengths and arrivals; the same seed gives the same prediction.
    intervals : bool
        Compute the 80% intervals of metrics; searches that need only the metrics skip them.
    wanted : AtSaturation, optional
        Parts of saturation to compute; all by default.
    known : Answered, optional
        Latencies and rates from an earlier prediction of the same service, to be reused.
    """
    from simulator.results.serving import AtSaturation  # noqa: PLC0415 - no job needs it
    from simulator.serving.answers import answer  # noqa: PLC0415 - no job needs it

    return answer(
        service,
        layout_of(service),
        seed=seed,
        intervals=intervals,
        wanted=wanted or AtSaturation.WHOLE,
        known=known,
    )


def saturation_of(service: Service, *, seed: int = 0) -> Saturation:
    """Simulate a service that fits its machines at saturation and return the rates."""
    from simulator.serving.run import ServiceRun  # noqa: PLC0415 - no job needs it

    return ServiceRun(service, layout_of(service), seed).saturation()


def layout_of(service: Service) -> Layout:
    """Return the layout of a service: its replicas with the times of their forward passes."""
    from simulator.serving import layout  # noqa: PLC0415 - no job needs it

    found = layout.layout_of(service, partial(_any_pass, service))
    if service.reading is None:
        return found
    job = service.reading
    return replace(found, reading=_reading(job))


@cached(most=64)
def _reading(job: Scenario) -> Reading:
    """Predict the job that reads the requests of a service: its rate and utilizations."""
    from simulator.serving.layout import Reading  # noqa: PLC0415 - few services need it

    prediction = predict(job)
    timing, ends = prediction.timing, prediction.interval["throughput_samples_per_s"]
    low, high = ends["p10"], ends["p90"]
    busy = {str(name): usage.mean for name, usage in timing.usage.items() if usage.mean > 0.0}
    fullest = max(busy, key=lambda name: busy[name], default="")
    readers = f"{job.job.input.workers} reads at a time on each machine"
    return Reading(
        rate=timing.throughput,
        busy=busy,
        limited_by=f"the {fullest}" if busy.get(fullest, 0.0) > FULL else readers,
        log_sd=math.log(high / low) / (2.0 * P90) if low and high else 0.0,
        caution=_far_store(job),
    )


def _far_store(job: Scenario) -> str:
    """Return a warning if a store is in another cloud than its readers; empty otherwise."""
    far = belongs_elsewhere(job, job.site.storage)
    return far and f"{far}: its rates hold within its cloud, and bytes that leave it are paid"


def pass_of(service: Service) -> ForwardPass:
    """Return the forward pass of a service on the accelerators of one replica."""
    return _pass(service, service.serving)


def _any_pass(service: Service, serving: Serving) -> Pass:
    """Return the forward pass of a replica with the settings `serving`."""
    if service.one_pass is None:
        return _pass(service, serving)
    from simulator.physics.forward_pass import batch_pass  # noqa: PLC0415 - few services need it

    return batch_pass(service.one_pass, serving.max_batched_tokens)


def _pass(service: Service, serving: Serving) -> ForwardPass:
    """Return the forward pass of a token-generating replica on its accelerators or cores."""
    from simulator.physics.forward_pass import (  # noqa: PLC0415 - no job needs it
        ServingParallelism,
        forward_pass,
        serving_cores,
        serving_device,
    )

    host = service.group.host
    products, figures, model = service.products, service.figures, service.model
    if products is None or figures is None or not isinstance(model, Transformer):
        msg = f"{service.name} writes no tokens"
        raise TypeError(msg)
    peer = None if host.peer_link is None else host.peer_link.peak
    slot = None if host.host_link is None else host.host_link.peak
    if host.gpu is None:
        device = serving_cores(host, serving.weights)
    else:
        device = serving_device(host.gpu, serving.weights, peer, slot)
    if device is None:
        msg = f"no rate is known at which the cores of {host.name} compute"
        raise NotModelled(msg)
    return forward_pass(
        shape_of(model),
        device,
        products,
        figures,
        ServingParallelism(
            tensor=serving.tensor,
            groups=serving.attention_groups,
            split_experts=serving.expert_parallel,
            weights=serving.weights,
            cache=serving.cache,
        ),
    )
