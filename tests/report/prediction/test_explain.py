"""Where a number comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.catalogue import each

from simulator.errors import UnknownName
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.prediction.explain import document
from simulator.report.text import WIDTH
from simulator.results.metrics import JOB_METRICS
from simulator.results.prediction import Prediction
from simulator.schema.cost import Price, Purchase
from simulator.schema.provenance import Source


def as_explanation(prediction: Prediction, metric: str | None = None) -> str:
    """Return the explanation of a metric."""
    return render(document(prediction, metric), Format.TABLE)


def test_the_explanation_reads_as_it_should(
    prediction: Prediction, golden: Callable[[str, str], None]
) -> None:
    """The explanation of a hand-made prediction is the committed text."""
    golden("explain-hand-made", as_explanation(prediction) + "\n")


@each("metric", JOB_METRICS)
def test_every_metric_is_explained(prediction: Prediction, metric: object) -> None:
    """Each metric prints its value and at least one chapter below it."""
    name = metric.name  # type: ignore[attr-defined] # a Metric
    text = as_explanation(prediction, name)
    assert f"  {name}" in text
    assert text.count("\n\n") >= 2
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_demand_shows_equation_inputs_and_sources(prediction: Prediction) -> None:
    """Each input of an equation stands with its value and where it was read."""
    text = as_explanation(prediction)
    assert "= step.batch_bytes" in text
    assert "bytes_per_sample = 114 kB   from data.bytes_per_sample" in text
    assert "[maker's datasheet, 2020-05]" in text
    assert "decode = 1.6 ms   from input.decode of the scenario" in text


def test_only_the_resource_asked_for_is_shown(prediction: Prediction) -> None:
    """The utilization of the CPUs is explained by what is asked of the CPUs."""
    text = as_explanation(prediction, "utilization.cpu.mean")
    assert "decode (by the worker)" in text
    assert "read (by the worker)" not in text


def test_whole_runs_show_their_parts(prediction: Prediction) -> None:
    """The total time is explained by epochs, the step time is not."""
    assert "The run\n" in as_explanation(prediction, "total_time_s")
    assert "The run\n" not in as_explanation(prediction, "step_time_s.mean")


def test_a_price_names_its_source(prediction: Prediction) -> None:
    """The cost is explained by a price with region, source and date."""
    price = Price(
        purchase=Purchase.ON_DEMAND,
        region="here",
        low=0.01,
        high=0.01,
        source=Source(reference="price list", date="2026-01"),
    )
    group = prediction.scenario.cluster.groups[0]
    priced = replace(group, host=replace(group.host, prices=(price,)))
    scenario = replace(
        prediction.scenario, cluster=replace(prediction.scenario.cluster, groups=(priced,))
    )
    text = as_explanation(replace(prediction, scenario=scenario), "cost")
    assert "here; price list, 2026-01" in text


def test_no_price_is_said(prediction: Prediction) -> None:
    """Without a price the explanation says which profile lacks one."""
    cost = replace(prediction.cost, per_second=None)
    text = as_explanation(replace(prediction, cost=cost), "cost.usd_per_h")
    assert "the profile of test-four states no price" in text


def test_a_copy_names_what_decides() -> None:
    """154 MB at 12.5 GB/s: the uplink of the switch, not the faster link of the device."""
    text = as_explanation(predict(load_scenario("resnet50-imagenet-p4d"), intervals=False))
    copy = text.partition("\n  copy (")[2].partition("\n  forward (")[0]
    assert "slowest unit = pcie switch0 down, 12.5 GB/s   from link/pcie-gen3-x16" in copy
    assert "32 GB/s" not in copy


def test_energy_is_explained_by_part() -> None:
    """Accelerators, what surrounds them, processors and helpers, each with its source."""
    said = predict(load_scenario("cpu-fed-heterogeneous"), intervals=False)
    text = as_explanation(said, "cost.energy_j_per_step")
    for part in ("accelerators", "rest of the machines", "processors", "data: processors"):
        assert f"\n  {part}  " in text
    assert "= all machines" in text
    assert "UNVERIFIED" in text.partition("Power from")[2].partition("Assumptions")[0]


def test_an_unknown_power_is_said() -> None:
    """No figure, and which profile lacks one."""
    options = ("hardware.machine=instance/aws/trn1.32xlarge", "hardware.storage=storage/ebs-gp3")
    job = load_scenario("gpus-under-one-switch", overrides=(*options, "train.precision=bf16"))
    text = as_explanation(predict(job, intervals=False), "cost.energy_j_per_step")
    assert "unknown: the profile of gpu/trainium1 states no power" in text


def test_a_checkpoint_is_explained() -> None:
    """Size, a machine's share of it, time of one, how many, and what falls on a step."""
    options = ("train.checkpoint_every_steps=200", "train.epochs=0.5")
    said = predict(load_scenario("llama3-70b-megatron", overrides=options), intervals=False)
    text = as_explanation(said, "step_split_s.checkpoint")
    for part in (
        "weights = 282.2 GB",
        "moments = 564.4 GB",
        "storage: 105.8 GB, 450 ms of latency, at most 4.8 GB/s, 8 machines at once",
    ):
        assert part in text
    assert "88.88 s each, 97 in 19,532 steps: 441.4 ms of a step" in text


def test_without_checkpoints_there_is_nothing_to_explain() -> None:
    """A job that writes none is told by which key it would."""
    text = as_explanation(
        predict(load_scenario("cpu-starved-p4d"), intervals=False), "step_split_s.checkpoint"
    )
    assert "none are written (train.checkpoint_every_steps)" in text


def test_an_unknown_metric_is_refused(prediction: Prediction) -> None:
    """A misspelt metric is answered with the nearest one."""
    with pytest.raises(UnknownName, match=r"did you mean 'step_time_s\.mean'"):
        as_explanation(prediction, "step_time.mean")


def test_a_simulated_run_is_explained(simulated: Prediction) -> None:
    """Every stage that asks for something stands in the explanation."""
    text = as_explanation(simulated)
    asked = [
        stage.stage
        for stage in simulated.demands
        if any(demand.amount > 0.0 or demand.latency > 0.0 for demand in stage.demands)
    ]
    assert {"read", "decode", "forward"} <= set(asked)
    assert all(f"  {name} (by the " in text for name in asked)
