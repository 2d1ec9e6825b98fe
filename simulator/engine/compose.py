"""A whole run out of simulated epochs: what was not replayed is composed.

An epoch of n steps takes what the simulated one of k steps took, start and drain included, plus
n - k mean steady steps. A run is its start-up, a first epoch with cold caches, warm epochs,
evaluation passes, checkpoints and shut-down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

import numpy as np

from simulator.engine.folding import Fold
from simulator.engine.machine import device
from simulator.engine.recorder import Epoch
from simulator.pipeline.ledger import DATA, by_line
from simulator.pipeline.loads import resource_name
from simulator.pipeline.program import CHECKPOINTING
from simulator.pipeline.run_length import Extras, Lengths
from simulator.pipeline.stages.base import Resource
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
)
from simulator.results.prediction import Distribution, Usage
from simulator.units import Seconds

NOTHING: Final[Mapping[str, Seconds]] = {}


def epoch_time(epoch: Epoch, steps: int) -> Seconds:
    """Time of an epoch of `steps` steps of which `epoch` simulated some or all [s]."""
    return epoch.end + (steps - epoch.steps) * epoch.mean_step


def total_time(first: Seconds, later: Seconds, lengths: Lengths, extras: Extras) -> Seconds:
    """Time of the whole run from its first and later epochs [s]."""
    epochs = lengths.epochs
    training = first * min(1.0, epochs) + later * max(0.0, epochs - 1.0)
    return extras.once + training + extras.per_step * lengths.total_steps


def distribution(epoch: Epoch, mean: Seconds) -> Distribution:
    """Steady step times as percentiles [s]; their mean is given, with its share of what is rare."""
    times = np.asarray(epoch.steady_steps)
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    return Distribution(mean=mean, p50=float(p50), p95=float(p95), p99=float(p99))


def ledger(epoch: Epoch, checkpoint: Seconds) -> tuple[Mapping[str, Seconds], Seconds]:
    """The mean step of the average rank line by line, and the exchange it hid [s].

    `checkpoint` is the share of checkpoints in a step, which stand outside of the epochs. What a
    bound adds to the steps that were seen is waiting for data. Lines that take no time are left
    out.
    """
    first, last = epoch.snapshots[epoch.first], epoch.snapshots[epoch.last]
    *spent, hidden = (
        (fmean(after, epoch.fold.counts) - fmean(before, epoch.fold.counts))
        / (epoch.last - epoch.first)
        for before, after in zip(
            zip(*first.ledgers, strict=True), zip(*last.ledgers, strict=True), strict=True
        )
    )
    lines = by_line(spent) | {slot.name: checkpoint for slot in CHECKPOINTING}
    lines[DATA] += epoch.mean_step - epoch.seen_step
    found = {name: seconds for name, seconds in lines.items() if seconds != 0.0}
    return found, max(0.0, hidden)  # what is taken back again may leave a rounding


def usage(
    epoch: Epoch, topology: Topology, step: Seconds, beside: Mapping[str, Seconds] = NOTHING
) -> Mapping[str, Usage]:
    """How busy each resource is over mean steps, by resource.

    Resources of machines that don't train are led by the group's name. A link or a store counts
    as busy as its busier direction or limit.

    Parameters
    ----------
    epoch : Epoch
        What was simulated; its steady window shows the work of a step.
    topology : Topology
        All units.
    step : float
        The mean step, with what is composed beside the simulated ones [s].
    beside : mapping of str to float, optional
        How long that keeps units busy, as a step's share [s].
    """
    first, last = epoch.snapshots[epoch.first], epoch.snapshots[epoch.last]
    window = (epoch.last - epoch.first) * step
    share = {
        unit: min(1.0, (busy - first.busy[unit]) / window) if window > 0.0 else 0.0
        for unit, busy in last.busy.items()
    }
    found = _pools(share, topology, epoch.fold)
    if topology.host.gpu is not None:
        gpus = [share[device(rank)] for rank in epoch.fold.ranks]
        # a replica of the model over several accelerators keeps all of them busy alike
        there = max(topology.ranks, topology.sites[0].group.gpus_per_host)
        mean = fmean(gpus, epoch.fold.counts)
        found[str(Resource.GPU)] = Usage(
            mean=mean, total=mean * there, units=there, busiest=max(gpus)
        )
    things: dict[str, dict[str, float]] = {}
    for name in topology.units:
        group = things.setdefault(resource_name(topology, name), {})
        thing = _thing(name)
        # A store that nobody used was not simulated.
        used = share.get(epoch.fold.units.get(name, name), 0.0)
        busy = used + beside.get(name, 0.0) / step
        group[thing] = max(group.get(thing, 0.0), min(1.0, busy))
    return found | {name: _over(list(group.values())) for name, group in things.items()}


_LIMITS = (
    *(NETWORK_OPERATIONS, STORAGE_NETWORK, OPERATIONS, REQUESTS, STORE),
    *(NETWORK_IN, NETWORK_OUT, " up", " down"),
)


def _thing(unit: str) -> str:
    """The link or store a unit is one direction or limit of."""
    for limit in _LIMITS:
        if unit.endswith(limit):
            return unit.removesuffix(limit)
    return unit


def _pools(share: Mapping[str, float], topology: Topology, fold: Fold) -> dict[str, Usage]:
    threads: dict[str, list[tuple[float, float]]] = {}
    for number, site in enumerate(topology.sites):
        unit = topology.sites[fold.site(number)].prefix + CPU
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
