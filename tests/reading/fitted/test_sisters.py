"""Cards of one chip: a step measured on one is carried to the other as a ratio."""

from __future__ import annotations

import pytest

from simulator.physics.device_time import Evidence, device_time, evidence_of
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.schema.uncertainty import Grade
from simulator.uncertainty.grades import is_sister
from simulator.uncertainty.scenario import uncertainties_of


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a100-sxm4-40gb", "a100-sxm4-80gb", True),
        ("a100-sxm4-80gb", "a30", True),
        ("h100-sxm5-80gb", "h200-sxm-141gb", True),
        ("h100-sxm5-80gb", "h100-pcie-80gb", True),
        ("v100-sxm2-16gb", "v100-sxm3-32gb", True),
        ("a100-sxm4-80gb", "a10", False),
        ("a100-sxm4-80gb", "rtx-3090", False),
        ("b200-sxm-180gb", "rtx-5090", False),
        ("h100-sxm5-80gb", "b200-sxm-180gb", False),
    ],
)
def test_cards_of_one_chip(one: str, other: str, same: bool) -> None:  # noqa: FBT001 - a case
    """One architecture, and as much matrix rate for each vector rate."""
    catalogue = Catalogue.default()
    assert is_sister(catalogue.gpu(one), catalogue.gpu(other)) is same


@pytest.mark.parametrize("name", ["dlrm-criteo-dgx-a100", "resnet50-imagenet-p4d"])
def test_less_memory_bandwidth_is_no_faster(name: str) -> None:
    """Whichever of two A100 the model was measured on, the one with slower memory takes longer."""
    cards = ("gpu/a100-sxm4-40gb", "gpu/a100-sxm4-80gb")
    scenarios = [load_scenario(name, overrides=(f"hardware.gpu={card}",)) for card in cards]
    slow, fast = (device_time(scenario) for scenario in scenarios)
    assert slow is not None
    assert fast is not None
    assert float(slow.total) > float(fast.total)
    carried = [evidence_of(scenario) is Evidence.SAME_CHIP for scenario in scenarios]
    assert sorted(carried) == [False, True]
    other = (slow, fast)[carried.index(True)]
    assert other.carried_from == cards[carried.index(False)]
    assert other.carried_from in other.source.reference


@pytest.mark.parametrize("card", ["gaudi2", "tpu-v5e", "tpu-v6e"])
def test_a_card_without_fp16_is_compared_by_its_bf16(card: str) -> None:
    """A model known by its totals is carried over to it as well: the nearest card is found."""
    keys = ("model.name=mask-rcnn-r50-fpn", "train.batch_size=4", "train.precision=bf16")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=(*keys, f"hardware.gpu=gpu/{card}"))
    assert evidence_of(scenario) is Evidence.SAME_CHIP
    time = device_time(scenario)
    assert time is not None
    assert 0.01 < float(time.total) < 1.0


def test_a_carried_step_is_the_measured_one_in_the_ratio_of_the_computed() -> None:
    """Its inputs give its value, and it is known less well than where it was measured."""
    keys = ("hardware.gpu=gpu/a100-sxm4-40gb",)
    there = load_scenario("dlrm-criteo-dgx-a100", overrides=("hardware.gpu=gpu/a100-sxm4-80gb",))
    here = load_scenario("dlrm-criteo-dgx-a100", overrides=keys)
    carried, scenario = (here, there) if evidence_of(here) is Evidence.SAME_CHIP else (there, here)
    time = device_time(carried)
    assert time is not None
    measured, reference, own = (float(value) for value in time.inputs.values())
    assert float(time.total) == pytest.approx(measured * own / reference)
    bands = [predict(s).interval["step_time_s.mean"] for s in (scenario, carried)]
    widths = [band["p90"] / band["p10"] for band in bands]
    assert widths[1] > widths[0]


def test_another_chip_or_precision_is_computed() -> None:
    """A step measured in fp16 says nothing of one in bf16, nor of another kind of card."""
    for keys in (("train.precision=bf16",), ("hardware.gpu=gpu/a10",)):
        scenario = load_scenario("resnet50-imagenet-p4d", overrides=keys)
        time = device_time(scenario)
        assert time is not None
        assert evidence_of(scenario) is not Evidence.SAME_CHIP
        assert time.carried_from == ""


DETECTOR = (
    "model.name=mask-rcnn-r50-fpn",
    "software.framework=tensorflow",
    "train.batch_size=4",
    "train.optimizer=momentum",
)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_model_known_by_its_totals_is_carried_over_from_another_chip(precision: str) -> None:
    """Mask R-CNN on an H100: a step of an A100 in 16 bit, in the ratio of the computed ones."""
    keys = (*DETECTOR, f"train.precision={precision}", "hardware.gpu=gpu/h100-sxm5-80gb")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=keys)
    time = device_time(scenario)
    assert time is not None
    assert time.carried_from == "gpu/a100-sxm4-80gb"
    measured, reference, own = (float(value) for value in time.inputs.values())
    assert measured == pytest.approx(0.14)
    assert own < reference
    assert float(time.total) == pytest.approx(measured * own / reference)
    named = {component.name for component in uncertainties_of(scenario)}
    assert any(Grade.OTHER_CARD in name for name in named)


def test_a_card_of_one_chip_comes_first() -> None:
    """A step of a V100 with 16 GB is one of a V100 with 32 GB: a card of one chip comes first."""
    keys = (*DETECTOR, "train.precision=fp16", "hardware.gpu=gpu/v100-sxm2-32gb")
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=keys)
    time = device_time(scenario)
    assert time is not None
    assert time.carried_from == "gpu/v100-sxm2-16gb"
    assert float(time.total) == pytest.approx(0.2067, rel=0.02)
