"""The simulated machine: what a demand of a rank turns into when it is carried out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from simpy import Environment, Event

from simulator.engine.cpu_pool import CpuPool
from simulator.engine.flows import FlowNetwork
from simulator.engine.sharing import OnChange
from simulator.engine.stream import Stream
from simulator.plant import Plant
from simulator.stages.base import Demand, Path, Resource

Task: TypeAlias = Callable[[float], Event]
"""Carries out a demand scaled by a factor; the event fires when it is done."""

CPU = "cpu"


class Machine:
    """One machine's shared units, its CPU pool and a compute stream for each rank."""

    def __init__(self, env: Environment, plant: Plant, on_change: OnChange | None = None) -> None:
        pool = plant.host.cpu
        self.env = env
        self.plant = plant
        self._network = FlowNetwork(
            env,
            {name: float(unit.capacity) for name, unit in plant.units.items()},
            on_change=on_change,
        )
        self._pool = CpuPool(
            env,
            cores=float(pool.cores),
            threads=int(pool.threads),
            smt_worth=float(pool.smt_worth),
            contention=float(pool.contention),
            on_change=on_change,
            unit=CPU,
        )
        self._compute = [
            Stream(env, on_change=on_change, unit=f"gpu{rank}") for rank in range(plant.ranks)
        ]

    def task(self, demand: Demand, rank: int) -> Task | None:
        """How to carry out a demand of `rank`; None where it asks for nothing."""
        amount, latency = float(demand.amount), float(demand.latency)
        if amount == 0.0 and latency == 0.0:
            return None
        if demand.path is Path.COMPUTE:
            return partial(_scaled, self._compute[rank].run, amount)
        if demand.path is Path.CORES:
            return partial(self._run_on_cores, amount, demand.threads)
        ceiling = math.inf if demand.ceiling is None else float(demand.ceiling)
        way = self.plant.way(demand, rank)
        route = tuple((name, float(use)) for name, use in way if float(use) > 0.0)
        return partial(self._carry, amount, route, ceiling, latency)

    def _run_on_cores(self, core_seconds: float, threads: float, scale: float) -> Event:
        return self._pool.run(core_seconds * scale, threads=threads)

    def _carry(
        self,
        amount: float,
        route: tuple[tuple[str, float], ...],
        ceiling: float,
        latency: float,
        scale: float,
    ) -> Event:
        return self._network.transfer(
            amount * scale, route, ceiling=ceiling, latency=latency * scale
        )

    def busy(self) -> dict[str, float]:
        """Busy time of every unit up to now [s]; a unit half used counts half."""
        flows = {name: self._network.busy(name) for name in self.plant.units}
        streams = {f"gpu{rank}": stream.busy() for rank, stream in enumerate(self._compute)}
        return flows | {CPU: self._pool.busy()} | streams

    def resource_of(self, unit: str) -> Resource:
        """The resource a unit belongs to."""
        if unit == CPU:
            return Resource.CPU
        known = self.plant.units.get(unit)
        return Resource.GPU if known is None else known.resource


def _scaled(run: Callable[[float], Event], seconds: float, scale: float) -> Event:
    return run(seconds * scale)
