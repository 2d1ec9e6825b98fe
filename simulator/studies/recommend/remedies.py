"""What helps a job that its processors hold up: each remedy as candidates of the search.

Four ways, all derived from data: a machine of the same family with more vCPUs for each
accelerator; machines without accelerators that make batches beside; preparing samples on the
accelerators; preparing them once, before the run. Which of them is best, the goal says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from simulator.schema.goal import Plain
from simulator.schema.hardware.storage import Scope
from simulator.schema.workload.dataset import CachePolicy
from simulator.schema.workload.loader import LoaderKind, Preparation
from simulator.schema.workload.train import Mode
from simulator.studies.baseline import (
    COUNT,
    MACHINE,
    WORKERS,
    Baseline,
    Machine,
    Settings,
    worth_renting,
)
from simulator.studies.recommend.space import moved

FAMILY: Final = "a larger machine of the family"
HELPERS: Final = "machines that prepare batches beside"
BEFOREHAND: Final = "preparing once, before the run"
MOST_HELPERS: Final = 4
"""Machines that prepare batches, by powers of two."""


def remedies(
    baseline: Baseline,
    offered: tuple[Machine, ...],
    beside: tuple[Machine, ...],
    given: Mapping[str, Settings],
) -> Iterator[tuple[str, Settings]]:
    """Candidates that give a job more processors, or its processors less to do.

    Parameters
    ----------
    ground : Ground
        The scenario whose processors hold it up, and what is on offer.
    offered : tuple of Machine
        Machines that the limits leave.
    beside : tuple of Machine
        Machines that may prepare batches beside.
    given : mapping
        Settings of remedies that only the user knows the figures of, by name.
    """
    here: dict[str, Plain] = {
        MACHINE: baseline.own.name,
        COUNT: baseline.scenario.cluster.trainers.count,
    }
    yield from ((FAMILY, settings) for settings in _family(baseline, offered))
    yield from ((HELPERS, {**here, **more}) for more in _helpers(baseline, beside))
    yield from ((BEFOREHAND, {**here, **more}) for more in _beforehand(baseline))
    yield from ((name, {**here, **more}) for name, more in given.items())


def _family(baseline: Baseline, offered: tuple[Machine, ...]) -> Iterator[Settings]:
    """Machines of the family with more vCPUs an accelerator: one, and as many accelerators."""
    own = baseline.own
    for machine in offered:
        related = (machine.cloud, machine.family) == (own.cloud, own.family)
        if not related or machine.gpus == 0 or machine.threads_per_gpu <= own.threads_per_gpu:
            continue
        wanted = own.gpus * baseline.scenario.cluster.trainers.count
        counts = {1, -(-wanted // machine.gpus) if machine.networked else 1}
        for count in sorted(counts):
            workers = {WORKERS: int(machine.threads_per_gpu)}
            yield {MACHINE: machine.name, COUNT: count, **moved(baseline, machine), **workers}


def _helpers(baseline: Baseline, beside: tuple[Machine, ...]) -> Iterator[Settings]:
    """Machines of the cloud without accelerators, beside one machine that trains."""
    scenario, own = baseline.scenario, baseline.own
    job = scenario.job
    alone = scenario.cluster.trainers.count == 1 and job.copies == 1 and job.remote is None
    if not alone or not own.networked or job.mode is not Mode.TRAIN:
        return
    for machine in beside:
        if machine.cloud != own.cloud or machine.gpus or not machine.networked:
            continue
        for store, k in product(_stores(baseline, machine), range(MOST_HELPERS.bit_length())):
            yield {"remote.machine": machine.name, "remote.count": 2**k, **store}


def _stores(baseline: Baseline, helper: Machine) -> list[Settings]:
    """Where a helper reads: as the scenario has it; stores of the cloud where it could not."""
    data, own = baseline.scenario.job.dataset, baseline.scenario.cluster.trainers.storage
    shared = own.scope is not Scope.LOCAL or data.cache is CachePolicy.PRELOADED
    if shared or helper.drives or baseline.reader.given("remote.storage") is not None:
        return [{}]
    size = baseline.scenario.job.stored_total
    kept = worth_renting(helper, baseline.nearby(helper), size)
    return [{"remote.storage": store.name} for store in kept] or [{}]


def _beforehand(baseline: Baseline) -> Iterator[Settings]:
    """Samples stored as they are when finished, which is known, and only collated then."""
    work = baseline.scenario.job.preprocessing
    makes = baseline.scenario.job.loader.kind is not LoaderKind.ACTORS
    prepares = work.where is Preparation.CPU and work.decode + work.augment > 0.0
    if makes and prepares and work.output_bytes > 0.0:
        yield {
            "input.where": Preparation.BEFOREHAND.value,
            "input.prepared_bytes_per_sample": f"{work.output_bytes:.0f} B",
        }
