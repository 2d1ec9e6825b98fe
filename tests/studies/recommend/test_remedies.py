"""What helps a starved scenario: the order of the remedies falls out of the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Plain
from simulator.studies.baseline import baseline_of
from simulator.studies.levers.catalogue import RELIEF
from simulator.studies.recommend.recommendation import Recommendation, recommend
from simulator.studies.recommend.search_problem import SearchBackend, define_problem
from simulator.studies.search.workers import local_workers

pytestmark = pytest.mark.slow

BEFOREHAND, HELPERS = RELIEF["preparation beforehand"], RELIEF["helpers"]
STARVED = "choose-starved-gpus"
DEVICE = "preparing on the GPUs"


def advice(*overrides: str, device: Mapping[str, Plain] | None = None) -> Recommendation:
    """The recommendation for the starved scenario with some keys set, on one machine."""
    reader = CandidateReader(STARVED, overrides=overrides)
    goal = reader.goal
    assert goal is not None
    limits = replace(goal.limits, nodes=1)
    given = {DEVICE: {**goal.alternatives[DEVICE], **(device or {})}}
    goal = replace(goal, limits=limits, alternatives=given)
    problem = define_problem(baseline_of(reader, Catalogue.default()), goal)
    with local_workers(1) as workers:
        return recommend(problem, SearchBackend(workers, None))


def order(answer: Recommendation) -> list[str]:
    """The remedies, best first."""
    return [choice.idea for choice in answer.ideas]


@cache
def as_shipped() -> Recommendation:
    """The scenario as it ships."""
    return advice()


def test_every_remedy_is_a_predicted_candidate() -> None:
    """Helpers, preparing beforehand, and preparing on the device, in the goal's order."""
    shipped = as_shipped()
    assert set(order(shipped)) == {HELPERS, BEFOREHAND, DEVICE}
    assert all(choice.is_predicted for choice in shipped.ideas)
    values = [choice.value for choice in shipped.ideas]
    assert values == sorted(values, key=lambda value: value or 0.0)


def test_helpers_come_first_as_published() -> None:
    """The published way out: CPU machines beside, and it is taken."""
    shipped = as_shipped()
    assert order(shipped)[0] == HELPERS
    assert shipped.winner is not None
    assert shipped.winner.settings["remote.count"] in (1, 2)


def test_a_faster_device_turns_the_order_round() -> None:
    """Only the rate at which the device prepares changes: it overtakes both."""
    shipped, fast = as_shipped(), advice(device={"input.device_time": "1 us"})
    assert order(shipped).index(DEVICE) > order(shipped).index(HELPERS)
    assert order(fast)[0] == DEVICE


def test_prices_turn_the_order_round() -> None:
    """Only the price of the machine that trains changes: beside a cheap one helpers are dear."""
    shipped, cheap = as_shipped(), advice("cost.price=$1/h")
    assert order(shipped).index(HELPERS) < order(shipped).index(BEFOREHAND)
    assert order(cheap).index(HELPERS) > order(cheap).index(BEFOREHAND)


def test_epochs_turn_the_order_round() -> None:
    """Only the epochs change: preparing once does not pay for one, and is the best for many."""
    once, often = advice("train.epochs=1"), advice("train.epochs=200")
    assert order(once).index(BEFOREHAND) > order(once).index(HELPERS)
    assert order(often)[0] == BEFOREHAND
