"""What candidates compete with: only what surely loses is beaten."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.engine.run import Options, later_epoch
from simulator.files.candidates import CandidateReader
from simulator.predict import predict, question_of
from simulator.scenario.goal import Objective, Sense
from simulator.studies.evaluate import Assignment, Chunk, evaluate
from simulator.studies.explore import TIME_AND_COST
from simulator.studies.outcome import Candidate, Status
from simulator.studies.rivals import Rivals
from simulator.studies.screening import best_with

SCENARIO = "resnet50-imagenet-p4d"
TIME = (Objective(metric="total_time_s", sense=Sense.MINIMIZE),)


def rivals(*times: float) -> Rivals:
    """Others that were predicted to take so long."""
    return Rivals(objectives=TIME, found=np.array([[time] for time in times]))


def test_what_may_tie_is_not_beaten() -> None:
    """A candidate loses only where it is worse even at best."""
    assert rivals(9.0).beat({"total_time_s": 10.0})
    assert not rivals(10.0).beat({"total_time_s": 10.0})
    assert not rivals(9.0).beat({})


@pytest.mark.untraced
def test_a_run_takes_no_less_than_its_later_epochs_let_it() -> None:
    """The best case with later epochs known is near the prediction, and never better."""
    scenario = CandidateReader(SCENARIO).read({"input.workers": 8}).scenario
    later = later_epoch(question_of(scenario), Options())
    prediction = predict(scenario, doubts=False)
    assert later == prediction.timing.epoch_time
    best = best_with(scenario, later).figures
    assert 0.99 < best["total_time_s"] / prediction.timing.total_time <= 1.0
    assert best["cost.usd_to_train"] <= prediction.cost.to_train


@pytest.mark.untraced
def test_a_beaten_candidate_is_left_at_its_best_and_others_are_predicted() -> None:
    """Rivals far ahead spare the rest of a prediction; rivals far behind change nothing."""
    assignment = Assignment.of(CandidateReader(SCENARIO), seed=0, doubts=False)
    chunk = Chunk(
        assignment=assignment, candidates=(Candidate(index=0, settings={"input.workers": 8}),)
    )
    ahead, behind = (
        Rivals(objectives=TIME_AND_COST, found=np.array([[scale, scale]])) for scale in (1.0, 1e9)
    )
    (beaten,), (kept,), (alone,) = evaluate(chunk, ahead), evaluate(chunk, behind), evaluate(chunk)
    assert beaten.status is Status.SCREENED
    assert beaten.key == alone.key
    assert kept == alone
