"""The HTML page of a recommendation."""

from __future__ import annotations

import re
from html import unescape

import pytest

from simulator.reading.scenario import load_scenario
from simulator.report.html.recommend import as_page
from simulator.report.launch import Launch
from simulator.results.prediction import Prediction
from simulator.schema.goal import Goal, Objective, Sense
from simulator.studies.baseline import Machine
from simulator.studies.recommend.conflicts import Conflict
from simulator.studies.recommend.ranking import MONEY, TIME, Choice
from simulator.studies.recommend.recommendation import Loser, Recommendation
from simulator.studies.search.outcome import Candidate, Outcome, Status

GOAL = Goal(objective=Objective(metric="cost.samples_per_usd", sense=Sense.MAXIMIZE))


def choice(index: int, time: float, money: float, value: float) -> Choice:
    """A sound one."""
    figures = {TIME: time, MONEY: money, "bottleneck": "gpu", "accelerator_utilization": 0.9}
    candidate = Candidate(index=index, settings={"input.workers": index})
    return Choice(
        machine=Machine(name=f"instance/x/m{index}", threads=8.0, gpu="a<b>", gpus=1),
        outcome=Outcome(candidate=candidate, status=Status.PREDICTED, figures=figures),
        figures=figures,
        value=value,
    )


@pytest.fixture
def answer() -> Recommendation:
    """Two choices on the front, one beaten."""
    choices = choice(1, 100.0, 5.0, 30.0), choice(2, 50.0, 8.0, 20.0), choice(3, 100.0, 9.0, 10.0)
    return Recommendation(
        scenario=load_scenario("resnet18-imagenet-hidden"),
        goal=GOAL,
        looked_at=3,
        predicted=3,
        ranked=choices,
        front=choices[:2],
        losers=(Loser(what="old <one>", reason="too slow"),),
    )


def test_the_winner_is_named_and_the_front_drawn(answer: Recommendation) -> None:
    """What to take, by the goal; two of three choices are marked."""
    page = as_page([answer], [Launch(command="torchrun x", loader="DataLoader()", resources="")])
    assert "Take 1 x m1" in page
    assert len(re.findall(r'<circle class="t1( best)?"', page)) == 2
    assert page.count('<circle class="t1 best"') == 1
    assert re.search(r'<text class="label point best[^>]*>1 x m1</text>', page)
    assert page.count('<circle class="t7"') == 1
    assert "old &lt;one&gt;" in page
    assert "too slow" in page
    assert "torchrun x" in page


def test_the_winner_is_shown_in_full(answer: Recommendation, prediction: Prediction) -> None:
    """What it rests on, with sources, and its warnings stand on the page itself."""
    page = unescape(as_page([answer], [None], [(prediction, None)]))
    assert prediction.warnings[0] in page
    for one in prediction.assumptions:
        assert one.what in page
        assert one.source.reference in page
    assert prediction.warnings[0] not in as_page([answer], [None])


def test_no_choice(answer: Recommendation) -> None:
    """The limits that exclude each other stand in place of a winner."""
    conflict = Conflict(limits=("a deadline of 1 h", "2 nodes"), ways_out=("4 nodes would do",))
    none = Recommendation(
        scenario=answer.scenario, goal=GOAL, looked_at=3, predicted=3, conflict=conflict
    )
    page = unescape(as_page([none], [None]))
    assert "No machine meets all limits: a deadline of 1 h; 2 nodes." in page
    assert "4 nodes would do" in page
    assert "<circle" not in page
