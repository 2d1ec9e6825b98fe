"""Which limits exclude each other: a smallest set that no candidate keeps as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations


def smallest_conflict(
    names: Sequence[str], broken: Iterable[Collection[str]]
) -> tuple[str, ...] | None:
    """The smallest set of limits such that every candidate breaks one of them.

    Parameters
    ----------
    names : sequence of str
        All limits, those first that are to be named first among sets of one size.
    broken : iterable of collections of str
        For each candidate the limits that it breaks.

    Returns
    -------
    tuple of str or None
        None if a candidate keeps all limits. Every part of the set can be kept on its own.

    Notes
    -----
    A minimum hitting set of what the candidates break, by trying sets in order of their size; a
    goal has few limits.

    Examples
    --------
    >>> smallest_conflict(("nodes", "deadline", "budget"), [{"nodes"}, {"deadline"}])
    ('nodes', 'deadline')
    """
    kinds = {frozenset(one) for one in broken}
    if frozenset() in kinds:
        return None
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            if all(kind & set(chosen) for kind in kinds):
                return chosen
    return None
