"""What a reader is warned of."""

from __future__ import annotations

from simulator.files.scenario import load_scenario
from simulator.predict import predict
from simulator.results.prediction import Prediction

SPOT = "cost.purchase=spot"


def answer(*overrides: str) -> Prediction:
    """What is predicted for a rented machine, with options."""
    scenario = load_scenario("resnet50-imagenet-p4d", overrides=overrides)
    return predict(scenario, doubts=False)


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
