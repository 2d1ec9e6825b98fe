"""A step in closed form: what the whole prediction says where data is at hand."""

from __future__ import annotations

import pytest

from simulator import load
from simulator.engine.closed_form import estimate
from simulator.errors import InputError, NotModelled
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.uncertainty.scenario import with_uncertainties

FED = (
    "megatron-1t",
    "turing-nlg-530b",
    "llama3-8b-fsdp",
    "mixtral-8x7b-megatron",
    "resnet18-imagenet-hidden",
    "bert-large-dgx-a100",
)
"""Shipped scenarios whose devices do not wait for data."""


@pytest.mark.parametrize("name", FED)
def test_it_is_the_step_of_the_whole_prediction(name: str) -> None:
    """Length, samples, memory and price; the simulated step has no more to add than a hundredth."""
    scenario = with_uncertainties(load_scenario(name))
    short, whole = estimate(scenario), predict(scenario, intervals=False)
    assert short.step_time == pytest.approx(whole.timing.step_time.mean, rel=0.01)
    assert short.throughput == pytest.approx(whole.timing.throughput, rel=0.01)
    assert short.memory == whole.memory
    assert short.fits == ("" if whole.memory is None else str(whole.memory.verdict))
    if whole.cost.per_step is None:
        assert short.usd_per_step is None
    else:
        assert short.usd_per_step == pytest.approx(whole.cost.per_step, rel=0.01)


def test_settings_of_a_configuration() -> None:
    """As if it had been loaded with them."""
    job = load("megatron-1t")
    wider = {"parallelism.tensor": 4, "parallelism.interleave": 2}
    assert job.estimate(wider) == job.with_(wider).estimate() != job.estimate()
    assert job.estimate().step_time == estimate(job.scenario).step_time


def test_mistakes_are_refused_as_everywhere() -> None:
    """A replica that does not divide the devices; a key that does not exist."""
    job = load("megatron-1t")
    with pytest.raises(InputError, match="doesn't divide"):
        job.estimate({"parallelism.tensor": 7})
    with pytest.raises(InputError, match="is not a known key"):
        job.estimate({"parallelism.tenser": 2})


def test_without_accelerators_there_is_nothing_to_estimate() -> None:
    """The step is then up to cores and data."""
    with pytest.raises(NotModelled, match="no accelerator computes"):
        estimate(load_scenario("svm-cpu-only"))
