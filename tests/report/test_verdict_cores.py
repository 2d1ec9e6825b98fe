"""A machine whose cores are all busy is full, whatever share of its threads that is."""

from __future__ import annotations

from dataclasses import replace

from simulator.report.prediction.verdict import verdict
from simulator.results.prediction import Prediction, Usage


def with_threads_busy(prediction: Prediction, share: float) -> Prediction:
    """The prediction with that share of hardware threads busy, the fullest resource."""
    usage = {name: replace(u, mean=0.1, busiest=0.1) for name, u in prediction.timing.usage.items()}
    usage["cpu"] = Usage(mean=share, total=share * 48, units=48, busiest=share)
    return replace(prediction, timing=replace(prediction.timing, usage=usage))


def with_worth(prediction: Prediction, worth: float) -> Prediction:
    """The prediction on 24 cores with two threads each, the second of which is worth so much."""
    scenario = prediction.scenario
    group = scenario.cluster.groups[0]
    pool = replace(group.host.cpu, cores=24, threads=48, smt_worth=worth, contention=0.0)
    groups = (replace(group, host=replace(group.host, cpu=pool)), *scenario.cluster.groups[1:])
    cluster = replace(scenario.cluster, groups=groups)
    return replace(prediction, scenario=replace(scenario, cluster=cluster))


def test_half_of_the_threads_may_be_all_there_is(prediction: Prediction) -> None:
    """With second threads worth nothing, 24 of 48 busy are full; with full ones, half."""
    half = with_threads_busy(prediction, 0.5)
    assert "No input resource is full" not in verdict(with_worth(half, 0.0))
    assert "No input resource is full" in verdict(with_worth(half, 1.0))


def test_few_busy_threads_leave_room(prediction: Prediction) -> None:
    """A tenth of the threads is no full machine."""
    assert "No input resource is full" in verdict(
        with_worth(with_threads_busy(prediction, 0.1), 0.0)
    )
