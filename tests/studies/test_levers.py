"""The list of levers and its filters; knobs left at their value change nothing."""

from __future__ import annotations

import pytest
from support.stages import sampled

from simulator.predict import predict
from simulator.studies.levers import catalogue
from simulator.studies.levers.catalogue import LEVERS, SERVICE_LEVERS, knobs
from simulator.studies.levers.lever import turned
from tests.support.what_if import reader

SCENARIOS = (
    *("resnet50-imagenet-p4d", "imagenet-object-store-g5", "megatron-1t", "svm-cpu-only"),
    *("stage-or-stream", "preload-ram", "remote-workers-mnist"),
    *("unet-m1-max", "reads-and-allreduce-one-nic"),
)


@pytest.mark.parametrize("name", sampled(SCENARIOS, 1))
def test_a_knob_left_where_it_is_changes_nothing(name: str) -> None:
    """The value that a knob is said to have now is the one the prediction rests on."""
    read = reader(name)
    scenario = read({})
    base = predict(scenario, intervals=False, max_steps=16).timing
    for knob in knobs(scenario):
        after = predict(turned(read, knob, knob.value), intervals=False, max_steps=16).timing
        assert after.total_time == pytest.approx(base.total_time, rel=1e-9), knob.name
        assert after.usage.keys() == base.usage.keys()


def test_values_of_a_calibrated_scenario_are_those_of_its_file() -> None:
    """Factors stay in force beside a what-if, and are not applied twice."""
    factors = ("calibration.storage=0.5", "calibration.network=0.5", "calibration.cpu=2.0")
    read = reader("reads-and-allreduce-one-nic", *factors, "calibration.collective=0.5")
    scenario = read({})
    base = predict(scenario, intervals=False, max_steps=16).timing.total_time
    for knob in knobs(scenario):
        after = predict(turned(read, knob, knob.value), intervals=False, max_steps=16).timing
        assert after.total_time == pytest.approx(base, rel=1e-9), knob.name


def test_measured_steps_get_shorter_with_the_device() -> None:
    """Twice as fast a device takes half of what was measured, which no factor would touch."""
    read = reader("heterogeneous-tfdata-alone")
    speed = next(knob for knob in knobs(read({})) if knob.name == "GPU speed")
    assert speed.settings is None
    times = turned(read, speed, 2.0).job.step_times
    assert times is not None
    assert times.seconds == pytest.approx((0.0365,))


def test_computed_steps_get_shorter_with_the_device() -> None:
    """Twice the rates of arithmetic and memory halve the computed time of a step."""
    read = reader("megatron-1t")
    speed = next(knob for knob in knobs(read({})) if knob.name == "GPU speed")
    before = predict(read({}), intervals=False).timing.split.compute
    after = predict(turned(read, speed, 2.0), intervals=False).timing.split.compute
    assert after == pytest.approx(before / 2.0, rel=0.05)


def test_processors_grow_with_their_cores() -> None:
    """Twice the vCPUs are twice the cores, also where the file states both."""
    read = reader("resnet50-imagenet-p4d", "hardware.vcpus=64", "hardware.cores=64")
    vcpus = next(knob for knob in knobs(read({})) if knob.name == "vCPUs")
    pool = turned(read, vcpus, 128.0).cluster.trainers.host.cpu
    assert (pool.threads, pool.cores) == (128.0, 128.0)


def test_levers_have_names_of_their_own() -> None:
    """A filter names one lever, and every lever has values and a verb that shows them."""
    for levers, filters in (
        (
            LEVERS,
            {
                "changes": catalogue.NEXT_STEPS,
                "knobs": catalogue.WHATIF,
                "candidates": catalogue.SEARCH,
                "relief": tuple(catalogue.RELIEF),
            },
        ),
        (
            SERVICE_LEVERS,
            {"changes": catalogue.SERVICE_NEXT_STEPS, "variants": catalogue.SERVICE_WHATIF},
        ),
    ):
        names = [lever.name for lever in levers]
        assert len(set(names)) == len(names)
        for values, shown in filters.items():
            assert len(set(shown)) == len(shown)
            having = {lever.name for lever in levers if getattr(lever, values) is not None}
            assert having == set(shown), values


def test_sizes_and_advice_are_parts_of_the_list() -> None:
    """What is sized can be more or less, and what is advised has one key."""
    for names in catalogue.SIZE.values():
        assert all(catalogue.lever(name).knobs is not None for name in names)
    keys = [catalogue.lever(name).keys for name in catalogue.ADVISE_INPUT]
    assert keys == [("input.workers",), ("input.prefetch",)]
