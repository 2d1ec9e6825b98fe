"""The trace of a simulated epoch: what its ranks did, and how busy each unit was."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.engine.machine import device
from simulator.engine.recorder import Epoch
from simulator.engine.stage_lanes import stage_slices
from simulator.pipeline.loads import resource_name
from simulator.pipeline.stages.base import Resource
from simulator.pipeline.topology import CPU, Topology
from simulator.results.prediction import Counter, Sample, Trace
from simulator.scenario.scenario import Scenario


def trace_of(scenario: Scenario, topology: Topology, epoch: Epoch) -> Trace:
    """Everything that a traced epoch noted.

    A model on a pipeline of devices is simulated on its slowest stage; the slots of the others in
    one steady step stand beside it.

    Parameters
    ----------
    scenario, topology : Scenario, Topology
        What was simulated, and on which units.
    epoch : Epoch
        With its slices and samples.
    """
    fold = epoch.fold
    counters = tuple(_counters(topology, epoch))
    idle = (Sample(unit=counter.unit, time=0.0, value=0.0) for counter in counters)
    return Trace(
        slices=(*epoch.slices, *stage_slices(scenario, epoch)),
        samples=(*idle, *epoch.samples),
        start=0.0,
        end=epoch.end,
        ends=epoch.ends,
        first=epoch.first,
        last=epoch.last,
        counters=counters,
        shown_as={lane: rank for rank in fold.ranks for lane in fold.lanes(rank)},
        stands_for={lane: fold.count(rank) for rank in fold.ranks for lane in fold.lanes(rank)},
        machines=scenario.cluster.trainers.count,
    )


def _counters(topology: Topology, epoch: Epoch) -> Iterator[Counter]:
    """Every unit that may be sampled, in the order it is shown."""
    home = topology.sites[0].group.name
    helpers = [site.prefix for site in topology.sites[1:]]
    units = {site.prefix + CPU: home for site in topology.sites}
    units |= {name: unit.owner for name, unit in topology.units.items()}
    for unit, owner in units.items():
        machine = next((prefix.strip() for prefix in helpers if unit.startswith(prefix)), owner)
        yield Counter(unit=unit, machine=machine, resource=resource_name(topology, unit))
    if topology.host.gpu is not None:
        lanes = sorted(lane for rank in epoch.fold.ranks for lane in epoch.fold.lanes(rank))
        for lane in lanes:
            yield Counter(unit=device(lane), machine=home, resource=str(Resource.GPU))
