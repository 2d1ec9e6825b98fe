"""Ways to buy the machines of a run, held against each other."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.predict import predict
from simulator.reading.search.candidates import CandidateReader
from simulator.results.prediction import Outlook, Way
from simulator.schema.cost import Purchase
from simulator.schema.long_run import Terms
from simulator.studies.purchase import long_run, with_ways

DRAWN = Terms(draws=200)
JOB = "resnet50-imagenet-p4d"
SPOT = (
    *("spot.mean_up=2 h", "spot.mean_down=1 h", "spot.source=made up"),
    *("failures.per_job=0.001 /h", "failures.start=5 min", "checkpoint.interval=10 min"),
)


def ways(*overrides: str, terms: Terms = DRAWN) -> dict[tuple[Purchase, bool], Way]:
    """All ways to buy one p4d.24xlarge."""
    _, found = long_run(CandidateReader(JOB, overrides=overrides), terms=terms)
    return {(way.purchase, way.fallback): way for way in found.ways}


def told(way: Way) -> Outlook:
    """How the run goes with a way to buy that can be drawn."""
    assert way.outlook is not None
    return way.outlook


def test_chances_add_up_and_the_same_machines_take_the_same_time() -> None:
    """Some way is the cheapest in each life; what is not spot fares alike, whatever it costs."""
    found = ways(*SPOT)
    assert sum(way.cheapest or 0.0 for way in found.values()) == pytest.approx(1.0)
    demand = told(found[Purchase.ON_DEMAND, False])
    block = told(found[Purchase.CAPACITY_BLOCK, False])
    assert demand.finish == block.finish
    assert demand.bill is not None
    assert block.bill is not None
    # Prices of the profile: on demand in us-east-1, a block in us-east-2 that is paid by the day.
    hours = demand.finish[0.5] / 3600.0
    assert demand.bill[0.5] == pytest.approx(21.957642 * hours, rel=0.01)
    assert hours < 24.0
    assert block.bill[0.5] == pytest.approx(14.75 * 24.0, rel=0.01)


def test_the_mixed_way_is_as_slow_as_its_restarts_and_costs_between_both() -> None:
    """Machines on demand in gaps end the wait; time and bill lie between those of either alone."""
    found = ways(*SPOT, terms=Terms(draws=200, deadline=6 * 3600.0))
    demand, spot, mixed = (
        told(found[key])
        for key in ((Purchase.ON_DEMAND, False), (Purchase.SPOT, False), (Purchase.SPOT, True))
    )
    assert demand.finish[0.9] < mixed.finish[0.9] < spot.finish[0.9]
    assert demand.in_time is not None
    assert mixed.in_time is not None
    assert spot.in_time is not None
    assert demand.in_time > mixed.in_time > spot.in_time
    assert demand.bill is not None
    assert mixed.bill is not None
    assert spot.bill is not None
    assert spot.bill[0.5] < mixed.bill[0.5] < demand.bill[0.5]
    assert any("on-demand" in price for price in mixed.prices)


def test_what_is_not_known_is_said() -> None:
    """No reserved price, no periods of spot machines, no price to buy."""
    found = ways()
    assert found[Purchase.RESERVED_1Y, False].missing == "no price is known"
    assert "[spot]" in found[Purchase.SPOT, True].missing
    assert "owned.capex" in found[Purchase.OWNED, False].missing
    assert found[Purchase.OWNED, False].cheapest is None


def test_how_far_it_is_is_told() -> None:
    """By the lives that are drawn: all at once without spot machines, in thirds with them."""
    done: dict[bool, list[float]] = {True: [], False: []}
    for spot, told_so_far in done.items():
        reader = CandidateReader(JOB, overrides=SPOT if spot else ())
        long_run(reader, terms=Terms(draws=100), progress=told_so_far.append)
    assert set(done[False]) == {0.95}
    assert done[True] == sorted(done[True])
    assert done[True][0] == pytest.approx(1.0 / 3.0)


def test_a_trace_that_cannot_be_read_is_a_mistake() -> None:
    """Whether or not the scenario itself buys spot machines."""
    with pytest.raises(InputError, match="missing"):
        ways("spot.trace=missing.csv", "spot.source=nobody", "failures.like=rsc-1")


def test_more_machines_than_capacity_blocks_hold() -> None:
    """256 machines can be had in blocks, 257 cannot; a scenario that asks for them is warned."""
    many = ("hardware.count=257", "failures.like=rsc-1", "train.epochs=1")
    block = ways(*many, terms=Terms(draws=100))[Purchase.CAPACITY_BLOCK, False]
    assert block.missing == "no more than 256 machines at a time"
    assert block.cheapest is None
    asked = (*many, "cost.purchase=capacity-block")
    warned = predict(CandidateReader(JOB, overrides=asked).read({}).scenario, intervals=False)
    assert any("capacity blocks hold 256 machines" in text for text in warned.warnings)


def test_a_stated_price_is_that_of_its_way_alone() -> None:
    """A price for which one buys on demand says nothing of capacity blocks."""
    stated, listed = ways("cost.price=$1/h"), ways()
    assert stated[Purchase.ON_DEMAND, False].cheapest == 1.0
    block = Purchase.CAPACITY_BLOCK, False
    assert told(stated[block]).bill == told(listed[block]).bill


def test_a_scenario_may_mix_them_itself() -> None:
    """`spot.fallback` gives the figures of the mixed way."""
    _, found = long_run(
        CandidateReader(JOB, overrides=(*SPOT, "cost.purchase=spot", "spot.fallback=true")),
        terms=DRAWN,
    )
    mixed = told(ways(*SPOT)[Purchase.SPOT, True])
    assert (found.finish, found.bill) == (mixed.finish, mixed.bill)


def test_the_only_way_with_a_bill_is_not_called_the_cheapest() -> None:
    """Nobody rents out a DGX H100, so owning it is held against nothing."""
    _, found = long_run(CandidateReader("llama3-405b-megatron"), terms=DRAWN)
    priced = [way for way in found.ways if way.outlook is not None and way.outlook.bill is not None]
    assert [way.purchase for way in priced] == [Purchase.OWNED]
    assert priced[0].cheapest is None


def test_the_end_on_spot_has_its_range_over_zones() -> None:
    """Where only means of periods are known: about the quantiles, wider at the later one."""
    found = ways(*SPOT, "train.epochs=200")
    spot = told(found[Purchase.SPOT, False])
    widths = []
    for quantile, (low, high) in spot.finish_range.items():
        assert low < spot.finish[quantile] < high
        widths.append(high / low)
    assert widths == sorted(widths)
    assert not told(found[Purchase.ON_DEMAND, False]).finish_range
    mixed = told(found[Purchase.SPOT, True]).finish_range[0.9]
    assert mixed[1] / mixed[0] < widths[-1]


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
def test_a_prediction_has_the_ways_of_its_long_run(purchase: str) -> None:
    """What `plan simulate` and `plan compare` tell is what `plan goodput` says."""
    overrides = (*SPOT, f"cost.purchase={purchase}", "run.draws=200")
    reader = CandidateReader(JOB, overrides=overrides)
    found = with_ways(predict(reader.read({}).scenario), reader).outlook
    assert found is not None
    _, asked = long_run(reader, terms=DRAWN)
    assert found.finish == asked.finish
    assert found.finish_range == asked.finish_range
    assert [way.cheapest for way in found.ways] == [way.cheapest for way in asked.ways]
    plain = predict(CandidateReader(JOB).read({}).scenario, intervals=False)
    assert with_ways(plain, reader) is plain
