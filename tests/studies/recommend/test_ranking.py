"""Ranking: the goal's order, the front, and how sure the winner is."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import PlanError
from simulator.schema.goal import Objective, Sense
from simulator.studies.recommend.ranking import (
    chance_kept,
    confidence_of,
    front,
    goal_value_of,
    in_order,
    ratio,
    runner_up,
)
from tests.studies.recommend.made import CHEAPEST, choice, machine

FIGURES = st.tuples(st.floats(1.0, 1e6), st.floats(1.0, 1e6))


@given(st.lists(FIGURES, min_size=1, max_size=20))
def test_the_front_is_what_nothing_beats(points: list[tuple[float, float]]) -> None:
    """No point of the front is beaten in both, and every other point is."""
    choices = [choice(i, *point) for i, point in enumerate(points)]
    kept = {one.index for one in front(choices)}
    for i, (time, money) in enumerate(points):
        beaten = any(t <= time and m <= money and (t < time or m < money) for t, m in points)
        if i in kept:
            assert not beaten
        else:
            assert beaten or points[i] in [points[k] for k in kept]


def test_the_cheapest_comes_first_and_other_hardware_second() -> None:
    """The runner-up is no other setting of the same machines."""
    one = machine("a")
    ranked = in_order(
        CHEAPEST,
        [choice(0, 9.0, 3.0), choice(1, 9.0, 1.0, on=one), choice(2, 9.0, 2.0, on=one)],
    )
    second = runner_up(ranked)
    assert [c.index for c in ranked] == [1, 2, 0]
    assert second is not None
    assert second.index == 0


def test_a_utility_is_weighed() -> None:
    """Two terms of an expression decide together."""
    worth = goal_value_of(
        Objective(metric="0.7 * cost.samples_per_usd / 1000 - 0.3 * total_time_s / 3600",
                  sense=Sense.MAXIMIZE)
    )  # fmt: skip
    assert worth({"cost.samples_per_usd": 2000.0, "total_time_s": 7200.0}) == pytest.approx(0.8)
    assert worth({"cost.samples_per_usd": None, "total_time_s": 1.0}) is None


def test_a_metric_that_does_not_exist_is_refused_by_name() -> None:
    """The message names it, and what is nearest."""
    with pytest.raises(PlanError, match=r"cost\.sample_per_usd.*cost\.samples_per_usd"):
        goal_value_of(Objective(metric="cost.sample_per_usd", sense=Sense.MAXIMIZE))


def test_how_many_times_as_good() -> None:
    """Twice the samples for a dollar, or half the dollars; no ratio across zero."""
    most = Objective(metric="cost.samples_per_usd", sense=Sense.MAXIMIZE)
    assert ratio(most, 4.0, 2.0) == 2.0
    assert ratio(CHEAPEST, 2.0, 4.0) == 2.0
    assert ratio(most, 1.0, -1.0) is None


def test_two_equals_win_half_of_the_time() -> None:
    """Alike in value and uncertainty, and of different make: a coin."""
    worth = goal_value_of(CHEAPEST)
    sure = confidence_of([[choice(0, 1.0, 10.0, band=1.3)], [choice(1, 1.0, 10.0, band=1.3)]],
                    CHEAPEST, worth, {})  # fmt: skip
    assert sure.best == pytest.approx((0.5, 0.5), abs=0.02)


def test_the_chance_is_that_of_two_lognormal_costs() -> None:
    """A tenth cheaper, both known to 1.3 either way in 80%: the normal distribution says."""
    sure = confidence_of([[choice(0, 1.0, 9.0, band=1.3)], [choice(1, 1.0, 10.0, band=1.3)]],
                    CHEAPEST, goal_value_of(CHEAPEST), {})  # fmt: skip
    deviation = math.log(1.3) / NormalDist().inv_cdf(0.9)
    told = NormalDist().cdf(math.log(10.0 / 9.0) / (deviation * math.sqrt(2.0)))
    assert sure.best[0] == pytest.approx(told, abs=0.01)


def test_what_one_part_limits_errs_alike() -> None:
    """Two choices on the same accelerator: the cheaper one is cheaper in every world."""
    alike = [[choice(i, 1.0, 9.0 + i, band=1.5, on=machine(f"m{i}", gpu="x"))] for i in range(2)]
    assert confidence_of(alike, CHEAPEST, goal_value_of(CHEAPEST), {}).best == (1.0, 0.0)


def test_a_deadline_that_is_kept_half_of_the_time() -> None:
    """A time that is as likely above as below the deadline."""
    late = [[choice(0, 100.0, 1.0, band=1.2)], [choice(1, 10.0, 5.0, band=1.2)]]
    sure = confidence_of(late, CHEAPEST, goal_value_of(CHEAPEST), {"total_time_s": 100.0})
    assert sure.limits == pytest.approx(0.5, abs=0.01)
    assert sure.best == pytest.approx((0.5, 0.5), abs=0.01)


def test_the_chance_of_a_limit_is_in_closed_form_what_worlds_show() -> None:
    """Deadline and budget hold for the same draw, so the tighter one decides."""
    one, most = choice(0, 90.0, 10.0, band=1.2), {"total_time_s": 100.0, "cost.usd_to_train": 10.5}
    drawn = confidence_of(
        [[one], [choice(1, 1.0, 99.0, band=1.2)]], CHEAPEST, goal_value_of(CHEAPEST), most
    )
    deviation = math.log(1.2) / NormalDist().inv_cdf(0.9)
    assert chance_kept(one, most) == pytest.approx(
        NormalDist().cdf(math.log(1.05) / deviation), abs=1e-3
    )
    assert chance_kept(one, most) == pytest.approx(drawn.limits, abs=0.01)
    assert chance_kept(choice(0, 90.0, 10.0), most) == 1.0
