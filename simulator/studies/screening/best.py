"""Best cases of candidates: lower bounds on times, and the resulting costs, memory and price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.engine.recorder import MAX_STEPS, MIN_ROUNDS
from simulator.equations import cost
from simulator.errors import NotModelled, PlanError
from simulator.physics.footprint import Verdict, host_ram, memory_fit
from simulator.pipeline.loads import producer_count, with_assumed_spreads
from simulator.pipeline.program import check_modelled, demand_table, makes_own_batches
from simulator.pipeline.run_length import Extras, Lengths, extras, lengths, worker_start
from simulator.pipeline.stages.base import Phase, StageDemands
from simulator.pipeline.stages.input import helpers_alone
from simulator.pipeline.topology import build
from simulator.records import dataclass
from simulator.results.cost import machines_price, rent_of_data
from simulator.schema.candidates import Batch, stack
from simulator.schema.scenario import Scenario
from simulator.studies.screening.chance import AHEAD
from simulator.studies.screening.lower_bounds import Floors
from simulator.units import BYTE, HOUR, Real, Seconds, show

Columns = Mapping[str, Real]
Words = NDArray[np.str_]

AT_ONCE: Final = 4096
"""Candidates taken at once: enough that arrays pay, few enough for their memory to be small."""
ROUNDING: Final = 1.0 - 2e-9
"""What sums in another order, and steps taken for equal, may lie below a floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestCase:
    """Best possible value of each metric of a candidate by name; memory and price are exact.

    `expected` are the same metrics with the expected time of later epochs, which is not a bound.
    `infeasible` is the reason why the candidate cannot run; empty if it may.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    infeasible: str = ""


def best_cases(scenarios: Sequence[Scenario]) -> tuple[BestCase, ...]:
    """Return the best case of every candidate, in their order.

    Parameters
    ----------
    scenarios : sequence of Scenario
        Candidates; those of equal structure are evaluated together.

    Returns
    -------
    tuple of BestCase
        One for each candidate, without metrics if it is not modelled.
    """
    resolved = with_assumed_spreads(scenarios)
    found: dict[int, BestCase] = {}
    sound: dict[int, Scenario] = {}
    for index, scenario in enumerate(resolved):
        reason = str(scenario) if isinstance(scenario, PlanError) else _refusal(scenario)
        if isinstance(scenario, PlanError) or reason:
            found[index] = BestCase(infeasible=reason)
        else:
            sound[index] = scenario
    places = list(sound)
    for batch in stack(list(sound.values()), AT_ONCE):
        cases = zip(batch.indices, _rows(batch), strict=True)
        found |= {places[index]: case for index, case in cases}
    return tuple(found[i] for i in range(len(scenarios)))


def best_with(scenario: Scenario, later: Seconds, best: Mapping[str, float]) -> dict[str, float]:
    """Return the best case of a candidate whose later epochs are known.

    Parameters
    ----------
    scenario : Scenario
        Valid scenario with several epochs.
    later : float
        Time of an epoch after the first one, including the time outside its steps [s].
    best : mapping
        Best case of the candidate without this knowledge.
    """
    longer = max(0.0, later * ROUNDING - best["epoch_time_s"])
    return {name: float(value) for name, value in _with_longer(scenario, best, longer).items()}


def _with_longer(scenario: Scenario, best: Columns, longer: Real) -> dict[str, Real]:
    """Return a best case with each epoch after the first one longer by `longer` [s]."""
    total = best["total_time_s"] + longer * np.maximum(0.0, lengths(scenario).epochs - 1.0)
    epoch = best["epoch_time_s"] + longer
    known = {"total_time_s": total, "cost.time_to_train_s": total, "epoch_time_s": epoch}
    times = {**best, **known}
    return times | _costs(scenario, times)


def _refusal(scenario: Scenario) -> str:
    try:
        check_modelled(scenario)
    except NotModelled as error:
        return str(error)
    return ""


def _rows(batch: Batch) -> Iterator[BestCase]:
    columns, expected, reasons = best_of(batch)
    figures = _by_row(columns, batch.size)
    likely = figures if expected is columns else _by_row(expected, batch.size)
    for row, settled, reason in zip(figures, likely, reasons.tolist(), strict=True):
        yield BestCase(figures=row, expected=settled, infeasible=reason)


def _by_row(columns: Columns, size: int) -> list[dict[str, float]]:
    table = [np.broadcast_to(column, size).tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*table, strict=True)]


def best_of(batch: Batch) -> tuple[Columns, Columns, Words]:
    """Return the best cases of a batch of candidates as arrays, and why each cannot run.

    Parameters
    ----------
    batch : Batch
        Candidates of equal structure that the model covers.

    Returns
    -------
    tuple
        Values by metric, the same with the expected time of later epochs, and an array of reasons,
        empty for candidates that may run.
    """
    scenario = batch.scenario
    times, longer = _times(scenario)
    memory, reasons = _memory(scenario)
    words = np.array([""] * batch.size, dtype=object)
    for reason in reasons:
        words = np.where(words == "", np.broadcast_to(reason, batch.size), words)
    best = {**times, **memory, **_costs(scenario, times)}
    expected = _with_longer(scenario, best, longer) if np.any(longer > 0.0) else best
    return best, expected, words


def _times(scenario: Scenario) -> tuple[dict[str, Real], Real]:
    """Return lower bounds on times, the throughput, and the expected excess of later epochs [s]."""
    topology, length = build(scenario), lengths(scenario)
    table = {phase: demand_table(scenario, phase) for phase in Phase}
    beside = extras(scenario, topology, table[Phase.WARM])
    warm = Floors(scenario=scenario, topology=topology, stages=table[Phase.WARM], lengths=length)
    cold = warm
    if not _alike(table[Phase.COLD], table[Phase.WARM]):
        cold = Floors(
            scenario=scenario, topology=topology, stages=table[Phase.COLD], lengths=length
        )
    first, later = _epochs(scenario, length, cold, warm)
    several = np.asarray(length.epochs) > 1.0
    own = np.where(several, _counted(warm), _counted(cold)) * ROUNDING
    # An epoch of one step may hold less than a full one: there the whole of it is the mean step.
    whole = np.where(several, later, first)
    step = np.where(np.asarray(length.steps) == 1, np.minimum(own, whole), own) + beside.per_step
    train = scenario.job.train
    samples = train.batch_size * train.accumulation * scenario.ranks * scenario.job.copies
    total = _total(length, first, later, beside)
    times = {
        "total_time_s": total,
        "cost.time_to_train_s": total,
        "step_time_s.mean": step,
        "epoch_time_s": np.where(several, later, first) + beside.per_step * length.steps,
        "throughput_samples_per_s": samples * length.fullest / np.maximum(step, 1e-300),
    }
    return times, np.where(several, warm.settling, 0.0) if np.any(several) else 0.0


def _counted(floors: Floors) -> Real:
    """Return a lower bound on the mean step in an epoch that may be too short to become steady.

    The mean is over the steps after a warm-up. Batches that were ready when the warm-up ended were
    prepared before: at most those that may be requested but not yet taken, and those in transit to
    the device. The device's own work of a step is never done in advance. Without a fixed order, the
    small last batch may be among the measured ones. Longer epochs are simulated until steps repeat,
    in whole periods; but a long epoch of equal batches may end before that, and then only the least
    step in steady state is guaranteed.
    """
    scenario, length = floors.scenario, floors.lengths
    job, policy = scenario.job, scenario.job.input.policy
    producers: Real = policy.producers
    away: Real = 0.0
    if job.remote is not None:
        own = producers if makes_own_batches(scenario) else 0.0
        producers = own + producer_count(scenario, floors.topology, job.remote.name)
        away = job.remote.queue + producers
    asked = np.maximum(1.0, np.maximum(policy.credits + away, producers))
    in_flight = np.ceil(asked / length.accumulation)
    steps = np.asarray(length.steps, dtype=float)
    dropped = np.minimum(2.0 * in_flight + 2.0, np.floor(steps / MIN_ROUNDS))
    # Of an epoch over so soon the first step is left out, and its wait with it.
    dropped = np.where(steps >= MIN_ROUNDS * in_flight, dropped, np.minimum(1.0, steps - 1.0))
    counted = np.maximum(1.0, steps - dropped - 1.0) * length.accumulation
    small = 0.0 if policy.in_order and job.remote is None else 1.0 - length.last_share
    ready = np.where(dropped > 0.0, asked + AHEAD, 0.0) + small
    made = floors.step * np.maximum(0.0, 1.0 - ready / counted)
    used = floors.device * np.maximum(0.0, 1.0 - small / counted)
    seen = np.maximum(made, used)
    floor: Real = np.where(steps <= MAX_STEPS, seen, np.maximum(seen, floors.goes_on))[()]
    return floor


def _alike(cold: Sequence[StageDemands], warm: Sequence[StageDemands]) -> bool:
    """Return whether demands with cold and warm caches are equal; only reads depend on caches."""
    return all(
        np.array_equal(a.amount, b.amount) and np.array_equal(a.latency, b.latency)
        for one, other in zip(cold, warm, strict=True)
        if one.slot.reads
        for a, b in zip(one.demands, other.demands, strict=True)
    )


def _epochs(
    scenario: Scenario, length: Lengths, cold: Floors, warm: Floors
) -> tuple[Seconds | Real, Seconds | Real]:
    """Return lower bounds on the first epoch and on later ones [s].

    If workers continue with the batches of the next epoch, later epochs consist of steady-state
    steps.
    """
    pipeline = scenario.job.input
    starts = worker_start(scenario)
    first = pipeline.epoch_start + starts + cold.epoch * ROUNDING
    if pipeline.policy.crosses_epochs:
        return first, warm.step * length.full_steps * ROUNDING
    again = starts if pipeline.policy.restarts else 0.0
    return first, pipeline.epoch_start + again + warm.epoch * ROUNDING


def _total(length: Lengths, first: Real, later: Real, beside: Extras) -> Real:
    """Return a lower bound on the run time, composed as in a prediction [s]."""
    training: Real = first * np.minimum(1.0, length.epochs)
    training = training + later * np.maximum(0.0, length.epochs - 1.0)
    total: Real = beside.once + training + beside.per_step * length.total_steps
    return total


def _costs(scenario: Scenario, times: Columns) -> dict[str, Real]:
    """Return lower bounds on costs of machines and data by metric; empty without a price."""
    price = machines_price(scenario)
    if price is None:
        return {}
    total, job = times["total_time_s"], scenario.job
    found = {
        "cost.usd_per_h": price * HOUR,
        "cost.usd_per_step": cost.cost_per_step(price, times["step_time_s.mean"]),
        "cost.usd_for_machines": cost.cost_to_train(price, total, scenario.cost.provisioning),
    }
    found["cost.usd_to_train"] = found["cost.usd_for_machines"] + rent_of_data(scenario) * total
    if np.all(np.asarray(price) > 0.0):
        train, length = job.train, lengths(scenario)
        a_step = train.batch_size * train.accumulation * scenario.ranks * job.copies
        rate = a_step * length.full_steps / np.maximum(times["epoch_time_s"], 1e-300)
        found["cost.samples_per_usd"] = cost.samples_per_usd(rate, price)
    return found


def _memory(scenario: Scenario) -> tuple[dict[str, Real], list[Words]]:
    """Return the exact memory by metric, and the reasons of candidates that do not fit."""
    ram, gpu = host_ram(scenario), memory_fit(scenario)
    found: dict[str, Real] = {
        "host_ram_bytes.total": ram.total,
        "host_ram_bytes.capacity": ram.capacity,
    }
    reasons = [_short("host RAM", ram.total, ram.capacity, ram.verdict)]
    if gpu is not None:
        found |= {"gpu_memory_bytes.total": gpu.total, "gpu_memory_bytes.capacity": gpu.capacity}
        reasons.append(_short("accelerator memory", gpu.total, gpu.capacity, gpu.verdict))
    remote = scenario.job.remote
    if remote is not None:
        away = host_ram(helpers_alone(scenario, remote))
        reasons.append(_short("RAM of a helper", away.total, away.capacity, away.verdict))
    return found, reasons


def _short(what: str, needed: Real, there: Real, verdict: Real | Verdict) -> Words:
    """Describe for each candidate why a memory is too small; empty if it is not."""
    short = np.asarray(verdict) == Verdict.NO
    if not np.any(short):
        return np.asarray("", dtype=object)
    short, needed, there = np.broadcast_arrays(short, needed, there)
    words = [
        f"{what}: {show(float(need), BYTE)} needed, {show(float(has), BYTE)} there" if no else ""
        for no, need, has in zip(short.flat, needed.flat, there.flat, strict=True)
    ]
    return np.array(words, dtype=object).reshape(short.shape)
