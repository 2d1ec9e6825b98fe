"""The invariants of every prediction: sound ones pass, and each invariant sees what breaks it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from simulator import predict as door
from simulator.engine.run import SimulationInput
from simulator.errors import BrokenInvariant
from simulator.invariants import (
    INTERVAL_INVARIANTS,
    INVARIANTS,
    Invariant,
    check_invariants,
    violations,
)
from simulator.physics.footprint import Verdict
from simulator.predict import predict, simulation_input
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction

SCENARIO = "resnet50-imagenet-p4d"
Change = Callable[[Prediction], Prediction]


@cache
def asked() -> tuple[SimulationInput, Prediction]:
    """A shipped scenario as a question, and its answer."""
    scenario = load_scenario(SCENARIO)
    return simulation_input(scenario), predict(scenario)


def timing(**changes: object) -> Change:
    """Replace figures of the timing."""
    return lambda p: replace(p, timing=replace(p.timing, **changes))


def split(**changes: float) -> Change:
    """Replace parts of the step."""
    return lambda p: timing(split=replace(p.timing.split, **changes))(p)


def shorter(times: float) -> Change:
    """A run in a part of its time, epochs included."""
    return lambda p: timing(
        total_time=p.timing.total_time * times,
        epoch_time=p.timing.epoch_time * times,
        first_epoch_time=p.timing.first_epoch_time * times,
    )(p)


def usage(**changes: float) -> Change:
    """Make the storage as busy as told."""

    def changed(p: Prediction) -> Prediction:
        storage = replace(p.timing.usage["storage"], **changes)
        return timing(usage={**p.timing.usage, "storage": storage})(p)

    return changed


def memory(**changes: object) -> Change:
    """Replace figures of the device's memory."""

    def changed(p: Prediction) -> Prediction:
        assert p.memory is not None
        return replace(p, memory=replace(p.memory, **changes))

    return changed


def step(**changes: float) -> Change:
    """Replace figures of the step's distribution."""
    return lambda p: timing(step_time=replace(p.timing.step_time, **changes))(p)


def cost(**changes: float) -> Change:
    """Replace figures of the bill."""
    return lambda p: replace(p, cost=replace(p.cost, **changes))


BROKEN: dict[str, tuple[str, Change]] = {
    "a step of no length": ("steps and runs take time", step(mean=0.0)),
    "an endless step": ("every figure is finite", step(mean=math.inf)),
    "a total that is not a number": ("every figure is finite", timing(total_time=math.nan)),
    "a negative part": ("no figure is negative", split(other=-1e-3)),
    "a negative price": ("no figure is negative", cost(per_step=-1.0)),
    "percentiles that cross": ("percentiles are in order", step(p50=9.0)),
    "a run below its bound": ("no run is shorter than its lower bound", shorter(1e-3)),
    "a step above its epoch": ("no step is longer than its epoch", step(mean=1e6)),
    "an epoch past the link's rate": ("nothing carries more than its capacity", shorter(1e-3)),
    "a unit too busy": ("nothing is busy more than always", usage(busiest=1.01)),
    "a device too busy": (
        "nothing is busy more than always",
        timing(accelerator_utilization=1.01),
    ),
    "bytes that nobody asked for": (
        "what is carried is what a step reads and sends",
        usage(busiest=0.9, total=0.9),
    ),
    "parts that do not add up": ("the parts of a step add up to it", split(h2d=1.0)),
    "a job that cannot fit": ("memory holds its parts", memory(capacity=1.0)),
    "a stage above all": ("memory holds its parts", memory(stages={"first": 1e15})),
    "a bill below the rent": ("the bill covers the run", cost(for_machines=0.01)),
    "hours that nobody pays": ("the bill covers the run", cost(time_to_train=1.0)),
}


def test_a_sound_prediction_breaks_no_law() -> None:
    """What is predicted of a shipped scenario passes."""
    assert violations(*asked(), (*INVARIANTS, *INTERVAL_INVARIANTS)) == ()


@pytest.mark.parametrize("name", BROKEN)
def test_a_law_sees_what_breaks_it(name: str) -> None:
    """A prediction that was tampered with is caught, by the invariant that it breaks."""
    invariant, change = BROKEN[name]
    inputs, prediction = asked()
    found = violations(inputs, change(prediction), INVARIANTS)
    assert invariant in {one.invariant for one in found}


def test_every_law_has_a_case() -> None:
    """No invariant without a prediction that breaks it."""
    bounds = {
        "the lower bound is at most the upper one",
        "the devices of one machine send nothing over the network",
    }
    assert {invariant for invariant, _ in BROKEN.values()} | bounds == {
        invariant.name for invariant in INVARIANTS
    }


def test_exchange_that_leaves_a_single_machine_is_seen() -> None:
    """Sixteen GPUs of a machine exchange over its links: half of it outward breaks the law."""
    scenario = load_scenario("llama3-8b-fsdp")
    inputs, prediction = simulation_input(scenario), predict(scenario, intervals=False)
    leaving = {
        phase: tuple(
            replace(one, demands=tuple(replace(d, outward=0.5) for d in one.demands))
            for one in stages
        )
        for phase, stages in inputs.demands.items()
    }
    name = "the devices of one machine send nothing over the network"
    assert violations(inputs, prediction, INVARIANTS) == ()
    found = violations(replace(inputs, demands=leaving), prediction, INVARIANTS)
    assert name in {one.invariant for one in found}


def test_bounds_that_cross_are_seen() -> None:
    """A lower bound above the upper one is no bound."""
    inputs, prediction = asked()
    crossed = replace(prediction, bounds=replace(prediction.bounds, upper=1e-9))
    assert "the lower bound is at most the upper one" in {
        one.invariant for one in violations(inputs, crossed, INVARIANTS)
    }


@pytest.mark.parametrize(
    "band",
    [
        {"p10": 2.0, "p50": 1.0, "p90": 3.0},
        {"p10": 1.0, "p50": 2.0, "p90": math.inf},
        {"p10": math.nan, "p50": 2.0, "p90": 3.0},
    ],
)
def test_an_interval_that_is_none_is_seen(band: dict[str, float]) -> None:
    """Quantiles that cross, have no end, or are no numbers."""
    inputs, prediction = asked()
    odd = replace(prediction, interval={"total_time_s": band})
    assert violations(inputs, odd, INTERVAL_INVARIANTS)


def test_rounding_breaks_no_law() -> None:
    """A last part of a step that is negative by the last bit is rounding."""
    inputs, prediction = asked()
    parts = prediction.timing.split
    moved = split(other=-1e-16, compute=parts.compute + parts.other)
    assert not violations(inputs, moved(prediction), INVARIANTS)


def test_the_message_names_scenario_law_and_figures() -> None:
    """Whoever reports it has something to say."""
    inputs, prediction = asked()
    with pytest.raises(BrokenInvariant, match=SCENARIO) as caught:
        check_invariants(inputs, step(mean=0.0)(prediction), INVARIANTS)
    assert "steps and runs take time: step_time_s.mean = 0.0" in str(caught.value)


def test_predict_checks_the_invariants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The invariants are asked on the way out, for figures and for intervals."""
    scenario = load_scenario(SCENARIO)
    never = Invariant("nothing is allowed", lambda _question, _prediction: iter(["anything"]))
    for name in ("INVARIANTS", "INTERVAL_INVARIANTS"):
        with monkeypatch.context() as patched:
            patched.setattr(door, name, (never,))
            with pytest.raises(BrokenInvariant, match="nothing is allowed: anything"):
                predict(scenario)


def test_a_fit_that_is_no_fit_is_seen() -> None:
    """A verdict that its own figures deny."""
    inputs, prediction = asked()
    denied = memory(verdict=Verdict.NO)(prediction)
    assert [one.invariant for one in violations(inputs, denied, INVARIANTS)] == [
        "memory holds its parts"
    ]
