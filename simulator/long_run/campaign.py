"""Campaigns: several jobs on one pool of machines, with queueing times, ends and cost."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.records import dataclass
from simulator.schema.long_run import Order, PooledJob
from simulator.units import Seconds, Usd, UsdPerSecond

QUANTILES: Final = (0.5, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """Forecast of a job of a campaign: mean wait, quantiles of wait and of the end [s].

    `usd` is the mean price of the machines while its runs hold them [$]; None if unknown.
    """

    job: PooledJob
    wait: Seconds
    waits: Mapping[float, Seconds]
    ends: Mapping[float, Seconds]
    usd: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOutlook:
    """Forecast of a campaign: its jobs, the end of the last one [s], the cost of the pool [$].

    `busy` is the share of machine time that jobs hold.
    """

    machines: int
    order: Order
    jobs: tuple[Queued, ...]
    ends: Mapping[float, Seconds]
    usd: Mapping[float, Usd] | None
    busy: float


def campaign(  # noqa: PLR0913 - what a pool is
    jobs: Sequence[PooledJob],
    *,
    machines: int,
    order: Order = Order.FIFO,
    price: UsdPerSecond | None = None,
    draws: int = 200,
    seed: int = 0,
) -> CampaignOutlook:
    """Simulate a campaign: jobs that share a pool of machines.

    Parameters
    ----------
    jobs : sequence of PooledJob
        The jobs; each needs at most `machines`.
    machines : int
        Number of identical machines of the pool.
    order : Order
        Order of the queue. Its first job waits for machines, and all jobs behind it wait too.
    price : float, optional
        Price of one machine [$/s]; the pool is paid from the start to the end of the last run.
    draws, seed : int
        Number of simulated campaigns, and seed of all random numbers.
    """
    random = np.random.default_rng(seed)
    drawn = [_once(jobs, machines, order, random) for _ in range(draws)]
    last = np.array([max(float(ends.max()) for ends in one.ends) for one in drawn])
    held = np.array([one.held for one in drawn])
    each = tuple(_queued(number, job, drawn, price) for number, job in enumerate(jobs))
    return CampaignOutlook(
        machines=machines,
        order=order,
        jobs=each,
        ends=_quantiles(last),
        usd=None if price is None else _quantiles(last * machines * price),
        busy=float(held.sum(axis=1).sum() / (last.sum() * machines or 1.0)),
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One simulated campaign: waits and ends of the runs of each job, and its machine time."""

    waits: list[NDArray[np.float64]]
    ends: list[NDArray[np.float64]]
    held: NDArray[np.float64]


def _once(
    jobs: Sequence[PooledJob], machines: int, order: Order, random: np.random.Generator
) -> _Drawn:
    comes, takes = [_arrivals(job, random) for job in jobs], [_times(job, random) for job in jobs]
    arriving = sorted(
        (float(time), number, run)
        for number in range(len(jobs))
        for run, time in enumerate(comes[number])
    )
    waits, ends = [np.zeros(job.count) for job in jobs], [np.zeros(job.count) for job in jobs]
    free, now = machines, 0.0
    running: list[tuple[float, int]] = []
    queue: list[tuple[int, float, int, int]] = []
    upcoming = iter(arriving)
    coming = next(upcoming, None)
    while coming is not None or queue:
        while queue and jobs[queue[0][2]].machines <= free:
            _, came, number, run = heapq.heappop(queue)
            waits[number][run] = now - came
            ends[number][run] = now + float(takes[number][run])
            free -= jobs[number].machines
            heapq.heappush(running, (float(ends[number][run]), jobs[number].machines))
        if coming is not None and (not running or coming[0] <= running[0][0]):
            now, number, run = coming
            urgent = jobs[number].priority if order is Order.PRIORITY else 0
            heapq.heappush(queue, (urgent, now, number, run))
            coming = next(upcoming, None)
        elif running:
            now, freed = heapq.heappop(running)
            free += freed
    held = np.array([float(t.sum()) * job.machines for job, t in zip(jobs, takes, strict=True)])
    return _Drawn(waits, ends, held)


def _arrivals(job: PooledJob, random: np.random.Generator) -> NDArray[np.float64]:
    gaps = random.exponential(job.every, job.count - 1) if job.random else job.every
    return job.start + np.concatenate([[0.0], np.cumsum(np.broadcast_to(gaps, job.count - 1))])


def _times(job: PooledJob, random: np.random.Generator) -> NDArray[np.float64]:
    return random.choice(np.asarray(job.takes, dtype=float), job.count)


def _queued(
    number: int, job: PooledJob, drawn: Sequence[_Drawn], price: UsdPerSecond | None
) -> Queued:
    waits = np.concatenate([one.waits[number] for one in drawn])
    held = float(np.mean([one.held[number] for one in drawn]))
    return Queued(
        job=job,
        wait=float(waits.mean()),
        waits=_quantiles(waits),
        ends=_quantiles(np.array([float(one.ends[number].max()) for one in drawn])),
        usd=None if price is None else held * price,
    )


def _quantiles(values: NDArray[np.float64]) -> dict[float, float]:
    return {q: float(np.quantile(values, q, method="inverted_cdf")) for q in QUANTILES}
