"""The usual search space: machines, how many, where data lies, workers, batch, parallelism.

Each dimension is a function from what is set so far to what may be set next. Keys that the user
searches are left to him: a dimension whose key is set already adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simulator.errors import InputError, PlanError
from simulator.pipeline.program import check_modelled
from simulator.schema.cost import Purchase
from simulator.schema.data_loading import Preparation
from simulator.schema.goal import Goal, Plain
from simulator.studies.baseline import Baseline, Machine, Settings
from simulator.studies.levers import COUNT, MACHINE, PURCHASE
from simulator.studies.levers.catalogue import RELIEF, SEARCH, candidates, relief
from simulator.studies.levers.lever import SearchPoint, Shortage, UnfitError
from simulator.studies.levers.machines import carried_cpu_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A machine that is not looked at further, and why."""

    machine: Machine
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Everything looked at, and machines that are left out."""

    settings: tuple[Settings, ...]
    refused: tuple[Refusal, ...] = ()


def space_of(
    baseline: Baseline, goal: Goal, machines: Sequence[Machine], seeds: Iterable[Settings] = ({},)
) -> Space:
    """All candidates of a search.

    Parameters
    ----------
    ground : Ground
        The scenario and what is on offer.
    goal : Goal
        Its limit on machines bounds their number.
    machines : sequence of Machine
        Those looked at.
    seeds : iterable of settings
        Points along the axes that the user searches; every other dimension is filled in.
    """
    found: dict[tuple[tuple[str, Plain], ...], Settings] = {}
    refused: dict[str, Refusal] = {}
    for seed in seeds:
        for machine in _named(machines, seed):
            try:
                points = list(
                    _on(SearchPoint(baseline=baseline, goal=goal, machine=machine, point=seed))
                )
            except PlanError as error:
                refused[machine.name] = Refusal(machine=machine, reason=_said(error))
                continue
            found |= {tuple(sorted(one.items())): one for one in points}
    return Space(settings=tuple(found.values()), refused=tuple(refused.values()))


def _named(machines: Sequence[Machine], seed: Settings) -> list[Machine]:
    return [machine for machine in machines if seed.get(MACHINE) in (None, machine.name)]


def _said(error: PlanError) -> str:
    """Return the mistake without file and line, since the settings are in no file."""
    if not isinstance(error, InputError):
        return str(error).splitlines()[0]
    first = error.problems[0]
    return f"{first.key}: {first.message}" + (f"; {first.hint}" if first.hint else "")


def _on(at: SearchPoint) -> Iterator[Settings]:
    """Candidates on one machine, dimension by dimension."""
    _check_device(at)
    _check_measured(at)
    _check_sold(at)
    begin = {MACHINE: at.machine.name, **carried_cpu_times(at.baseline, at.machine), **at.point}
    points: list[Settings] = [begin]
    for name in SEARCH:
        points = [
            {**point, **more}
            for point in points
            for more in candidates(
                name,
                SearchPoint(baseline=at.baseline, goal=at.goal, machine=at.machine, point=point),
            )
        ]
    if points:
        check_modelled(at.baseline.reader.read(points[0]).scenario)
    yield from points


def _check_device(at: SearchPoint) -> None:
    """Refuse a neural network on processors alone, whose speed is unknown."""
    job, baseline = at.baseline.scenario.job, at.baseline
    if at.machine.gpus or not baseline.gpus(baseline.own) or job.step_times is not None:
        return
    msg = "has no accelerator, and how fast its processors train this model is not known"
    raise UnfitError(msg)


def _check_measured(at: SearchPoint) -> None:
    """Times measured on one accelerator say nothing about another."""
    job, own = at.baseline.scenario.job, at.baseline.own.gpu
    if at.machine.gpu == own:
        return
    timed = job.step_times is not None and not at.sets("model.step_time")
    prepared = job.input.where is Preparation.DEVICE and not at.sets("input.device_time")
    for measured, key in ((timed, "model.step_times"), (prepared, "input.device_time")):
        if measured:
            msg = f"{key} holds for {own or 'the processors'}: nothing is known of another device"
            raise UnfitError(msg)


def _check_sold(at: SearchPoint) -> None:
    """A machine that is not sold in the way the scenario buys has no bill to compare."""
    cost, sold = at.baseline.scenario.cost, at.machine.sold
    wanted = {at.point.get(PURCHASE, cost.purchase.value)}
    if at.goal.spot is not None:
        wanted.add(Purchase.SPOT.value)
    rented = cost.price is None and wanted != {Purchase.OWNED.value}
    if rented and sold and at.machine.name != at.baseline.own.name and not wanted & sold:
        msg = f"is sold as {' or '.join(sorted(sold))} only, as far as is known"
        raise UnfitError(msg)


def cpu_relief(
    shortage: Shortage, alternatives: Mapping[str, Settings]
) -> Iterator[tuple[str, Settings]]:
    """Return candidates, by name, that give a job more processors or them less to do.

    Parameters
    ----------
    shortage : Shortage
        The job that its processors slow down, machines within the limits, and possible helpers.
    alternatives : mapping
        Settings by name of ways whose figures only the user knows.
    """
    baseline = shortage.baseline
    here: Settings = {
        MACHINE: baseline.own.name,
        COUNT: baseline.scenario.cluster.trainers.count,
    }
    for name, shown in RELIEF.items():
        yield from ((shown, {**here, **settings}) for settings in relief(name, shortage))
    yield from ((name, {**here, **settings}) for name, settings in alternatives.items())
