"""The outlook on a run of a scenario."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simulator.long_run import forecast
from simulator.long_run.attempts import SimulatedRuns, simulate_runs
from simulator.long_run.forecast import RunSimulation, finish_range, outlook, store_activity
from simulator.predict import predict, rates_with_fewer
from simulator.reading.scenario import load_scenario
from simulator.results.cost import StoreActivity, uses
from simulator.results.prediction import Cause, Outlook, Prediction
from simulator.schema.long_run import Failures, Interruptions, LongRun, Outages, Restart, Saving

DAY = 86400.0
RESTART = Restart(detection=60.0, replacement=0.0, start=300.0, load=0.0)
RATES = Failures(per_machine=0.0065 / DAY, per_job=2.2 / DAY, restart=RESTART, doubt=0.0)


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    """An epoch of Llama 3 405B with a price."""
    settings = ("train.epochs=1", "cost.price=$80/h")
    return predict(load_scenario("llama3-405b-megatron", overrides=settings))


def asked(prediction: Prediction, **more: float) -> Outlook:
    """Its outlook at rates that are sure."""
    return outlook(prediction, Interruptions(failures=RATES), draws=200, **more)


def test_nothing_happens(prediction: Prediction) -> None:
    """Without interruptions and doubts the run takes what was predicted, to the last bit."""
    bare = predict(prediction.scenario, intervals=False)
    found = outlook(bare, Interruptions(), draws=100)
    assert set(found.finish.values()) == {bare.timing.total_time}
    assert found.goodput == 1.0
    assert math.isinf(found.between)
    assert found.bill is not None
    assert found.bill[0.5] == pytest.approx(bare.in_all)


def test_failures_take_time_and_money(prediction: Prediction) -> None:
    """Parts add up to one, quantiles rise, the mean time between failures is that of the rates."""
    found = asked(prediction)
    assert sum(found.parts.values()) == pytest.approx(1.0)
    assert found.goodput < 0.95
    assert found.finish[0.5] < found.finish[0.9] <= found.finish[0.99]
    assert found.between == pytest.approx(DAY / (128 * 0.0065 + 2.2), rel=0.05)
    machines, job = found.causes[Cause.MACHINE], found.causes[Cause.JOB]
    assert machines / job == pytest.approx(128 * 0.0065 / 2.2, rel=0.1)


def with_fewer(name: str, least: int) -> tuple[float, ...]:
    """Rates of a shipped job on fewer machines."""
    found = predict(load_scenario(name), intervals=False)
    told = Interruptions(failures=replace(RATES, least_machines=least))
    return rates_with_fewer(found, told)


def test_a_smaller_job_is_as_fast_as_its_machines() -> None:
    """A job that scales well loses a share like that of the machines, and hardly less."""
    rates = with_fewer("bert-large-multinode", 10)
    assert len(rates) == 6
    for away, rate in enumerate(rates, start=1):
        assert (16 - away) / 16 - 0.001 <= rate <= (16 - away) / 16 * 1.02
    assert with_fewer("bert-large-multinode", 16) == ()


def test_a_replica_goes_with_one_of_its_machines() -> None:
    """A model on several machines: the first one away takes all of its replica along."""
    found = predict(load_scenario("llama3-405b-megatron"), intervals=False)
    count = found.scenario.cluster.trainers.count
    replica = (
        found.scenario.job.parallelism.devices // found.scenario.cluster.trainers.gpus_per_host
    )
    assert replica > 1
    rates = with_fewer("llama3-405b-megatron", count - replica - 1)
    assert len(set(rates[:replica])) == 1
    assert rates[0] == pytest.approx((count - replica) / count, rel=0.05)
    assert rates[replica] < rates[0]


def test_the_best_interval_is_about_dalys(prediction: Prediction) -> None:
    """The curve is flat: a factor of two either way."""
    known = asked(prediction).intervals
    assert known is not None
    assert known.used == known.simulated
    assert known.daly / 2.01 <= known.simulated <= known.daly * 2.01


@pytest.mark.parametrize(("fallback", "apart"), [(False, 20.0), (True, 30.0)])
def test_outages_count_among_what_checkpoints_guard_against(
    prediction: Prediction, *, fallback: bool, apart: float
) -> None:
    """Young's interval is sqrt(2 b / rate): 20 days up on average, and 10 down if work goes on."""
    up, down = (10.0 * DAY, 30.0 * DAY), (10.0 * DAY, 10.0 * DAY)
    outages = Outages(up=up, down=down, notice=0.0, fallback=fallback)
    rare = Failures(per_machine=0.0, per_job=0.1 / DAY, restart=RESTART, doubt=0.0)
    alone, both = (
        outlook(prediction, Interruptions(failures=rare, outages=also), draws=20).intervals
        for also in (None, outages)
    )
    assert alone is not None
    assert both is not None
    assert alone.young / both.young == pytest.approx(math.sqrt((0.1 + 1.0 / apart) / 0.1))


def test_a_stated_interval_is_used() -> None:
    """It replaces the best one, which is simulated for comparison."""
    keys = ("train.epochs=1", "checkpoint.interval=50 min")
    found = asked(predict(load_scenario("llama3-405b-megatron", overrides=keys))).intervals
    assert found is not None
    assert found.used == pytest.approx(3000.0)


def test_the_range_of_an_end_is_that_of_zones() -> None:
    """Of ten zones, the first is at 10% and the ninth at 90%.

    Twenty hours of work, interrupted each hour for 0.5, 1, ... 5 h by zone, lose none of it.
    """
    zones, hour = 10, 3600.0
    down = tuple(0.5 * hour * (zone + 1) for zone in range(zones) for _ in range(4))
    others = Outages(up=(hour,) * len(down), down=down, in_order=True, zones=zones)
    outages = Outages(up=(hour,), down=(hour,), notice=10.0, others=others)
    saving = Saving(interval=hour, blocking=0.0, durable=0.0)
    run = LongRun(work=20.0 * hour, work_doubt=0.0, machines=1, saving=saving, outages=outages)
    drawn = simulate_runs(run, draws=2)
    found = finish_range(RunSimulation(run=run, intervals=None, drawn=drawn, seed=0))
    for low, high in found.values():
        assert low == pytest.approx((20.0 + 20 * 0.5) * hour, rel=0.04)
        assert high == pytest.approx((20.0 + 20 * 4.5) * hour, rel=0.04)


def test_intervals_of_a_long_run_are_tried_by_a_part_of_it(
    prediction: Prediction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run with ten times as many stops as a trial: the interval is that of the whole run."""
    tried: list[float] = []

    def counted(run: LongRun, **more: Any) -> SimulatedRuns:
        tried.append(run.work)
        return simulate_runs(run, **more)

    monkeypatch.setattr("simulator.long_run.forecast.simulate_runs", counted)
    often = replace(RATES, per_machine=0.0, per_job=500.0 / prediction.timing.total_time)
    told = Interruptions(failures=often)
    monkeypatch.setattr("simulator.long_run.forecast.TRIAL_STOPS", 50.0)
    part = outlook(prediction, told, draws=100).intervals
    assert max(tried[:-1]) < 0.12 * tried[-1]
    monkeypatch.setattr("simulator.long_run.forecast.TRIAL_STOPS", 1e9)
    assert outlook(prediction, told, draws=100).intervals == part


def test_chances(prediction: Prediction) -> None:
    """The middle quantile is met half of the time."""
    middle = asked(prediction)
    assert middle.bill is not None
    found = asked(prediction, deadline=middle.finish[0.5], budget=middle.bill[0.5])
    assert found.in_time == pytest.approx(0.5, abs=0.01)
    assert found.in_budget == pytest.approx(0.5, abs=0.01)


def test_the_seed_decides(prediction: Prediction) -> None:
    """The same seed gives the same answer, another one another."""
    assert asked(prediction) == asked(prediction)
    assert asked(prediction, seed=1).finish != asked(prediction).finish


def test_a_scenario_that_tells_of_failures_is_predicted_with_them() -> None:
    """The prediction carries the outlook that asking for it gives; its steady figures stay."""
    settings = ("train.epochs=1", "cost.price=$80/h", "run.draws=200", "failures.doubt=0.2")
    rates = ("failures.per_machine=0.0065 /d", "failures.per_job=0.09 /h", "failures.start=5 min")
    scenario = load_scenario("llama3-405b-megatron", overrides=(*settings, *rates))
    told = scenario.interruptions
    assert told is not None
    found = predict(scenario)
    bare = predict(replace(scenario, interruptions=None))
    assert (bare.timing, bare.cost, bare.outlook) == (found.timing, found.cost, None)
    assert found.outlook == outlook(bare, told, draws=200)
    assert predict(scenario, intervals=False).outlook == found.outlook


def test_stores_are_paid_for_as_long_as_the_run_takes(prediction: Prediction) -> None:
    """A file system is rented to the end: bills are to one another as the times are."""
    found, calm = asked(prediction), prediction.storage.total
    assert found.stores is not None
    assert calm is not None
    assert found.stores[0.5] > calm
    for chance, time in found.finish.items():
        longer = time / found.finish[0.5]
        assert found.stores[chance] == pytest.approx(found.stores[0.5] * longer)


def test_what_stores_cost_is_unknown_where_a_price_is() -> None:
    """A store without prices is named, and no bill of stores is told."""
    settings = ("hardware.storage=storage/wekapod", "train.epochs=1")
    bare = predict(load_scenario("llama3-405b-megatron", overrides=settings), intervals=False)
    found = asked(bare)
    assert found.stores is None
    assert any("wekapod" in text for text in found.unpriced)


def test_stops_load_checkpoints_and_repeat_reads(prediction: Prediction) -> None:
    """A run that loses a tenth of its work reads a tenth more; each stop reads what ranks hold."""
    objects = load_scenario("llama3-405b-megatron", overrides=("hardware.storage=storage/s3",))
    (calm,) = uses(objects, StoreActivity(checkpoints=10.0))
    (struck,) = uses(objects, StoreActivity(checkpoints=10.0, loads=3.0))
    (again,) = uses(objects, StoreActivity(checkpoints=10.0, again=1.1))
    assert struck.writes == calm.writes > 10.0
    assert struck.reads > calm.reads
    assert again.reads == pytest.approx(1.1 * calm.reads)
    run = asked(prediction).run
    life = store_activity(run, {"useful work": 0.8, "lost work": 0.08}, 5.0)
    assert life.again == pytest.approx(1.1)
    assert life.checkpoints == pytest.approx(1.1 * run.work / run.saving.interval)


@pytest.mark.parametrize(("blocking", "least"), [(0.0, 100.0), (60.0, 40.0), (99.0, 1.0)])
def test_the_shortest_interval_covers_the_rest_of_a_write(blocking: float, least: float) -> None:
    """A write of 100 s that blocks for 60 s leaves 40 s to the next one, while training goes on.

    Failures every 10 s would have a shorter one.
    """
    run = LongRun(
        work=1000.0,
        machines=1,
        saving=Saving(interval=math.inf, blocking=blocking, durable=100.0),
        failures=Failures(per_machine=0.0, per_job=0.1, restart=RESTART, doubt=0.0),
    )
    tried: list[float] = []

    def recorded(run: LongRun, **_: object) -> SimpleNamespace:
        tried.append(run.saving.interval)
        return SimpleNamespace(finish=np.array([run.saving.interval]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast, "simulate_runs", recorded)
        assert forecast._best_interval(run, 0.5, 1e9, 0) == pytest.approx(least)  # noqa: SLF001 - a private rule
    assert min(tried) == pytest.approx(least)
