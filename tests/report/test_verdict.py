"""The answer in a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.footprint import Verdict
from simulator.report.verdict import verdict
from simulator.results import Prediction, StepSplit, Usage
from simulator.stages.base import Resource


def with_timing(prediction: Prediction, **changes: object) -> Prediction:
    """The prediction with other times."""
    return replace(prediction, timing=replace(prediction.timing, **changes))  # type: ignore[arg-type] # names are checked by replace


def test_starved_devices(prediction: Prediction) -> None:
    """Rate made, rate possible and share of waiting are all in the sentence."""
    assert verdict(prediction) == (
        "GPU-starved: the CPUs make 25,600 of the 42,667 samples/s the GPUs could take; "
        "they wait for data 40.0% of the time."
    )


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (Resource.STORAGE, "the storage delivers 25,600"),
        (Resource.NETWORK, "the network delivers 25,600"),
        (Resource.PCIE, "PCIe carries 25,600"),
    ],
)
def test_who_starves_them(prediction: Prediction, resource: Resource, words: str) -> None:
    """The bottleneck is the one that is blamed."""
    assert words in verdict(with_timing(prediction, bottleneck=resource))


def test_busy_devices(prediction: Prediction) -> None:
    """Without waiting for data the devices themselves are the limit, and the next is named."""
    busy = with_timing(
        prediction,
        split=StepSplit(compute=0.040),
        bottleneck=Resource.GPU,
        next_bottleneck=Resource.CPU,
        accelerator_utilization=1.0,
    )
    assert verdict(busy) == (
        "GPU-bound: the GPUs take 25,600 samples/s and compute 100.0% of the time; "
        "next is the CPUs (99.0% busy)."
    )


def test_communication_is_the_limit(prediction: Prediction) -> None:
    """A full link between devices is called communication."""
    usage = {Resource.NVLINK: Usage(mean=0.97, total=3.9, units=4, busiest=0.98)}
    bound = with_timing(
        prediction, split=StepSplit(compute=0.04), bottleneck=Resource.NVLINK, usage=usage
    )
    assert verdict(bound).startswith("Communication-bound: 25,600 samples/s")


def test_nothing_is_full(prediction: Prediction) -> None:
    """Where time goes into waiting in turn, more of the busiest resource is not the advice."""
    usage = {Resource.CPU: Usage(mean=0.3, total=14.0, units=48, busiest=0.4)}
    text = verdict(with_timing(prediction, usage=usage))
    assert "No resource is full (the fullest is 40.0% busy)" in text


def test_without_a_device(prediction: Prediction) -> None:
    """A job without accelerator is bound by what is busiest."""
    bare = with_timing(prediction, accelerator_utilization=None)
    assert verdict(bare) == "CPU-bound: 25,600 samples/s, with the CPUs 99.0% busy."


def test_a_misfit_comes_first(prediction: Prediction) -> None:
    """What does not fit is said before how fast it would be."""
    assert prediction.memory is not None
    full = replace(prediction.memory, items={"activations": 93e9}, verdict=Verdict.NO)
    text = verdict(replace(prediction, memory=full))
    assert text.startswith("Does not fit: it needs 93 GB of 40 GB of the GPU's memory;")


def test_a_doubtful_fit_is_said(prediction: Prediction) -> None:
    """Close to the capacity the sentence says so."""
    doubtful = replace(prediction.host_ram, verdict=Verdict.UNCERTAIN)
    assert verdict(replace(prediction, host_ram=doubtful)).startswith("May not fit: ")
