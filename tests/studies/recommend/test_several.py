"""Several workloads: the machine that suits them all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.scenario import load_scenario
from simulator.schema.goal import Goal
from simulator.studies.recommend.ranking import in_order
from simulator.studies.recommend.recommendation import Recommendation, common_machine
from tests.studies.recommend.made import CHEAPEST, choice, machine

SCENARIO = load_scenario("resnet50-m40")


def answer(**prices: float) -> Recommendation:
    """A workload that costs so much on each machine."""
    choices = [
        choice(i, 1.0, price, on=machine(name)) for i, (name, price) in enumerate(prices.items())
    ]
    goal = Goal(objective=CHEAPEST)
    ranked = tuple(in_order(CHEAPEST, choices))
    return Recommendation(
        scenario=SCENARIO, goal=goal, looked_at=len(choices), predicted=len(choices), ranked=ranked
    )


def test_the_common_machine_loses_least() -> None:
    """Neither one's best: 1.2 and 1.1 times as dear beat 1 and 3."""
    common = common_machine([answer(a=1.0, b=1.2, c=3.0), answer(a=6.0, b=2.2, c=2.0)])
    assert common is not None
    assert common.machine == "b"
    assert common.worse == pytest.approx((1.2, 1.1))


def test_a_machine_must_suit_every_workload() -> None:
    """What keeps the limits of one only is no common machine."""
    assert common_machine([answer(a=1.0), answer(b=1.0)]) is None
    broken = answer(a=1.0, b=2.0)
    only = replace(broken, ranked=broken.ranked[1:])
    common = common_machine([only, answer(a=1.0, b=9.0)])
    assert common is not None
    assert common.machine == "b"
