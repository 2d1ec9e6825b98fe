"""Device time of a batch: measurements, launches, memory format, one answer a scenario."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from simulator.physics.device_memory import device_memory
from simulator.physics.device_time import DeviceTime, Evidence, device_time, evidence_of
from simulator.physics.transformer import peak_of_values
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.schema.accelerators import Precision
from simulator.schema.convnets import ConvNet

ONE_REQUEST = "inference-batch1-gpu"
BASES = Path(simulator.__file__).parent / "data" / "measured" / "bases"


def times(name: str, *overrides: str) -> DeviceTime:
    """Of a shipped scenario with keys changed."""
    found = device_time(load_scenario(name, overrides=overrides))
    assert found is not None
    return found


def test_one_request_takes_as_long_as_its_launches() -> None:
    """At batch 1 the host launches for longer than the device works.

    Two requests at once take little longer than one, and recorded graphs shorten both.
    """
    one = times(ONE_REQUEST)
    two = times(ONE_REQUEST, "train.batch_size=2")
    graphs = times(ONE_REQUEST, "software.cuda_graphs=full")
    assert float(one.total) > one.inputs["host's time to launch them [s]"]
    assert float(two.total) < 1.4 * float(one.total)
    assert float(graphs.total) < 0.8 * float(one.total)


def test_a_large_batch_hides_its_launches() -> None:
    """At 1,024 images the device is what counts, with graphs or without."""
    eager = times("resnet50-mlperf-h100", "train.batch_size=1024", "software.cuda_graphs=none")
    graphs = times("resnet50-mlperf-h100", "train.batch_size=1024")
    assert float(eager.total) == pytest.approx(float(graphs.total), rel=0.03)


def test_launches_that_block_add_up() -> None:
    """The host waits for each kernel, so its time and the device's come one after the other."""
    free = times(ONE_REQUEST)
    blocked = times(ONE_REQUEST, "software.blocking_launches=true")
    assert float(blocked.total) > blocked.inputs["host's time to launch them [s]"]
    assert float(blocked.total) > float(free.total)


def test_backward_takes_its_own_launches_and_the_step_its_own_once() -> None:
    """Gradients appear when they have been launched, so small batches are held up there too."""
    eager = times("resnet50-mlperf-h100", "software.cuda_graphs=none")
    graphs = times("resnet50-mlperf-h100")
    for part in ("forward", "backward", "optimizer"):
        assert float(getattr(eager, part)) > 1.5 * float(getattr(graphs, part))


def test_a_measured_step_does_not_shrink_with_its_batch_below_what_is_launched() -> None:
    """An eighth of the batch takes more than an eighth of what was measured of the whole."""
    name = "dlrm-criteo-dgx-a100"
    whole = times(name, "train.batch_size=65536")
    eighth = times(name, "train.batch_size=8192")
    assert whole.measured
    assert eighth.measured
    assert float(whole.total) == pytest.approx(14.4e-3)
    assert float(eighth.total) > 1.5 * float(whole.total) / 8.0


def test_a_measured_step_of_a_model_without_counted_work_is_proportional() -> None:
    """Nothing tells what part of it is launches."""
    half = times(
        str(BASES / "data-parallel.toml"), "model.step_time_batch=32", "train.batch_size=16"
    )
    assert float(half.total) == pytest.approx(50e-3)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    batch=st.sampled_from([64, 1024, 8192, 65536]),
    name=st.sampled_from(["compute", "device_memory"]),
    base=st.sampled_from(["dlrm-criteo-dgx-a100", "resnet50-mlperf-h100"]),
    low=st.floats(0.1, 4.0),
    high=st.floats(0.1, 4.0),
)
def test_a_faster_device_never_takes_longer(
    batch: int, name: str, base: str, low: float, high: float
) -> None:
    """Measured by others or computed, at any batch size: a larger factor is a shorter step."""
    slow, fast = (
        times(base, f"train.batch_size={batch}", f"calibration.{name}={factor}")
        for factor in (min(low, high), max(low, high))
    )
    assert float(fast.total) <= float(slow.total) * (1.0 + 1e-12)


def test_a_factor_of_one_changes_nothing() -> None:
    """A step of the library at the batch size it was measured with is as measured."""
    plain = times("dlrm-criteo-dgx-a100", "train.batch_size=65536", "calibration.compute=1")
    assert float(plain.total) == pytest.approx(14.4e-3, rel=1e-12)


@pytest.mark.parametrize("batch", [16, 64, 256])
def test_an_own_measurement_stays_as_measured(batch: int) -> None:
    """No factor changes what the scenario says, nor how it is carried to another batch size."""
    said = ("model.step_times=[{batch_size = 64, time = '50 ms'}]", f"train.batch_size={batch}")
    plain, fast = (
        times("resnet50-mlperf-h100", *said, f"calibration.compute={factor}") for factor in (1, 4)
    )
    assert plain.measured
    assert float(fast.total) == float(plain.total)


def test_candidates_that_differ_in_what_they_compute_are_told_apart() -> None:
    """One process asks about them in turn; no answer is that of another one."""
    settings = ({}, {"train.batch_size": 128}, {"train.precision": "fp32"}, {"train.mode": "infer"})
    scenarios = [simulator.load("resnet50-imagenet-p4d", dict(own)).scenario for own in settings]
    first = [device_time(scenario) for scenario in scenarios]
    again = [device_time(scenario) for scenario in reversed(scenarios)][::-1]
    assert [time.total for time in first if time] == [time.total for time in again if time]
    assert len({float(time.total) for time in first if time}) == len(settings)


@pytest.mark.parametrize(
    ("name", "keys", "evidence"),
    [
        ("llama3-8b-fsdp", (), Evidence.KERNELS),
        ("llama3-8b-fsdp", ("parallelism.sharding=none",), Evidence.KERNELS),
        ("resnet50-imagenet-p4d", ("hardware.gpu=gpu/a100-sxm4-80gb",), Evidence.MEASURED),
        ("dlrm-criteo-dgx-a100", ("hardware.gpu=gpu/a100-pcie-80gb",), Evidence.SAME_CHIP),
        ("resnet50-imagenet-p4d", ("model.name=resnet101",), Evidence.OPERATORS),
        ("svm-cpu-only", (), Evidence.NONE),
    ],
)
def test_one_place_decides_what_a_time_rests_on(
    name: str, keys: tuple[str, ...], evidence: Evidence
) -> None:
    """Fitted kernels, a measured step, one of a card of the same chip, operators, or nothing."""
    scenario = load_scenario(name, overrides=keys)
    assert evidence_of(scenario) is evidence
    assert (device_time(scenario) is None) == (evidence is Evidence.NONE)


def test_it_is_worked_out_once() -> None:
    """The same scenario has the same answers, another one its own."""
    scenario = load_scenario("llama3-8b-fsdp")
    assert device_time(scenario) is device_time(scenario)
    assert device_memory(scenario) is device_memory(scenario)
    other = replace(scenario, name="another")
    assert device_time(other) is not device_time(scenario)
    assert device_time(other) == device_time(scenario)


LAST, FIRST = (f"software.memory_format=channels-{order}" for order in ("last", "first"))


def seconds(*overrides: str) -> float:
    """Device time of a batch of ResNet-50 on p4d."""
    found = device_time(load_scenario("resnet50-imagenet-p4d", overrides=overrides))
    assert found is not None
    return float(found.total)


def test_a_step_measured_channels_last_gets_longer_channels_first() -> None:
    """By as much as the computed one: published on a 3090, 1,218 against 826 images/s."""
    assert 1.2 < seconds(FIRST) / seconds(LAST) < 1.7


def on(gpu: str, order: str) -> float:
    """Device time of a large batch of ResNet-50 in fp16 on one accelerator."""
    own = (f"hardware.gpu=gpu/{gpu}", "hardware.gpus=1", "train.batch_size=1280", order)
    return seconds(*own, "train.precision=fp16")


def test_faster_memory_hardly_helps_where_each_channel_is_one_block() -> None:
    """H200 and H100 differ in memory alone: published 3,079 and 2,790 images/s channels-first."""
    gain = on("h100-sxm5-80gb", FIRST) / on("h200-sxm-141gb", FIRST)
    assert 1.05 < gain < 1.2
    assert on("h100-sxm5-80gb", LAST) / on("h200-sxm-141gb", LAST) > gain


@pytest.mark.parametrize(
    ("framework", "last"),
    [("pytorch", False), ("lightning", False), ("tensorflow", True), ("mxnet", False)],
)
def test_the_order_is_the_frameworks_own_where_none_is_given(framework: str, *, last: bool) -> None:
    """Tensors of PyTorch and of MXNet have channels first."""
    scenario = load_scenario(
        "imagenet-object-store-g5", overrides=(f"software.framework={framework}",)
    )
    assert isinstance(scenario.job.model, ConvNet)
    assert scenario.job.model.channels_last is last


def test_an_assumed_order_is_told() -> None:
    """A prediction that rests on it says so; one that was given it does not."""
    name, what = "imagenet-object-store-g5", "order of images"
    assumed = load_scenario(name, overrides=("train.precision=fp16",))
    given = load_scenario(name, overrides=("train.precision=fp16", LAST))
    assert any(what in note.what for note in assumed.notes)
    assert not any(what in note.what for note in given.notes)


def test_own_measurements_stay_as_they_are() -> None:
    """A step time that the scenario states was measured with its own order of images."""
    own = 'model.step_times=[{ batch_size = 256, time = "100 ms" }]'
    assert seconds(own, FIRST) == pytest.approx(seconds(own, LAST)) == pytest.approx(0.1)


def test_narrow_formats_keep_values_in_the_widest_16_bit_format_of_a_card() -> None:
    """A T4 has no bf16: 65 TFLOP/s of fp16; fp64 is not taken for 16 bit."""
    card = Catalogue.default(()).gpu("t4")
    assert Precision.BF16 not in card.peak
    assert peak_of_values(card, Precision.INT8) == card.peak[Precision.FP16]
    double = replace(card, peak={**card.peak, Precision.FP64: 0.25e12})
    assert peak_of_values(double, Precision.FP64) == 0.25e12
    overrides = ("hardware.gpu=gpu/t4", "train.mode=infer", "train.precision=int8")
    assert device_time(load_scenario("gpt2-tokens-h100", overrides=overrides)) is not None
