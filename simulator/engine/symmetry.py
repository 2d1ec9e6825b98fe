"""Ranks and units that are alike up to their names: classes of an equitable partition.

Two ranks are in one class if they ask as much of as many units of each class, and two units if
equally many ranks of each class ask as much of them: colour refinement finds the coarsest such
classes. Whatever a deterministic machine with equal ranks does, all members of a class then do at
the same instant, so one of them can stand for all; for linear programs this is shown in [1]_, and
max-min fair rates are a sequence of those.

References
----------
.. [1] M. Grohe, K. Kersting, M. Mladenov, E. Selman, "Dimension Reduction via Colour Refinement",
   ESA 2014, https://doi.org/10.1007/978-3-662-44777-2_42
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Route: TypeAlias = tuple[tuple[str, float], ...]
"""Units passed, each with the capacity that one unit of rate uses there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """The class of each rank and of each unit, by number."""

    ranks: tuple[int, ...]
    units: Mapping[str, int]

    def first_units(self) -> dict[str, str]:
        """For each unit the one that stands for its class: the first of them."""
        first: dict[int, str] = {}
        return {unit: first.setdefault(its, unit) for unit, its in self.units.items()}


def refine(
    routes: Sequence[Sequence[Route]],
    *,
    marks: Sequence[Hashable],
    kinds: Mapping[str, Hashable],
    jobs: Sequence[int],
) -> Classes:
    """Find the coarsest classes of ranks and units that nothing tells apart.

    Parameters
    ----------
    routes : sequence of sequence of routes
        For each rank the units it passes, flow by flow; the same flows for every rank.
    marks, kinds : sequence, mapping
        What tells ranks, and units, apart to begin with.
    jobs : sequence of int
        The job each rank belongs to: ranks of a job wait for each other.

    Examples
    --------
    Four ranks with a link each, two to a switch; one link is faster.

    >>> routes = [[[(f"link{r}", 1.0), (f"switch{r // 2}", 1.0)]] for r in range(4)]
    >>> kinds = {f"link{r}": 1.0 + (r == 3) for r in range(4)} | {"switch0": 5.0, "switch1": 5.0}
    >>> refine(routes, marks=[0] * 4, kinds=kinds, jobs=[0] * 4).ranks
    (0, 0, 1, 2)
    """
    ranks, units = _numbered(marks), _named(kinds)
    users = _users(routes)
    known = 0
    while len(set(ranks)) + len(set(units.values())) > known:
        known = len(set(ranks)) + len(set(units.values()))
        units = _named(
            {
                unit: (its, *sorted((flow, use, ranks[r]) for flow, use, r in users.get(unit, ())))
                for unit, its in units.items()
            }
        )
        together = _members(ranks, jobs)
        ranks = _numbered(
            (
                own,
                tuple(together[jobs[rank]]),
                tuple(tuple(sorted((units[u], use) for u, use in way)) for way in routes[rank]),
            )
            for rank, own in enumerate(ranks)
        )
    return Classes(ranks=tuple(ranks), units=units)


def _users(routes: Sequence[Sequence[Route]]) -> dict[str, list[tuple[int, float, int]]]:
    """Who passes each unit: flow, use and rank."""
    found: dict[str, list[tuple[int, float, int]]] = {}
    for rank, ways in enumerate(routes):
        for flow, way in enumerate(ways):
            for unit, use in way:
                found.setdefault(unit, []).append((flow, use, rank))
    return found


def _members(ranks: Sequence[int], jobs: Sequence[int]) -> dict[int, list[int]]:
    """The classes of each job's ranks, in order."""
    found: dict[int, list[int]] = {}
    for rank, job in enumerate(jobs):
        found.setdefault(job, []).append(ranks[rank])
    return {job: sorted(members) for job, members in found.items()}


def _numbered(colours: Iterable[Hashable]) -> list[int]:
    """Equal colours by one number, in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(colour, len(numbers)) for colour in colours]


def _named(colours: Mapping[str, Hashable]) -> dict[str, int]:
    return dict(zip(colours, _numbered(colours.values()), strict=True))
