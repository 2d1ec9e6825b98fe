"""What changes are worth, against steps and bills known in closed form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.errors import UnknownName
from simulator.predict import predict
from simulator.schema.scenario import CostPlan
from simulator.studies.levers.catalogue import knobs
from simulator.studies.levers.lever import Knob
from simulator.studies.whatif import KnobStep, Margins, Worth, check_number, knob_steps, margins
from simulator.units import HOUR
from tests.support.what_if import made_up, reader

WORKERS = Knob(
    name="workers",
    value=2,
    settings=lambda value: {"input.workers": round(value)},
    whole=True,
    steps=(("+1", 3), ("x2", 4)),
)
DEVICE = Knob(
    name="GPU speed",
    value=1.0,
    settings=lambda value: {"compute": 0.021 / value},
    steps=(("x2", 2.0),),
)
RENT = 36.0 / HOUR
"""A cent a second."""


def studied(*wanted: Knob, **prices: float) -> Margins:
    """Every step of some knobs on a job that two workers of 0.1 s a batch limit."""
    named = {name.replace("_", " "): price for name, price in prices.items()}
    read = made_up(batches=2000, cost=CostPlan(price=RENT))
    return margins(read, knob_steps(wanted), prices=named)


def named(found: Margins, name: str) -> Worth:
    """A change by its name."""
    return next(worth for worth in found.worths if worth.change.name == name)


def test_another_worker_is_worth_a_third() -> None:
    """Three workers take two thirds of the time of two, four take half."""
    found = studied(WORKERS)
    for step, expected in (("+1", 2.0 / 3.0), ("x2", 0.5)):
        effect = found.effect(named(found, f"workers {step}"), "step_time_s.mean")
        assert effect == pytest.approx(expected - 1.0, abs=1e-3)
    assert [worth.change.step for worth in found.worths] == ["x2", "+1"]


def test_of_changes_that_do_alike_the_free_one_comes_first() -> None:
    """Then one whose price is known; what nobody knows the price of comes last."""
    unknown, priced = (replace(WORKERS, name=name) for name in ("RAM", "machines"))
    free = replace(WORKERS, free=True)
    found = studied(unknown, priced, free, **{"machines x2": 1.0 / HOUR, "machines +1": 1.0})
    assert [worth.change.name for worth in found.worths] == [
        *("workers x2", "machines x2", "RAM x2"),
        *("workers +1", "machines +1", "RAM +1"),
    ]


def test_a_faster_device_is_worth_nothing_while_it_starves() -> None:
    """What waits for data does not get through its work sooner by working faster."""
    found = studied(DEVICE)
    assert not found.matters(named(found, "GPU speed x2"))


def test_effects_within_what_either_simulation_knows_are_none() -> None:
    """A change of 2% is none where the mean step of the changed job is known to 3%."""
    found = studied(WORKERS)
    worth = named(found, "workers +1")
    assert worth.prediction is not None
    before = found.base.timing.step_time.mean

    def changed(step: float, known: float) -> Worth:
        steps = replace(found.base.timing.step_time, mean=step)
        timing = replace(found.base.timing, step_time=steps, half_width=known * step)
        return replace(worth, prediction=replace(found.base, timing=timing))

    shown = replace(found, metric="step_time_s.mean")
    assert shown.matters(changed(1.02 * before, known=0.0))
    assert not shown.matters(changed(1.02 * before, known=0.03))
    assert not shown.matters(changed(1.004 * before, known=0.0))


def test_dollars_saved_per_dollar_spent() -> None:
    """Half the time at a third more rent: 1/2 x 3 = $1.5 saved for each dollar spent."""
    found = studied(
        Knob(name="cores", value=1.0, settings=WORKERS.settings, steps=(("x2", 4.0),)),
        cores_x2=RENT / 3.0,
    )
    worth = named(found, "cores x2")
    assert worth.prediction is not None
    lasts = worth.prediction.timing.total_time
    before = found.base.timing.total_time
    assert worth.spent == pytest.approx(RENT / 3.0 * lasts)
    assert worth.saved == pytest.approx(RENT * (before - lasts))
    assert worth.per_dollar == pytest.approx((before / lasts - 1.0) * 3.0)
    assert worth.to_train == pytest.approx(RENT * 4.0 / 3.0 * lasts)


def test_without_a_price_nothing_is_said_of_dollars() -> None:
    """A change that nobody has priced has no return, and a setting is free."""
    found = studied(DEVICE, WORKERS)
    assert named(found, "GPU speed x2").rent is None
    assert named(found, "GPU speed x2").per_dollar is None
    free = Knob(name="w", value=2, settings=WORKERS.settings, free=True, steps=(("+1", 3),))
    assert named(studied(free), "w +1").rent == 0.0


def test_another_machine_is_priced_by_the_catalogue() -> None:
    """Twice the machines cost twice the rent, which is what is spent."""
    read = reader("imagenet-object-store-g5", "data.samples=20000")
    machines = next(knob for knob in knobs(read({})) if knob.name == "machines")
    (worth,) = margins(read, knob_steps([machines])).worths
    base = predict(read({}), intervals=False)
    assert worth.rent == pytest.approx(base.cost.per_second)
    assert worth.prediction is not None
    assert worth.to_train == pytest.approx(worth.prediction.in_all)


def test_what_is_refused_keeps_its_reason() -> None:
    """A change that makes no sound scenario is told with the reason, the others still count."""
    read = reader("resnet50-imagenet-p4d", "train.global_batch_size=2048")
    batch = next(knob for knob in knobs(read({})) if knob.name == "batch size")
    found = margins(read, knob_steps([batch]))
    refused = named(found, "batch size x2")
    assert refused.prediction is None
    assert "global_batch_size" in refused.reason
    assert not refused.fits


def test_a_margin_is_the_prediction_of_the_changed_scenario() -> None:
    """Nothing is extrapolated: the figures are those of the scenario with the keys set."""
    read = reader("remote-workers-mnist-alone")
    vcpus = next(knob for knob in knobs(read({})) if knob.name == "vCPUs")
    change = KnobStep(knob=vcpus, step="x2", value=16.0)
    (worth,) = margins(read, [change]).worths
    apart = reader("remote-workers-mnist-alone", "hardware.vcpus=16", "hardware.cores=8")
    assert worth.prediction is not None
    assert worth.prediction.timing == predict(apart({}), intervals=False).timing


@pytest.mark.parametrize(
    ("metric", "said"),
    [("cost", "not one number; name one"), ("bottleneck", "not one number"), ("cost.usd", "mean")],
)
def test_only_numbers_can_be_metrics(metric: str, said: str) -> None:
    """Words, groups and misspelt names are refused with what could be meant."""
    with pytest.raises(UnknownName, match=said):
        check_number(metric)
