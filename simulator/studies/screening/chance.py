"""What a run may miss of its mean: random samples, and steps that never quite repeat.

A simulated mean step is that of the steps that were looked at. Where steps repeat exactly it is
that of all steps. Elsewhere floors are lowered by what those steps may lack of the work they stand
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from simulator.engine.recorder import JUST_BELOW, MAX_STEPS, PRECISION
from simulator.pipeline.run_length import Lengths
from simulator.pipeline.shared_cores import ASKED_AHEAD
from simulator.schema.scenario import Scenario
from simulator.units import Real

STANDARD_ERRORS: Final = 5.0
"""Errors of a mean by which the draws of a run may lie below what they were drawn from."""
FEWEST_BATCHES: Final = 64.0
"""Batches of a rank that a random run draws at least, where the epoch has them."""
FEWEST_STEPS: Final = 200.0
"""Steps that are looked at where they don't repeat."""
LONGEST_SEEN: Final = MAX_STEPS
"""Steps of an epoch up to which all of them may be looked at."""
AHEAD: Final = 3.0
"""Batches that a program hands to its device beyond the one that runs, and copies, at most."""
UNSETTLED: Final = 0.999
"""Share of a steady-state step that steps of equal batches have in the mean: the least seen among
526 epochs was 1.000001 of it (`pipeline.shared_cores`)."""
UNEVEN: Final = 0.025
"""Deviation of a random run from its mean in addition to its draws: windows that cut a burst."""


def random(scenario: Scenario) -> bool:
    """Return whether samples vary randomly in size or cost."""
    return _deviation(scenario) > 0.0


def _deviation(scenario: Scenario) -> float:
    spreads = (scenario.job.dataset.size_spread, scenario.job.input.cost_spread)
    return max(s.deviation if s.varies else 0.0 for s in spreads)


def share_of_making(scenario: Scenario, lengths: Lengths, producers: Sequence[Real]) -> Real:
    """Return a lower bound on the fraction of the workers' work within the measured steps.

    `producers`: number of workers of each group. Groups with different pace form a pattern that
    never quite repeats, so the measured steps may consume one more batch of each worker than are
    prepared in them.
    """
    seen = _share_of_waiting(scenario, lengths)
    if len(producers) > 1:
        seen = np.maximum(0.0, 1.0 - sum(producers, 0.0) / (FEWEST_STEPS * lengths.accumulation))
    if not random(scenario):
        return seen
    return seen * np.maximum(0.0, 1.0 - UNEVEN - _errors(scenario, lengths))


def _share_of_waiting(scenario: Scenario, lengths: Lengths) -> Real:
    """Return this fraction for workers that wait for credits, as each has one batch to prepare.

    They then drift out of step with one another and with the device, and a long epoch may not
    repeat. Batches requested or in transit when the measured steps begin may already be prepared,
    and none of those at their end.
    """
    policy = scenario.job.input.policy
    waits = np.logical_and(policy.producers > 0, policy.credits < ASKED_AHEAD * policy.producers)
    whole_bursts = np.maximum(1.0, FEWEST_STEPS - policy.producers) * lengths.accumulation
    known = np.maximum(0.0, 1.0 - (policy.credits + AHEAD) / whole_bursts)
    unsure = np.logical_and(waits, lengths.steps > LONGEST_SEEN)
    return np.where(unsure, known, 1.0)[()]


def assured(scenario: Scenario, lengths: Lengths) -> tuple[Real, Real]:
    """Return the ratios to the least step that a mean step and an epoch's steps cannot fall below.

    The mean step of a long epoch is not below the least step (`engine.recorder`), except for the
    half-width of a random one. The simulated steps of an epoch take at least the work drawn for
    them. The ratios are 0 for epochs that may be too short, and for epochs that overlap with the
    next one.
    """
    long = np.asarray(lengths.steps) > LONGEST_SEEN
    if scenario.job.input.policy.crosses_epochs:
        return 0.0, 0.0
    step = JUST_BELOW / (1.0 + PRECISION) if random(scenario) else JUST_BELOW
    return np.where(long, step, 0.0)[()], np.where(
        long, step * (1.0 - _errors(scenario, lengths)), 0.0
    )[()]


def expected(scenario: Scenario, lengths: Lengths) -> Real:
    """Return the expected ratio of the time of epochs to their time in steady state."""
    if not random(scenario):
        return UNSETTLED
    return UNSETTLED / (1.0 + PRECISION) * (1.0 - _errors(scenario, lengths))


def _errors(scenario: Scenario, lengths: Lengths) -> Real:
    drawn = np.maximum(1.0, scenario.job.train.batch_size * _batches(lengths))
    errors: Real = STANDARD_ERRORS * _deviation(scenario) / np.sqrt(drawn)
    return np.minimum(1.0, errors)


def share_ahead(scenario: Scenario, lengths: Lengths) -> Real:
    """Return a lower bound on the fraction of work before the device within the measured steps.

    Batches that wait for the device when the measured steps begin were prepared before. Without
    randomness, as many wait at the end, and the fraction is 1.
    """
    if not random(scenario):
        return 1.0
    seen: Real = np.maximum(0.0, 1.0 - AHEAD / _batches(lengths))
    return seen


def _batches(lengths: Lengths) -> Real:
    fewest: Real = np.minimum(lengths.batches, FEWEST_BATCHES * lengths.accumulation)
    return fewest
