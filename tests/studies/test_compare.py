"""Scenarios side by side: ratios, differing keys, and the published comparison."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.reading.effective_settings import inputs
from simulator.reading.measured.measurement_set import published
from simulator.reading.search.candidates import CandidateReader
from simulator.results.prediction import Prediction
from simulator.studies.compare import (
    Side,
    differing,
    error,
    price_performance,
    published_price_performance,
    rule_of,
)


def side(name: str, *overrides: str) -> Side[Prediction]:
    """A shipped scenario with its keys and what was published of it."""
    reader = CandidateReader(name, overrides=overrides)
    scenario = reader.read({}).scenario
    return Side(
        label=name,
        prediction=predict(scenario, intervals=False),
        inputs=inputs(reader.document(), scenario),
        published=() if overrides else published(name),
    )


@pytest.mark.parametrize(
    ("alone", "together", "saved", "faster"),
    [
        ("heterogeneous-tfdata-alone", "heterogeneous-tfdata", 0.4648, 192 / 86),
        ("remote-workers-mnist-alone", "remote-workers-mnist", 0.7717, 1193 / 184),
    ],
    ids=["A8", "A13"],
)
def test_the_published_comparison(alone: str, together: str, saved: float, faster: float) -> None:
    """A8 and A13: what helpers save a step, by the rule of A18 on the published figures."""
    first, other = side(alone), side(together)
    found = published_price_performance(first, other)
    assert found is not None
    assert found.saved == pytest.approx(saved, abs=5e-5)
    assert 1.0 / found.time == pytest.approx(faster)
    printed = first.measured["cost.usd_per_step"], other.measured["cost.usd_per_step"]
    assert found.cost == pytest.approx(printed[1] / printed[0], rel=1e-4)


def test_predictions_lie_where_the_accuracy_table_says() -> None:
    """A6 and A7 within 10%, A12 within 25% of what was published; prices to the cent."""
    pairs = {"heterogeneous-tfdata-alone": 0.1, "heterogeneous-tfdata": 0.1}
    for name, allowed in {**pairs, "remote-workers-mnist": 0.25}.items():
        found = side(name)
        off = error(found, "step_time_s.mean")
        assert off is not None
        assert abs(off) < allowed
        assert error(found, "cost.usd_per_h") == pytest.approx(0.0, abs=1e-6)


def test_predicted_price_performance() -> None:
    """The ratio of costs is that of prices times that of times, as predicted too."""
    first, other = side("heterogeneous-tfdata-alone"), side("heterogeneous-tfdata")
    found = price_performance(first, other)
    assert found is not None
    assert found.price == pytest.approx(45.032 / 37.688)
    costs = [one.prediction.cost.per_step for one in (first, other)]
    assert costs[0] is not None
    assert costs[1] is not None
    assert found.cost == pytest.approx(costs[1] / costs[0])


def test_owned_machines_pay_for_their_electricity_in_the_rule() -> None:
    """What a second of the whole bill costs, at half the tariff and at all of it."""
    owned = ("cost.purchase=owned", "owned.capex=$100000", "owned.staff=$0/h")
    sides = [
        side("resnet50-imagenet-p4d", *owned, f"energy.tariff=${tariff}/kWh")
        for tariff in (0.2, 0.4)
    ]
    found = price_performance(*sides)
    costs = [one.prediction.cost for one in sides]
    paid = [(cost.for_machines or 0.0) / cost.time_to_train for cost in costs]
    assert found is not None
    assert found.price == pytest.approx(paid[1] / paid[0])
    assert found.price > 1.01


def test_no_rule_without_a_price() -> None:
    """Unknown prices and standing machines have no price-performance."""
    assert rule_of((None, 1.0), (2.0, 1.0)) is None
    assert rule_of((0.0, 1.0), (2.0, 1.0)) is None
    found = rule_of((1.0, 10.0), (1.2, 20.0))
    assert found is not None
    assert (found.cost, found.saved) == pytest.approx((0.6, 0.4))


def test_only_stated_keys_tell_scenarios_apart() -> None:
    """One key set is one difference, whatever follows from it."""
    first, other = side("resnet50-m40"), side("resnet50-m40", "train.batch_size=16")
    assert differing((first, other)) == ("train.batch_size",)
    assert differing((first, first)) == ()


def test_a_default_spelled_out_is_no_difference() -> None:
    """Saying what holds anyway, or the same in another unit, changes nothing."""
    first = side("resnet50-imagenet-p4d")
    spelled = ("input.in_order=true", "train.bucket_size=25 MiB", "data.bytes_per_sample=114660 B")
    other = side("resnet50-imagenet-p4d", *spelled)
    assert "input.in_order" not in differing((first, other))
    assert "data.bytes_per_sample" not in differing((first, other))


def test_a_section_that_another_lacks() -> None:
    """What a section states is a difference; defaults of a section that is absent are none."""
    pair = side("heterogeneous-tfdata-alone"), side("heterogeneous-tfdata")
    assert differing(pair) == ("remote.machine", "remote.count")


def test_scenarios_of_the_users_own_have_no_published_figures() -> None:
    """Only a shipped scenario just as it is has rows that were measured on it."""
    assert published("no-such-scenario") == ()
    assert [row.id for row in published("heterogeneous-tfdata")] == ["A7"]
