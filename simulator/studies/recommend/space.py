"""The usual search space: machines, how many, where data lies, workers, batch, parallelism.

Each dimension is a function from what is set so far to what may be set next. Keys that the user
searches are left to him: a dimension whose key is set already adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.errors import InputError, PlanError
from simulator.pipeline.limits import check_modelled
from simulator.schema.goal import Goal, Plain
from simulator.schema.hardware.price import Purchase
from simulator.schema.workload.dataset import CachePolicy, Placement
from simulator.schema.workload.loader import LoaderKind, Preparation
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.train import Recompute
from simulator.studies.baseline import (
    ACCUMULATION,
    BATCH,
    COUNT,
    MACHINE,
    MEASURED_ON,
    PLACEMENT,
    PURCHASE,
    STORE,
    WORKERS,
    Baseline,
    Machine,
    Settings,
    holds_better,
    worth_renting,
)
from simulator.studies.recommend.spreading import Shape, ways

MOST_NODES: Final = 8
"""Machines looked at where no limit says how many there may be."""
BATCHES: Final = 2
"""Micro-batches tried: the largest that fits, and half of it."""
RECOMPUTE: Final = "train.recompute"
RECOMPUTATIONS: Final = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
"""How much is computed again, the least first."""
BATCHES_OF_PIPELINE: Final = 3
"""The same where the model is spread: bubbles and memory pull in opposite directions."""


class UnfitError(PlanError):
    """A machine that the scenario cannot be moved to as it is."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """Where a dimension begins: a machine, and what is set so far."""

    baseline: Baseline
    goal: Goal
    machine: Machine
    point: Settings


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
                points = list(_on(_At(baseline=baseline, goal=goal, machine=machine, point=seed)))
            except PlanError as error:
                refused[machine.name] = Refusal(machine=machine, reason=_said(error))
                continue
            found |= {tuple(sorted(one.items())): one for one in points}
    return Space(settings=tuple(found.values()), refused=tuple(refused.values()))


def _named(machines: Sequence[Machine], seed: Settings) -> list[Machine]:
    """The machine that is searched for, or all of them."""
    return [machine for machine in machines if seed.get(MACHINE) in (None, machine.name)]


def _said(error: PlanError) -> str:
    """What is wrong, without the file and line: nobody wrote these settings."""
    if not isinstance(error, InputError):
        return str(error).splitlines()[0]
    first = error.problems[0]
    return f"{first.key}: {first.message}" + (f"; {first.hint}" if first.hint else "")


def _on(at: _At) -> Iterator[Settings]:
    """Candidates on one machine, dimension by dimension."""
    _check_device(at)
    _check_measured(at)
    _check_sold(at)
    begin = {MACHINE: at.machine.name, **moved(at.baseline, at.machine), **at.point}
    points: list[Settings] = [begin]
    for dimension in (_counts, _stores, _parallelism, _batches, _workers, _purchases):
        points = [
            {**point, **more}
            for point in points
            for more in dimension(
                _At(baseline=at.baseline, goal=at.goal, machine=at.machine, point=point)
            )
        ]
    if points:
        check_modelled(at.baseline.reader.read(points[0]).scenario)
    yield from points


def _check_device(at: _At) -> None:
    """A neural network on cores alone takes a time that nobody has measured."""
    job, baseline = at.baseline.scenario.job, at.baseline
    if at.machine.gpus or not baseline.gpus(baseline.own) or job.step_times is not None:
        return
    msg = "has no accelerator, and how fast its processors train this model is not known"
    raise UnfitError(msg)


def _check_measured(at: _At) -> None:
    """Times measured on one accelerator say nothing about another."""
    job, own = at.baseline.scenario.job, at.baseline.own.gpu
    if at.machine.gpu == own:
        return
    timed = job.step_times is not None and not _sets(at, "model.step_time")
    prepared = job.preprocessing.where is Preparation.DEVICE and not _sets(at, "input.device_time")
    for measured, key in ((timed, "model.step_times"), (prepared, "input.device_time")):
        if measured:
            msg = f"{key} holds for {own or 'the processors'}: nothing is known of another device"
            raise UnfitError(msg)


def _check_sold(at: _At) -> None:
    """A machine that is not sold in the way the scenario buys has no bill to compare."""
    cost, sold = at.baseline.scenario.cost, at.machine.sold
    wanted = {at.point.get(PURCHASE, cost.purchase.value)}
    if at.goal.spot is not None:
        wanted.add(Purchase.SPOT.value)
    rented = cost.price is None and wanted != {Purchase.OWNED.value}
    if rented and sold and at.machine.name != at.baseline.own.name and not wanted & sold:
        msg = f"is sold as {' or '.join(sorted(sold))} only, as far as is known"
        raise UnfitError(msg)


def _sets(at: _At, beginning: str) -> bool:
    return any(key.startswith(beginning) for key in at.point)


def moved(baseline: Baseline, machine: Machine) -> dict[str, Plain]:
    """CPU times of the scenario belong to its own machine unless it says where they are from.

    A machine without a CoreMark to compare is taken to be as fast, core for core.
    """
    stated = baseline.reader.given(MEASURED_ON) is not None
    work = baseline.scenario.job.preprocessing.per_sample > 0.0
    if not work or machine.name == baseline.own.name:
        return {}
    if stated:
        return {} if machine.marked else {MEASURED_ON: machine.name}
    return {MEASURED_ON: baseline.own.name} if machine.marked and baseline.own.marked else {}


def _counts(at: _At) -> Iterator[Settings]:
    if COUNT in at.point:
        yield {}
        return
    scenario, job = at.baseline.scenario, at.baseline.scenario.job
    own = scenario.cluster.trainers.count
    most = at.goal.limits.most_nodes or max(MOST_NODES, own)
    alone = job.copies > 1 or not at.machine.networked
    counts = {1} if alone else {2**k for k in range(most.bit_length())}
    if not alone and own <= most:
        counts.add(own)
    yield from ({COUNT: count} for count in sorted(counts))


def _stores(at: _At) -> Iterator[Settings]:
    """The scenario's store, the machine's own drives, stores of the same cloud."""
    if STORE in at.point or PLACEMENT in at.point:
        yield {}
        return
    baseline, machine, dataset = at.baseline, at.machine, at.baseline.scenario.job.dataset
    named = next((store for store in baseline.stores if store.name == baseline.store), None)
    reads = dataset.cache is not CachePolicy.PRELOADED
    streams = dataset.placement is Placement.STREAM
    size = baseline.scenario.job.stored_total
    there = [store for store in baseline.nearby(machine) if store.name != baseline.store]
    nearby = worth_renting(machine, there, size)
    if not baseline.store:
        nearby = [store for store in nearby if not holds_better(machine, store, size)]
    stays = machine.drives if not baseline.store else named is None or machine.cloud in named.clouds
    if stays:
        yield {}
    if stays and baseline.store and reads and streams and machine.drives and named is not None:
        yield {PLACEMENT: Placement.STAGE.value}
    if not stays and not nearby:
        msg = "no store is known that this machine reaches; name one in hardware.storage"
        raise UnfitError(msg)
    kept = nearby if reads else nearby[: 0 if stays else 1]
    yield from ({STORE: store.name} for store in kept)


def _parallelism(at: _At) -> Iterator[Settings]:
    """All of the model on each accelerator where it fits; else ways to spread it."""
    baseline, model = at.baseline, at.baseline.scenario.job.model
    degrees = baseline.scenario.job.parallelism
    decodes = isinstance(model, Transformer) and model.causal and at.machine.gpus > 0
    if not isinstance(model, Transformer) or not decodes or _sets(at, "parallelism."):
        yield {}
        return
    count = int(at.point.get(COUNT, 1))
    batch = baseline.global_batch
    if not degrees.splits_model:
        yield {}
        share = baseline.share(at.machine, at.point)
        smallest: dict[str, Plain] = {BATCH: 1, ACCUMULATION: max(1, share)}
        if share == 0 or baseline.fits(at.machine, {**at.point, **smallest}):
            return
        batch = share * at.machine.gpus * count
    shape = Shape(
        depth=int(model.depth),
        tokens=int(model.tokens),
        experts=0 if model.experts is None else int(model.experts.experts),
    )
    own = {key: 1 for key in ("context", "expert") if getattr(degrees, key) > 1}
    usual = {f"parallelism.{key}": degree for key, degree in own.items()}
    for way in ways(at.machine.gpus, count, shape, batch or 1):
        yield {**usual, **way, **_off(baseline, way)}


def _off(baseline: Baseline, way: Settings) -> dict[str, Plain]:
    """What belongs to a kind of parallelism that this way does without."""
    degrees, depth = baseline.scenario.job.parallelism, baseline.scenario.job.model
    given = {"sequence": degrees.sequence, "async_tensor": degrees.async_tensor}
    alone = way["parallelism.tensor"] == 1
    off: dict[str, Plain] = {
        f"parallelism.{key}": False for key, on in given.items() if on and alone
    }
    pipeline, layers = int(way["parallelism.pipeline"]), int(getattr(depth, "depth", 0))
    even = pipeline > 1 and layers % (pipeline * degrees.interleave) == 0
    if degrees.interleave > 1 and not even:
        off["parallelism.interleave"] = 1
    return off


def _batches(at: _At) -> Iterator[Settings]:
    if BATCH in at.point or ACCUMULATION in at.point:
        yield {}
        return
    baseline, machine = at.baseline, at.machine
    share = baseline.share(machine, at.point)
    if share == 0:
        return
    kept = baseline.global_batch is not None
    most = share if kept else round(baseline.scenario.job.train.batch_size)
    spread = baseline.replica(at.point) > 1
    tried = BATCHES_OF_PIPELINE if spread else BATCHES
    found: set[int] = set()
    for again in _recomputations(at):

        def fits(batch: int, again: Settings = again) -> bool:
            settings = {**at.point, **again, BATCH: batch, ACCUMULATION: share // batch}
            return baseline.fits(machine, settings)

        for batch, accumulation in splits(share, most, fits, tried):
            # What fits with less computed again is faster that way.
            if batch not in found and (fits(batch) or again == _recomputations(at)[-1]):
                found.add(batch)
                yield {**again, BATCH: batch, ACCUMULATION: accumulation}


def _recomputations(at: _At) -> tuple[Settings, ...]:
    """What of the activations may be computed again, the least first: where a model is spread."""
    if RECOMPUTE in at.point or not _sets(at, "parallelism."):
        return ({},)
    return tuple({RECOMPUTE: level.value} for level in RECOMPUTATIONS)


def _workers(at: _At) -> Iterator[Settings]:
    """One worker for each vCPU that a rank has, half as many, and as many as the scenario has."""
    job = at.baseline.scenario.job
    makes = job.preprocessing.per_sample > 0.0 and job.loader.kind is not LoaderKind.ACTORS
    if WORKERS in at.point or not makes or job.remote is not None:
        yield {}
        return
    ranks = max(job.copies, at.baseline.gpus(at.machine) // at.baseline.replica(at.point))
    each = max(1, int(at.machine.threads) // ranks)
    yield from ({WORKERS: count} for count in sorted({each, max(1, each // 2)}))


def _purchases(at: _At) -> Iterator[Settings]:
    yield {}
    if PURCHASE not in at.point and at.goal.spot is not None and Purchase.SPOT in at.machine.sold:
        yield {PURCHASE: Purchase.SPOT.value}


def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a number, the largest first.

    Examples
    --------
    >>> divisors(12)
    (12, 6, 4, 3, 2, 1)
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}, reverse=True))


def splits(
    share: int, most: int, fits: Callable[[int], bool], tried: int
) -> Iterator[tuple[int, int]]:
    """Micro-batch and accumulation that make up what a rank takes in a step.

    Parameters
    ----------
    share : int
        Samples of one rank in one optimizer step.
    most : int
        The largest micro-batch wanted.
    fits : callable
        Whether a micro-batch fits into memory; what does, fits in smaller parts too.
    tried : int
        How many of those that fit, the largest first, each at most half of the one before. Where
        not even one sample fits, the smallest is given all the same: the search says why.

    Examples
    --------
    >>> list(splits(256, 256, lambda batch: batch <= 64, 2))
    [(64, 4), (32, 8)]
    """
    possible = [batch for batch in divisors(share) if batch <= most]
    found, below = 0, most
    for batch in possible:
        if batch <= below and fits(batch):
            yield batch, share // batch
            found, below = found + 1, batch // 2
        if found == tried:
            return
    if found == 0:
        yield possible[-1], share // possible[-1]
