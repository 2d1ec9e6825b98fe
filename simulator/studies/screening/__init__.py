"""Screening: the best case that every candidate of a search can reach, without a simulation.

All candidates of equal structure are evaluated together, in closed form. A prediction is never
better than the best case of the candidate, so a candidate whose best case is worse than predictions
of others need not be simulated.
"""

from __future__ import annotations

from simulator.studies.screening.best import BestCase, best_cases, best_of, best_with

__all__ = ["BestCase", "best_cases", "best_of", "best_with"]
