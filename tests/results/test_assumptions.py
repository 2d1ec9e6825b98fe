"""What a reader is warned of."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.units import BYTE, show

SPOT = "cost.purchase=spot"


def answer(*overrides: str) -> Prediction:
    """What is predicted for a rented machine, with options."""
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=overrides)
    return predict(scenario, intervals=False)


def test_spot_capacity_leaves_interruptions_out() -> None:
    """The time of a run that may be interrupted is too short: it is said, with what states them."""
    assert not [text for text in answer().warnings if "spot" in text]
    (warning,) = [text for text in answer(SPOT).warnings if "spot" in text]
    assert "interruptions" in warning
    assert "[goal.spot]" in warning
    assert "plan recommend" in warning


def test_what_is_known_of_the_price_stands_in_the_warning() -> None:
    """A price seen from so much to so much is charged in its middle; an own price is itself."""
    assert "middle of" in "".join(answer(SPOT).warnings)
    assert "middle of" not in "".join(answer(SPOT, "cost.price='$0.3/h'").warnings)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (("train.trained=lora", "train.lora_rank=16"), "there are few"),
        (("parallelism.pipeline=2", "train.accumulation=8"), "a pipeline adds up whole ones first"),
        ((), None),
    ],
    ids=["adapters", "a pipeline", "neither"],
)
def test_gradients_sharded_for_nothing_are_told(keys: tuple[str, ...], reason: str | None) -> None:
    """With the difference to a sharded optimizer; silent where sharded gradients need less."""
    needed, said = {}, {}
    for sharding in ("optimizer", "gradients"):
        given = (*keys, f"parallelism.sharding={sharding}")
        found = predict(load_scenario("llama3-8b-fsdp", overrides=given), intervals=False)
        assert found.memory is not None
        needed[sharding] = found.memory.total
        said[sharding] = [text for text in found.warnings if "with sharded gradients" in text]
    more = show(needed["gradients"] - needed["optimizer"], BYTE)
    assert said["optimizer"] == []
    assert [f"needs {more} more" in text for text in said["gradients"]] == [True] * bool(reason)
    assert all(text.endswith(str(reason)) for text in said["gradients"])
    assert (needed["gradients"] > needed["optimizer"]) is bool(reason)
