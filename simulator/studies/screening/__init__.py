"""Screening: the best that every candidate of a search can possibly reach, without simulating it.

All candidates of equal structure are taken at once, in closed form. What a prediction says of a
candidate is never better than its best case, so a candidate whose best case is beaten by what
others were predicted to reach need not be simulated.
"""

from __future__ import annotations

from simulator.studies.screening.best import BestCase, best_cases, best_of, best_with

__all__ = ["BestCase", "best_cases", "best_of", "best_with"]
