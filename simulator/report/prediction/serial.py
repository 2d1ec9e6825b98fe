"""Who holds a job up where no resource is full: an actor that works one thing after another."""

from __future__ import annotations

from typing import Final

from simulator.pipeline.loads import Cycle, main_process, slowest_actor
from simulator.pipeline.stages.base import Actor, Resource
from simulator.pipeline.topology import build
from simulator.report.format.rounded import share_known
from simulator.results.binding import starved
from simulator.results.prediction import Prediction
from simulator.units import SECOND, Seconds, show

NEARLY: Final = 0.9
"""Share of the work of a unit, which is not full, from which on an actor's work is what limits."""
MISSED: Final = 1.03
"""Ratio of two times of a batch from which on the shorter one doesn't explain the speed."""
_DOES = {
    Resource.CPU: "on the CPUs",
    Resource.STORAGE: "reading",
    Resource.NETWORK: "on the network",
    Resource.PCIE: "copying over PCIe",
    Resource.NVLINK: "copying between accelerators",
    Resource.HOST_MEMORY: "moving memory",
}


def serial_limit(prediction: Prediction) -> Cycle | None:
    """The actor whose work on one batch after another limits the job, if the bottleneck is its.

    Parameters
    ----------
    prediction : Prediction
        Of a job that keeps no resource full: the bottleneck is then what the actor spends most of
        its time on, though that resource itself may idle. None is named where machines of another
        group make batches too.
    """
    scenario = prediction.scenario
    if scenario.job.remote is not None:
        return None
    topology, split = build(scenario), prediction.timing.split
    if not scenario.job.loader.crew.makers and starved(split):
        # it makes batches and trains in turn, whichever of the two takes longer
        return main_process(scenario, topology, prediction.demands)
    found = slowest_actor(scenario, topology, prediction.demands, within=NEARLY)
    if found is None or found.actor not in {Actor.WORKER, Actor.RECEIVER}:
        return None
    return found if str(_most(found)) == prediction.timing.bottleneck else None


def makes(cycle: Cycle, prediction: Prediction) -> str:
    """The actor and its verb, such as ``4 workers make``."""
    if cycle.actor is Actor.RECEIVER:
        return "the thread that receives batches passes on"
    crew = prediction.scenario.job.loader.crew
    if not crew.makers:
        return "the main process itself makes"
    if crew.threads > 1.0:
        return "the input pipeline makes"
    each = " in each process" if prediction.scenario.ranks > 1 else ""
    one = crew.makers == 1
    return f"{'one worker' if one else f'{crew.makers} workers'}{each} {'makes' if one else 'make'}"


def who_works(cycle: Cycle, prediction: Prediction) -> str:
    """The actor, such as ``a worker``."""
    if cycle.actor is Actor.RECEIVER:
        return "the receiving thread"
    return _who(cycle, prediction.scenario.job.loader.crew.makers)[0]


def serial_text(cycle: Cycle, prediction: Prediction, busy: str) -> str:
    """How long the actor takes for a batch, on what, and what would help.

    Parameters
    ----------
    cycle, prediction :
        As from `serial_limit`.
    busy : str
        How busy the resource is, such as ``the storage is 0.0% busy``.
    """
    makers = prediction.scenario.job.loader.crew.makers
    most = _most(cycle)
    share = float(cycle.times[most]) / float(cycle.whole)
    batch = float(cycle.whole) * max(1, makers if cycle.actor is Actor.WORKER else 1)
    who, advice = _who(cycle, makers)
    taken = show(batch, SECOND, 2)
    return (
        f"a batch takes {who} {taken}{_waiting(cycle, batch, prediction)}, {share_known(share)} of "
        f"it {_DOES[most]} ({busy}); {advice}."
    )


def _waiting(cycle: Cycle, batch: Seconds, prediction: Prediction) -> str:
    """What waiting adds to a worker's time for a batch, where it is known by its absence.

    So many workers hand over a batch in each step of their process, one after another.
    """
    makers = prediction.scenario.job.loader.crew.makers
    if cycle.actor is not Actor.WORKER or not makers:
        return ""
    step = prediction.timing.step_time.mean / prediction.scenario.job.train.accumulation
    whole = makers * step
    if whole <= MISSED * batch:
        return ""
    return f" of work ({show(whole, SECOND, 2)} with waiting)"


def _most(cycle: Cycle) -> Resource:
    return max(cycle.times, key=lambda resource: float(cycle.times[resource]))


def _who(cycle: Cycle, makers: int) -> tuple[str, str]:
    if cycle.actor is Actor.RECEIVER:
        return "that thread", "each process that trains has one, so more workers don't help"
    if not makers:
        return "the main process", "workers would do that meanwhile"
    return "a worker", "more workers would do that side by side"
