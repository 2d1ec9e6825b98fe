"""Accelerators swapped in one machine: from which one on it starves them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from simulator.errors import NotModelled
from simulator.studies.whatif import Generation, generations, turning_point
from tests.support.what_if import reader

GPUS = ("gpu/t4", "gpu/v100-sxm2-16gb", "gpu/h100-sxm5-80gb", "gpu/k80")


def named(found: tuple[Generation, ...], gpu: str) -> Generation:
    """An accelerator by its name."""
    return next(one for one in found if one.gpu == gpu)


def test_from_which_generation_on_the_job_is_cpu_bound() -> None:
    """96 vCPUs feed eight T4 and starve eight V100; faster ones need more vCPUs each.

    Starved devices get nearly the same rate: the sooner one is done, the less its program spins.
    """
    found = generations(reader("resnet50-imagenet-p4d"), GPUS)
    assert [one.possible for one in found] == sorted(one.possible for one in found)
    assert not named(found, "gpu/t4").starved
    turn = turning_point(found)
    assert turn is named(found, "gpu/v100-sxm2-16gb")
    assert named(found, "gpu/a100-sxm4-40gb").own
    needs = [one.prediction.cpu_need.per_gpu for one in found]  # type: ignore[union-attr] # all ran
    assert all(less < more for less, more in pairwise(needs))
    assert needs[found.index(turn)] > 12.0
    starved = [one.prediction.timing.throughput for one in found if one.cpu_bound]  # type: ignore[union-attr] # all ran
    assert starved == sorted(starved)
    assert max(starved) < 1.06 * min(starved)


def test_memory_of_the_accelerator_is_checked() -> None:
    """What runs on 40 GB need not fit into 8."""
    found = generations(reader("resnet50-imagenet-p4d"), ["gpu/inferentia1"])
    assert not named(found, "gpu/inferentia1").fits
    assert named(found, "gpu/a100-sxm4-40gb").fits


def test_unknown_memory_is_no_misfit() -> None:
    """Steps that were measured, of a model that nobody described, say nothing about memory."""
    found = generations(reader("gpus-under-one-switch"), [])
    own = found[0]
    assert own.prediction is not None
    assert own.prediction.memory is None
    assert own.fits is None


def test_measured_steps_change_as_computed_ones_do() -> None:
    """73 ms measured on an A100 are as many more on a T4 as the computed time of the model is."""
    found = generations(reader("heterogeneous-tfdata-alone"), ["gpu/t4"])
    own, other = named(found, "gpu/a100-sxm4-40gb"), named(found, "gpu/t4")
    assert own.prediction is not None
    assert other.prediction is not None
    steps = other.prediction.scenario.job.step_times
    assert steps is not None
    plain = ("input.workers=0", "input.decode=0 s", "model.step_times=[]")
    bare = generations(reader("heterogeneous-tfdata-alone", *plain), ["gpu/t4"])
    times = [
        named(bare, gpu).prediction.timing.split.compute  # type: ignore[union-attr] # both ran
        for gpu in ("gpu/a100-sxm4-40gb", "gpu/t4")
    ]
    assert steps.seconds[0] == pytest.approx(0.073 * times[1] / times[0], rel=1e-6)


def test_a_model_that_says_nothing_leaves_measured_steps_where_they_were_measured() -> None:
    """Without a model there is no ratio to carry a measured step by."""
    found = generations(reader("gpus-under-one-switch"), ["gpu/t4"])
    assert "no model says" in named(found, "gpu/t4").reason


def test_what_an_accelerator_cannot_do_is_a_reason() -> None:
    """One that lacks the precision is listed last, with why."""
    read = reader("resnet50-imagenet-p4d", "train.precision=bf16")
    found = generations(read, ["gpu/v100-sxm2-16gb"])
    assert found[-1].prediction is None
    assert "is not a format of gpu/v100-sxm2-16gb" in found[-1].reason


def test_a_job_without_accelerators_has_none_to_swap() -> None:
    """It is told so rather than given an empty table."""
    with pytest.raises(NotModelled, match="uses no accelerator"):
        generations(reader("svm-cpu-only"), GPUS)
