"""Bugs of ours that a study meets: it marks what they spoil and goes on, and whoever asked hears.

Predictions that contradict themselves are the bugs we look for (`invariants`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.errors import BrokenInvariant


def told(error: Exception) -> str:
    """A bug as the reason why there is no figure.

    Examples
    --------
    >>> told(KeyError("gpu"))
    "a bug of ours: KeyError: 'gpu'"
    """
    kind = "" if isinstance(error, BrokenInvariant) else f"{type(error).__name__}: "
    return f"a bug of ours: {kind}{error}"


@dataclass(frozen=True, slots=True)
class Met:
    """Bugs that a study met, in its order: `reasons` are as the spoilt places tell them."""

    reasons: list[str] = field(default_factory=list)


def noted(error: BrokenInvariant, met: Met | None) -> str:
    """The reason why there is no figure where a bug was met, noted in `met`.

    Raises
    ------
    BrokenInvariant
        If nobody listens: a bug must not pass in silence.
    """
    if met is None:
        raise error
    met.reasons.append(told(error))
    return met.reasons[-1]
