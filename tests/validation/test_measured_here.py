"""Intervals hold what was measured at the configuration that is predicted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict
from simulator.reading.measured.measurement_set import rows_alike
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.schema.measurement import Row, Split
from simulator.schema.scenario import Scenario
from simulator.validation.local_coverage import (
    SAME_SHARE,
    Near,
    Neighbourhood,
    holding,
    measured_here,
    runs_of,
    widened,
)
from simulator.validation.scores import Judged, Point

RATE = "throughput_samples_per_s"


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    """A starved machine, with its intervals and a price."""
    return predict(load_scenario("resnet50-imagenet-p4d"))


def row(name: str, ratio: float, *, distance: float = 0.0, metric: str = RATE) -> Near:
    """A row at which `ratio` times the predicted figure was measured."""
    point = Point(predicted=200.0, measured=200.0 * ratio)
    judged = Judged(set="s", id=name, family="f", split=Split.TEST, metric=metric, point=point)
    found = Row(id=name, base="", overrides=(), measured={metric: 200.0 * ratio}, family="f")
    return Near(set="s", row=found, distance=distance, apart={}, judged=(judged,))


def around(*rows: Near) -> Neighbourhood:
    """These rows as the nearest ones."""
    return Neighbourhood(scenario="mine", rows=rows, scores={}, compared=len(rows))


def test_a_row_outside_the_interval_widens_all_that_goes_with_the_step(
    prediction: Prediction,
) -> None:
    """Half of the rate was measured: rates may be half, times and bills twice what is predicted."""
    wider = widened(prediction, around(row("slow", 0.5)))
    timing = prediction.timing
    assert wider.interval[RATE]["p10"] == pytest.approx(timing.throughput / 2.0)
    assert wider.interval[RATE]["p90"] == prediction.interval[RATE]["p90"]
    assert wider.interval["step_time_s.mean"]["p90"] == pytest.approx(2.0 * timing.step_time.mean)
    assert wider.interval["total_time_s"]["p90"] == pytest.approx(2.0 * timing.total_time)
    assert wider.interval["cost.usd_to_train"]["p90"] == pytest.approx(
        2.0 * (prediction.in_all or 0.0)
    )
    assert wider.interval["first_step_s"] == prediction.interval["first_step_s"]
    (here,) = measured_here(prediction, around(row("slow", 0.5)))
    assert here.outside
    assert here.ratio == 0.5


def test_a_row_within_the_interval_changes_nothing(prediction: Prediction) -> None:
    """What is measured where it was expected widens nothing, and is still reported."""
    near = around(row("as expected", 1.01))
    assert widened(prediction, near).interval == prediction.interval
    assert [here.outside for here in measured_here(prediction, near)] == [False]


def test_another_configuration_says_nothing_of_this_one(prediction: Prediction) -> None:
    """Twice the batch is not the same job."""
    near = around(row("another", 0.5, distance=2.0 * SAME_SHARE))
    assert widened(prediction, near).interval == prediction.interval
    assert measured_here(prediction, near) == ()


def test_of_many_rows_a_tenth_may_stay_outside(prediction: Prediction) -> None:
    """One stray run in ten does not decide, two do."""
    usual = [row(f"usual {k}", 1.0) for k in range(9)]
    one = widened(prediction, around(*usual, row("stray", 0.3)))
    assert one.interval == prediction.interval
    two = widened(prediction, around(*usual[1:], row("stray", 0.3), row("again", 0.3)))
    assert two.interval[RATE]["p10"] == pytest.approx(0.3 * prediction.timing.throughput)


def test_a_measured_figure_of_its_own_widens_itself(prediction: Prediction) -> None:
    """The first step measured three times as long says nothing of the others."""
    near = around(row("start", 3.0, metric="first_step_s"))
    wider = widened(prediction, near)
    assert wider.interval["first_step_s"]["p90"] == pytest.approx(
        3.0 * prediction.timing.first_step
    )
    assert wider.interval[RATE] == prediction.interval[RATE]


def test_what_cannot_be_a_ratio_is_left_out(prediction: Prediction) -> None:
    """Differences of shares and zeros have no ratio."""
    none = row("nothing", 0.0)
    shares = replace(row("share", 0.5), judged=(replace(row("x", 0.5).judged[0], absolute=True),))
    assert measured_here(prediction, around(none, shares)) == ()


def run(ratio: float, prediction: Prediction, name: str = "r") -> tuple[str, Row]:
    """A run of the prediction's own configuration, with `ratio` times its rate."""
    measured = {RATE: ratio * prediction.timing.throughput}
    row = Row(id=name, base="", overrides=(), measured=measured, family="f")
    return ("s", row)


def test_a_run_outside_the_interval_is_held_and_told(prediction: Prediction) -> None:
    """The measured value itself becomes the interval's end, and the step follows."""
    wider, outside = holding(prediction, [run(0.5, prediction)])
    own = prediction.timing
    assert wider.interval[RATE]["p10"] == pytest.approx(0.5 * own.throughput)
    assert wider.interval["step_time_s.mean"]["p90"] == pytest.approx(2.0 * own.step_time.mean)
    assert [(one.id, one.metric) for one in outside] == [("r", RATE)]


def test_a_run_inside_the_interval_changes_nothing(prediction: Prediction) -> None:
    """Nothing is widened or reported where the prediction agrees."""
    assert holding(prediction, [run(1.01, prediction)]) == (prediction, ())


def test_one_stray_run_of_many_is_not_told(prediction: Prediction) -> None:
    """Of eleven runs one may lie outside, as one in ten does."""
    runs = [run(1.0, prediction, f"usual {k}") for k in range(10)]
    assert holding(prediction, [*runs, run(0.3, prediction, "stray")]) == (prediction, ())


def test_runs_of_the_same_job_with_other_machines_beside_are_others() -> None:
    """A trainer alone and one that two helper machines feed have rows of their own."""
    for name in ("cpu-starved-p4d", "heterogeneous-tfdata-alone", "heterogeneous-tfdata"):
        scenario = load_scenario(name)
        bases = {row.base.removesuffix(".toml") for _, row in rows_of(scenario)}
        assert not bases & ({"cpu-fed-heterogeneous", "heterogeneous-tfdata"} - {name})


@pytest.mark.parametrize(
    "change",
    [
        "train.checkpoint_every_steps=1",
        "hardware.network_bandwidth=100 Gb/s",
        "parallelism.tensor=8",
        "train.recompute=full",
    ],
)
def test_a_run_with_other_links_or_another_layout_is_another_one(change: str) -> None:
    """Llama 3 70B was measured without checkpoints, as the shipped scenario has it."""
    assert rows_of(load_scenario("llama3-70b-megatron"))
    assert not rows_of(load_scenario("llama3-70b-megatron", overrides=(change,)))


def rows_of(scenario: Scenario) -> tuple[tuple[str, Row], ...]:
    """Runs of a scenario among the shipped ones."""
    return runs_of(scenario, rows_alike(scenario))


def test_the_published_run_of_a_scenario_is_one_of_it() -> None:
    """It is found by the scenario that its set names as its base, and only there."""
    found = {row.id for _, row in rows_of(load_scenario("bloom-176b"))}
    assert found == {"bloom-176b"}
    assert not rows_of(load_scenario("bloom-176b", overrides=("hardware.count=12",)))
