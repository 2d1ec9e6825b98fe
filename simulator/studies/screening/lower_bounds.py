"""Least times of a step and of an epoch: what no order of events, queue or overlap can undercut.

Each floor looks at one thing that works serially, or at one unit that all share:

- *Work*. A unit carries all that is asked of it, an actor does its batches one after another. A
  step of n batches takes at least n times what a batch asks of it. A processor is counted with the
  capacity it has for as many threads as the job can ever keep runnable, not for all it could run.
- *Before and after*. Where workers begin each epoch again, nothing is ready at its start: before a
  unit's first work some batch must have come there, through all that stands before it, alone on
  idle machines at best; and the last work of the unit must go through all that comes behind,
  to the end of a step. Work, way there and way on follow one another, so their times add up.

The device does a batch's passes, waits for its exchange and for the last bucket of gradients, and
returns results, one after another; whether copies come on top follows the loader's rules. All
bucket exchanges of a step follow one another and begin with the first bucket, so from there on they
are a floor as well. A program that waits for the device in each step takes the next batch only
then, so the copy of a step's first batch, and what its thread does for batches, add to the step.

Where samples differ by chance, or groups of workers of their own pace work side by side, the work
of workers is known up to what a run looks at (`chance`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate

import numpy as np

from simulator.pipeline.loads import (
    DeviceStep,
    alone,
    device_step,
    least_batch,
    longest,
    producer_count,
    unit_loads,
)
from simulator.pipeline.run_length import Lengths
from simulator.pipeline.shared_cores import SharedCores
from simulator.pipeline.stages.base import (
    OF_A_RANK,
    PRODUCERS,
    Actor,
    Demand,
    Path,
    Per,
    StageDemands,
)
from simulator.pipeline.stages.communication import bucket_shares
from simulator.pipeline.topology import CPU, Location, Topology
from simulator.records import dataclass
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.studies.screening.chance import (
    assured,
    expected,
    random,
    share_ahead,
    share_of_making,
)
from simulator.studies.screening.synchronised_workers import Crowd
from simulator.units import Real

_LIKE_THE_FIRST = re.compile(r"(pcie|nvlink) gpu[1-9]").match


@dataclass(frozen=True, kw_only=True)
class Floors:
    """Lower bounds on times of a job with cold or warm caches [s].

    All times may be arrays over candidates. `stages` is the demand table, `lengths` are the numbers
    of steps and batches of an epoch.
    """

    scenario: Scenario
    topology: Topology
    stages: Sequence[StageDemands]
    lengths: Lengths

    @cached_property
    def step(self) -> Real:
        """Lower bound on the mean step in steady state."""
        per_step = self.lengths.accumulation
        shared = longest(load for _, load in self._loads) * per_step
        serial = np.maximum(self._cycle, self._crowd.cycle)
        made = np.maximum(serial, self._cores.cycle) * per_step
        floor: Real = np.maximum(np.maximum(shared, made) * self.chance, self._using_step)
        return np.maximum(floor, self.goes_on)

    @cached_property
    def settling(self) -> Real:
        """Expected excess of an epoch over its lower bound [s]; 0 if unknown.

        It follows from the equilibrium of workers and pin-memory threads that share cores
        (`SharedCores.equilibrium`), which no invariant guarantees.
        """
        if self.scenario.job.input.policy.crosses_epochs:
            floor = self.step * self.lengths.full_steps
            whole = self._cores.equilibrium * self.lengths.accumulation * self.lengths.full_steps
        else:
            used = self._using_step / self.lengths.accumulation
            first = self._crowd.first
            floor, whole = self.epoch, self._cores.settled_span(self._work, first, used)
        longer: Real = np.maximum(0.0, whole * expected(self.scenario, self.lengths) - floor)
        return longer

    @cached_property
    def goes_on(self) -> Real:
        """Lower bound on the mean step of a long run, which prefetched batches cannot sustain."""
        return self._least * self.lengths.accumulation * self._assured[0]

    @cached_property
    def device(self) -> Real:
        """Time of the device in a step.

        The rank that ends a step last does all work of the next step in that step.
        """
        return self.lengths.accumulation * self._per_batch + self._per_step

    @cached_property
    def epoch(self) -> Real:
        """Lower bound on an epoch in which workers start without prefetched batches."""
        units = longest(self._unit_epochs())
        used = self._receive, self._copy, self._per_batch, self._per_step
        made = np.maximum(
            self._work * self._cycle + self._after_producers, self._crowd.epoch(*used)
        )
        made = np.maximum(made, self._shared_epoch)
        floor: Real = np.maximum(np.maximum(units, made) * self.chance, self._using_epoch)
        return np.maximum(floor, self._work * self._least * self._assured[1])

    @cached_property
    def _shared_epoch(self) -> Real:
        apart = self._received + self._last * self._copy + self._after
        return self._cores.span(self._work, apart)

    @cached_property
    def chance(self) -> Real:
        """Fraction of the workers' work surely within the measured steps; 1 if steps repeat."""
        producers = [producer_count(self.scenario, self.topology, group) for group in self._groups]
        return share_of_making(self.scenario, self.lengths, producers)

    @cached_property
    def window(self) -> Real:
        """Fraction of work before the device surely in the measured steps; 1 if not random."""
        return share_ahead(self.scenario, self.lengths)

    @cached_property
    def _assured(self) -> tuple[Real, Real]:
        return assured(self.scenario, self.lengths)

    @cached_property
    def _least(self) -> Real:
        return least_batch(self.scenario, self.topology, self.stages)

    # what a batch takes, alone on idle machines

    @cached_property
    def _groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.group for s in self.stages if s.actor in PRODUCERS))

    @cached_property
    def _least_made(self) -> Real:
        factors = [min(1.0, s.factor) for s in self.scenario.job.input.straggler]
        return float(np.prod(factors))

    def _making(self, group: str, actors: frozenset[Actor] = PRODUCERS) -> Real:
        """Return the time in which a worker of a group of machines prepares a batch alone."""
        place = Location(rank=0, site=self.topology.sites_of(group)[0])
        own = (s for s in self.stages if s.actor in actors and s.group == group)
        return self._least_made * _total(
            alone(self.topology, demand, place) for s in own for demand in s.demands
        )

    @cached_property
    def _made(self) -> Real:
        """Time until a batch is handed over; 0 for random samples, as one may be small."""
        if self._random:
            return 0.0
        times = [self._making(group) for group in self._groups]
        return _least(times) if times else 0.0

    @cached_property
    def _crowd(self) -> Crowd:
        return Crowd(
            scenario=self.scenario, topology=self.topology, stages=self.stages, lengths=self.lengths
        )

    @cached_property
    def _cores(self) -> SharedCores:
        return SharedCores(scenario=self.scenario, topology=self.topology, stages=self.stages)

    @cached_property
    def _there(self) -> Real:
        return np.maximum(self._first * self._made, self._crowd.first)

    @cached_property
    def _received(self) -> Real:
        among_first = self.lengths.batches <= self._crowd.begun
        least = np.where(among_first, self._last, self._first) * self._made
        return np.maximum(least, self._crowd.first)

    @cached_property
    def _random(self) -> bool:
        return random(self.scenario)

    def _of(self, actor: Actor) -> Real:
        own = (s for s in self.stages if s.actor is actor)
        return _total(self._quick(demand) for s in own for demand in s.demands)

    def _quick(self, demand: Demand, group: str = "") -> Real:
        """Return the time of a demand of the rank with the fastest route."""
        ranks = self.topology.representatives if demand.path in OF_A_RANK else ((0, 1.0),)
        site = self.topology.sites_of(group)[0]
        places = (Location(rank=rank, site=site) for rank, _ in ranks)
        return _least([alone(self.topology, demand, place) for place in places])

    @cached_property
    def _receive(self) -> Real:
        return self._of(Actor.PIN_MEMORY)

    @cached_property
    def _launch(self) -> Real:
        return self._of(Actor.MAIN_THREAD)

    @cached_property
    def _copy(self) -> Real:
        return self._of(Actor.COPY_ENGINE)

    @cached_property
    def _device_step(self) -> DeviceStep:
        trains = self.scenario.job.mode is Mode.TRAIN
        stages = [s for s in self.stages if trains or s.slot.per is not Per.BUCKET]
        return device_step(
            stages, self._quick, partial(bucket_shares, self.scenario), self._fullest
        )

    @cached_property
    def _per_batch(self) -> Real:
        return self._device_step.per_batch

    @cached_property
    def _per_step(self) -> Real:
        return self._device_step.per_step + self._device_step.exposed

    # who works serially

    @cached_property
    def _producers(self) -> Real:
        return producer_count(self.scenario, self.topology, "")

    @cached_property
    def _has_producers(self) -> bool:
        return bool(np.any(self._producers)) or self.scenario.job.remote is not None

    @cached_property
    def _cycle(self) -> Real:
        """Time between two batches of a rank by the serial work of its workers, all in parallel."""
        if not self._has_producers:
            return 0.0
        rate: Real = 0.0
        for group in self._groups:
            workers = producer_count(self.scenario, self.topology, group)
            serial = self._serial(group)
            if not np.any(serial):
                return 0.0
            rate = rate + workers / np.maximum(serial, 1e-300)
        return np.where(rate > 0.0, 1.0 / np.maximum(rate, 1e-300), 0.0)[()]

    def _serial(self, group: str) -> Real:
        """Return the time that one worker needs for a batch.

        If reading and decoding are two chained threads, it is the longer of both.
        """
        whole = self._making(group, frozenset({Actor.WORKER}))
        if group or not self.scenario.job.input.policy.reads_ahead:
            return whole
        place = Location(rank=0)
        own = [s for s in self.stages if s.slot.reads and not s.group]
        reading = self._least_made * _total(
            alone(self.topology, demand, place) for s in own for demand in s.demands
        )
        return np.maximum(reading, whole - reading)

    @cached_property
    def _beside(self) -> bool:
        pipeline = self.scenario.job.input
        return pipeline.pin_memory and pipeline.overlap_copies

    @cached_property
    def _main(self) -> Real:
        if not self._has_producers:
            return self._making("") * self.chance + self._receive
        return 0.0 if self.scenario.job.input.pin_memory else self._receive

    @cached_property
    def _awaited(self) -> Real:
        """Time in which the main thread waits for the copy of a batch."""
        return self._copy if self.scenario.job.input.copies_block else 0.0

    @cached_property
    def _using_step(self) -> Real:
        """Lower bound on a step by the stages that consume batches."""
        job, n = self.scenario.job, self.lengths.accumulation
        batch, copy, once = self._per_batch, self._copy, self._per_step
        found = [n * self._receive, n * copy]
        if job.train.sync_every_step:
            exposed = copy if self._beside else n * copy
            device = n * batch + once + exposed
            found.append(n * self._main + copy + batch + once)
        else:
            each = 0.0 if self._beside else copy
            device = n * (batch + each) + once
            found.append(n * (self._main + self._launch + self._awaited))
        return np.maximum(device, longest(found) * self.window)

    # whole epochs

    @cached_property
    def _last(self) -> Real:
        return self.lengths.last_share

    @cached_property
    def _fullest(self) -> Real:
        return self.lengths.fullest

    @cached_property
    def _work(self) -> Real:
        return self.lengths.batches - 1.0 + self._last

    @cached_property
    def _first(self) -> Real:
        policy = self.scenario.job.input.policy
        in_order = policy.in_order and self.scenario.job.remote is None
        return self._fullest if in_order else self._last

    @cached_property
    def _after(self) -> Real:
        return self._last * self._per_batch + self._per_step

    @cached_property
    def _after_producers(self) -> Real:
        return self._last * (self._receive + self._copy) + self._after

    @cached_property
    def _using_epoch(self) -> Real:
        """Lower bound on an epoch by the stages that consume batches."""
        steps, work = self.lengths.steps, self._work
        receive, copy, batch, once = self._receive, self._copy, self._per_batch, self._per_step
        arrives = self._there + self._first * receive
        serial = work * batch + steps * once
        there = self._received if self._has_producers else 0.0
        found = [
            there + work * receive + self._last * copy + self._after,
            arrives + work * copy + self._after,
        ]
        if self.scenario.job.train.sync_every_step:
            again = np.maximum(0.0, steps - 2.0 + self._last)
            shown = self._first * copy + again * copy if self._beside else work * copy
            closing = (steps - 1.0 + self._last) * (copy + batch) + steps * once
            found.append(there + work * self._main + closing)
        else:
            shown = self._first * copy if self._beside else work * copy
            # The launching of the last batch may go on while the device works on it.
            launched = np.maximum(0.0, work - 1.0) * self._launch
            each = self._main + self._awaited
            found.append(there + work * each + launched + self._after)
        return np.maximum(arrives + serial + shown, longest(found) * self.window)

    @cached_property
    def _loads(self) -> tuple[tuple[str, Real], ...]:
        """Busy time of each unit for one batch of every rank."""
        if len(self._groups) > 1:
            from simulator.pipeline.loads import fastest_batch  # noqa: PLC0415 - one of two ways

            return (("", fastest_batch(self.topology, self.stages) * self._least_made),)
        loads = unit_loads(self.topology, self.stages)
        least = self._least_made
        # All links of a kind are alike, and so are the accelerators behind them: one will do.
        loads = {unit: load for unit, load in loads.items() if not _LIKE_THE_FIRST(unit)}
        if CPU in loads:
            loads[CPU] = loads[CPU] * self._crowding
        return tuple((unit, load * least) for unit, load in loads.items())

    @cached_property
    def _crowding(self) -> Real:
        if self.scenario.job.remote is not None:
            return 1.0
        return self.topology.host.cpu.capacity / self._cores.most

    def _unit_epochs(self) -> Iterator[Real]:
        """Yield for each unit its busy time in an epoch plus the time before and after it."""
        if len(self._groups) > 1:
            yield self._work * self._loads[0][1]
            return
        chain = list(self._chain())
        there = list(accumulate((time for _, time in chain), initial=0.0))
        on = list(accumulate((time for _, time in reversed(chain)), initial=0.0))[::-1]
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for place, (units, _) in enumerate(chain):
            last |= dict.fromkeys(units, place)
            first = dict.fromkeys(units, place) | first
        for unit, load in self._loads:
            way: Real = self._last * there[first[unit]] if unit in first else 0.0
            if unit in last and unit != "gpu" and unit not in self._used_once:
                way = way + self._last * on[last[unit] + 1] + self._per_step
            yield self._work * load + way

    @cached_property
    def _used_once(self) -> frozenset[str]:
        own = (s for s in self.stages if s.slot.once_a_step)
        ways = (self._units(demand, stage.group) for stage in own for demand in stage.demands)
        return frozenset(unit for way in ways for unit in way)

    def _chain(self) -> Iterator[tuple[frozenset[str], Real]]:
        """Yield the stages of a batch in order: the units that they use, and their time.

        Work that overlaps with compute has time 0.
        """
        for stage in self.stages:
            if stage.slot.once_a_step:
                continue
            making = stage.actor in PRODUCERS
            for demand in stage.demands:
                time = self._quick(demand, stage.group) * (self._least_made if making else 1.0)
                beside = stage.slot.beside_compute or stage.actor is Actor.MAIN_THREAD
                no_time = beside or (making and self._random)
                yield self._units(demand, stage.group), 0.0 if no_time else time

    def _units(self, demand: Demand, group: str) -> frozenset[str]:
        """Return the units that a demand uses for any rank, on any machine of its group."""
        topology, sites = self.topology, self.topology.sites_of(group)
        if demand.path is Path.COMPUTE:
            return frozenset({"gpu"})
        if demand.path is Path.CORES:
            return frozenset(topology.sites[site].prefix + CPU for site in sites)
        ranks = topology.representatives if demand.path in OF_A_RANK else ((0, 1.0),)
        places = (Location(rank=rank, site=site) for rank, _ in ranks for site in sites)
        ways = (topology.way(demand, place) for place in places)
        return frozenset(unit for way in ways for unit, _ in way)


def _total(times: Iterator[Real]) -> Real:
    return sum(times, 0.0)


def _least(times: Sequence[Real]) -> Real:
    found = times[0]
    for time in times[1:]:
        found = np.minimum(found, time)
    return found
