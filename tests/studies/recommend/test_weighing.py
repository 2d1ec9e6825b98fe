"""Which of several good choices is taken, and what another one would trade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from simulator.studies.recommend.ranking import (
    OUTSIDE_EVIDENCE,
    Choice,
    Confidence,
    confidence_of,
    distinct,
    equals,
    goal_value_of,
    select_winner,
    tradeoffs,
    with_choice,
)
from tests.studies.recommend.made import CHEAPEST, choice, machine


def sure(variants: Sequence[Sequence[Choice]]) -> Confidence:
    """How sure each machine is by its cost."""
    return confidence_of(variants, CHEAPEST, goal_value_of(CHEAPEST), {})


def beyond(one: Choice) -> Choice:
    """The same, unlike anything that was measured."""
    outcome = replace(one.outcome, warnings=(f"{OUTSIDE_EVIDENCE}: accelerator x",))
    return replace(one, outcome=outcome)


def test_of_equals_the_likelier_is_taken() -> None:
    """As cheap, but one may turn out much dearer: the other one is best more often."""
    wide = choice(0, 9.0, 10.0, band=1.5)
    outcome = replace(
        wide.outcome,
        intervals={"cost.usd_to_train": {"p10": 9.9, "p50": 10.0, "p90": 20.0}},
    )
    shaky = replace(wide, outcome=outcome)
    firm = choice(1, 9.0, 10.01, band=1.05)
    found = select_winner(CHEAPEST, [shaky, firm], sure)
    assert [one.index for one in found.ranked] == [1, 0]
    assert [one.index for one in found.equals] == [0]
    assert found.sure.best[0] > found.sure.best[1]


def test_a_better_one_is_taken_however_sure_others_are() -> None:
    """Ten percent cheaper is no tie."""
    cheap, dear = choice(0, 9.0, 10.0, band=1.5), choice(1, 9.0, 11.0, band=1.01)
    found = select_winner(CHEAPEST, [cheap, dear], sure)
    assert found.ranked[0].index == 0
    assert found.equals == ()


def test_of_equals_one_that_was_measured_like_is_taken() -> None:
    """As cheap and as likely: evidence decides."""
    far, near = beyond(choice(0, 9.0, 10.0, band=1.2)), choice(1, 9.0, 10.0, band=1.2)
    assert select_winner(CHEAPEST, [far, near], sure).ranked[0].index == 1


def test_variants_of_a_machine_count_together() -> None:
    """One machine with its data in two places against another: two of three are the one."""
    one = machine("m")
    here = choice(0, 9.0, 10.0, band=1.3, on=one)
    there = choice(1, 9.0, 10.0, band=1.3, on=one, settings={"data.placement": "stage"},
                   bottleneck="cpu")  # fmt: skip
    other = choice(2, 9.0, 10.0, band=1.3)
    found = select_winner(CHEAPEST, [here, there, other], sure)
    assert len(found.contenders) == 2
    assert sum(found.sure.best) == pytest.approx(1.0)
    assert found.sure.best[0] == pytest.approx(2.0 / 3.0, abs=0.03)


def test_the_price_of_half_the_time() -> None:
    """What little more buys, what is fastest for its cost, and what is cheaper."""
    best = choice(0, 100.0, 100.0)
    front = [choice(1, 20.0, 150.0), choice(2, 50.0, 103.0), best, choice(3, 150.0, 80.0)]
    little, fast, cheaper = tradeoffs(front, best)
    assert (little.choice.index, little.time, little.money) == (2, 0.5, pytest.approx(3.0))
    assert fast.choice.index == 1
    assert (cheaper.choice.index, cheaper.money) == (3, pytest.approx(-20.0))
    assert [one.choice.index for one in tradeoffs([choice(1, 25.0, 400.0), *front[1:3]], best)] == [
        2
    ]


def test_nothing_is_traded_for_next_to_nothing() -> None:
    """Five percent faster is not worth a sentence."""
    best = choice(0, 100.0, 100.0)
    assert tradeoffs([choice(1, 95.0, 101.0), best], best) == ()


def test_the_front_shows_the_one_that_is_taken() -> None:
    """In place of one that reads the same; what is hardly faster and dearer is not shown."""
    front = [choice(0, 99.9, 120.0), choice(1, 100.0, 100.0)]
    taken = choice(2, 100.1, 100.1)
    shown = with_choice(front, taken)
    assert [one.index for one in shown] == [0, 2]
    assert [one.index for one in distinct(shown)] == [2]
    assert [one.index for one in distinct(front, front[0])] == [0, 1]


def test_equals_read_the_same() -> None:
    """Half a percent apart, not one."""
    ranked = [choice(0, 1.0, 100.0), choice(1, 1.0, 100.4), choice(2, 1.0, 101.0)]
    assert [one.index for one in equals(CHEAPEST, ranked)] == [0, 1]


def test_of_equals_as_likely_the_faster_is_taken() -> None:
    """Two cents apart and as sure, in half of the time."""
    slow, fast = choice(0, 9.0, 10.0, band=1.2), choice(1, 4.5, 10.02, band=1.2)
    assert select_winner(CHEAPEST, [slow, fast], sure).ranked[0].index == 1


def test_of_equals_on_a_machine_the_one_whose_data_stay_is_taken() -> None:
    """A copy that gains nothing by the goal is not made, though it is a little faster."""
    one = machine("m")
    there = replace(choice(0, 8.0, 10.0, band=1.2, on=one), copied=True)
    here = choice(1, 9.0, 10.01, band=1.2, on=one)
    assert select_winner(CHEAPEST, [there, here], sure).ranked[0].index == 1
