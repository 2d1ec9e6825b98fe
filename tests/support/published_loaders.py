"""Published figures of data loaders and page caches beside ours: more rows for the tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from engine.test_loader_golden import CASES
from measured.test_imread_benchmark import (
    CONTENTION,
    WORKERS,
    Machine,
    held_out,
    machines,
    mean_error,
)
from support.scenarios import scenario, simulate, step_ends

from simulator.equations.storage import (
    hit_ratio_random,
    hit_ratio_random_servers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderCase:
    """A case of a DataLoader: steady step of a reference event model, of torch, and ours [ms]."""

    name: str
    reference: float
    torch: float
    ours: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        figures = (self.reference, self.torch, self.ours)
        errors = (self.ours / self.reference - 1.0, self.ours / self.torch - 1.0)
        return (self.name, *(f"{f:.2f}" for f in figures), *(f"{e:+.2%}" for e in errors))


@cache
def loader_cases() -> tuple[LoaderCase, ...]:
    """All cases, simulated."""
    return tuple(_loader_case(name) for name in CASES)


def _loader_case(name: str) -> LoaderCase:
    batches, batch, workers, prefetch, trainer, slow, in_order, reference, torch = CASES[name]
    job = scenario(
        batches=batches,
        batch_cpu=batch,
        workers=workers,
        prefetch=prefetch,
        compute=trainer,
        stragglers=slow,
        in_order=in_order,
    )
    # the reference's batches are equal on purpose: its workers stay in step
    made = replace(job.job, input=replace(job.job.input, in_step=True))
    ends = step_ends(simulate(replace(job, jobs=(made,)), replay=True))
    first = int(min(4 * workers, batches / 3))
    step = (ends[-1] - ends[first]) / (batches - 1 - first)
    return LoaderCase(name=name, reference=reference, torch=torch, ours=step * 1e3)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePoint:
    """Share of the bytes that a page cache answers: measured, and ours (0..1)."""

    what: str
    measured: float
    ours: float

    @property
    def points(self) -> float:
        """Difference in percentage points."""
        return 100.0 * (self.ours - self.measured)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        return self.what, f"{self.measured:.1%}", f"{self.ours:.1%}", f"{self.points:+.1f} points"


def cache_points() -> tuple[CachePoint, ...]:
    """The three published points of the Linux page cache under shuffled reads."""
    two = float(hit_ratio_random_servers(75 / 146, 2))
    own = 146 / 2
    return (
        CachePoint(
            what="35% of the data cached", measured=0.15, ours=float(hit_ratio_random(0.35))
        ),
        CachePoint(
            what="65% of the data cached", measured=0.47, ours=float(hit_ratio_random(0.65))
        ),
        CachePoint(
            what="two servers that each cache 75 of 146 GiB",
            measured=1.0 - 45 / own,
            ours=two,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Errors on decoders that were left out of the fit, on one machine."""

    machine: str
    error: float
    worst: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        return self.machine, f"{self.error:.2%}", self.worst


@cache
def decoders() -> tuple[Held, ...]:
    """The imread benchmark, machine by machine."""
    return tuple(_held(machine) for machine in machines())


def decoder_error() -> float:
    """Mean absolute error over the machines (0..1)."""
    return float(np.mean([held.error for held in decoders()]))


def _held(machine: Machine) -> Held:
    errors = held_out(machine, CONTENTION)
    rows = np.nanmean(errors, axis=0)
    decoder, workers = np.unravel_index(np.abs(rows).argmax(), rows.shape)
    worst = (
        f"{machine.decoders[decoder]}, {WORKERS[workers]:.0f} workers, "
        f"{rows[decoder, workers]:+.1%}"
    )
    return Held(machine=machine.name, error=mean_error(errors), worst=worst)


def summary() -> Iterator[tuple[str, ...]]:
    """Rows of the README's table."""
    cases = loader_cases()
    off = max(abs(case.ours / case.reference - 1.0) for case in cases)
    slow = max(abs(case.ours / case.torch - 1.0) for case in cases)
    what = f"step time of {len(cases)} DataLoader configurations, against a reference simulator"
    yield "loader", what, "", "", f"at most {off:.2%}"
    yield (
        "loader",
        "the same against PyTorch, whose own overhead is not modeled",
        "",
        "",
        f"at most {slow:.1%}",
    )
    for point in cache_points():
        what, measured, ours, points = point.cells
        yield "page cache", f"hit rate, {what}", measured, ours, points
    worst = max(held.error for held in decoders())
    what = "images/s by number of workers, held-out decoders, five machines (mean error)"
    yield "imread", what, "", "", f"{decoder_error():.2%}, worst machine {worst:.2%}"
