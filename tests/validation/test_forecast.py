"""Predictions of measured rows by the real model: once each, anchored, blind to measured values."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.predict import predict
from simulator.reading.measured.measurement_set import parse_set
from simulator.reading.scenario import load_scenario
from simulator.schema.measurement import MeasurementSet, Row, Split
from simulator.validation import forecast as study
from simulator.validation.validate import Validated, validate

BASE = "resnet18-imagenet-one-worker"
STEP = "step_time_s.mean"
TOML = f"""
schema = 1
name = "mine"
title = "A test"
data = "mine.csv"
base = "{BASE}"
source = "predicted with known costs"
date = "2026-11"
metrics = ["{STEP}", "throughput_samples_per_s"]
split = "test"
group_by = ["machine"]
anchor = "one worker"

[[fit]]
key = "input.augment"
start = "1 ms"
low = "10 us"
high = "1 s"
"""
COSTS = {"slow": 12.0, "fast": 5.0}
"""Augmentation of one sample on each machine [ms], which the fit has to find."""


def truth(machine: str, workers: int) -> tuple[float, float]:
    """What is 'measured': the prediction with the machine's own cost."""
    given = (f"input.workers={workers}", f"input.augment={COSTS[machine]} ms")
    timing = predict(load_scenario(BASE, overrides=given)).timing
    return timing.step_time.mean, timing.throughput


@pytest.fixture(scope="module")
def known() -> MeasurementSet:
    """Two machines of unknown cost, each with an anchor of one worker."""
    lines = [f"id,machine,input.workers,measured.{STEP},measured.throughput_samples_per_s,anchor"]
    for machine in COSTS:
        for workers in (1, 2, 3, 4):
            step, rate = truth(machine, workers)
            anchor = "yes" if workers == 1 else ""
            lines.append(f"{machine}-{workers},{machine},{workers},{step!r},{rate!r},{anchor}")
    return parse_set(TOML, "\n".join(lines), "mine.toml", Path())


def predicted(found: Validated) -> dict[tuple[str, str], float]:
    """Predictions by row and metric."""
    return {(one.id, one.metric): one.point.predicted for one in found.judged}


def test_a_groups_constant_is_found_from_its_anchor(known: MeasurementSet) -> None:
    """Each machine's cost comes out of its one anchor, and all other rows follow."""
    found = validate([known], processes=1)
    for (name, (machine,)), constants in found.constants.items():
        assert name == "mine"
        assert len(constants) == 1
        value = constants[0].removeprefix("input.augment=").removesuffix(" ms")
        assert float(value) == pytest.approx(COSTS[machine], rel=0.01)
    total = next(f for f in found.totals if f.split is Split.TEST and f.metric == STEP)
    assert total.score is not None
    assert total.score.rows == 6
    assert total.score.largest < 0.01


@pytest.mark.slow
def test_measured_values_of_test_rows_are_never_read(known: MeasurementSet) -> None:
    """Shuffled among the test rows, they change errors but no prediction; an anchor's does."""
    tested = [row for row in known.rows if row.split is Split.TEST]
    values = [row.measured for row in tested]
    random.Random(1).shuffle(values)  # noqa: S311 - a shuffle, no secret
    dealt = dict(zip((row.id for row in tested), values, strict=True))
    rows = tuple(replace(row, measured=dealt.get(row.id, row.measured)) for row in known.rows)
    assert rows != known.rows
    before, after = (
        validate([known], processes=1),
        validate([replace(known, rows=rows)], processes=1),
    )
    assert predicted(before) == predicted(after)
    assert before.totals != after.totals
    slower = tuple(_slower(row) if row.anchor else row for row in known.rows)
    other = validate([replace(known, rows=slower)], processes=1)
    assert predicted(other)["slow-2", STEP] != predicted(before)["slow-2", STEP]


def _slower(row: Row) -> Row:
    return replace(row, measured={STEP: 2 * row.measured[STEP]})


def test_labels_are_never_read(known: MeasurementSet) -> None:
    """Other labels of the same groups, spreads, sources and families: the same predictions."""
    rows = tuple(
        replace(
            row,
            labels={"machine": f"other {row.labels['machine']}", "price": "9"},
            spread={STEP: 0.5},
            source="elsewhere",
            family=row.id,
        )
        for row in known.rows
    )
    before, after = (
        validate([known], processes=1),
        validate([replace(known, rows=rows)], processes=1),
    )
    assert predicted(before) == predicted(after)


def test_equal_scenarios_are_predicted_once(
    known: MeasurementSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeats of a configuration cost nothing, in whatever set they stand."""
    calls: list[str] = []

    def counting(*arguments: object, **options: object) -> object:
        calls.append("predicted")
        return predict(*arguments, **options)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(study, "predict", counting)
    plain = replace(known, fit=(), name="plain")
    again = tuple(replace(row, id=f"{row.id} again") for row in known.rows)
    validate([plain, replace(plain, name="twice", rows=(*known.rows, *again))], processes=1)
    assert len(calls) == 4


def test_several_processes_give_the_same(known: MeasurementSet) -> None:
    """Predictions don't depend on who makes them, and progress ends at one."""
    told: list[float] = []
    rows = tuple(
        replace(row, id=f"{row.id}-{i}", overrides=(*row.overrides, f"input.prefetch={2 + i}"))
        for row in known.rows
        for i in range(4)
    )
    many = replace(known, rows=rows, fit=())
    one, two = validate([many], processes=1), validate([many], processes=2, progress=told.append)
    assert predicted(one) == predicted(two)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_a_group_without_an_anchor_is_predicted_from_its_description(
    known: MeasurementSet,
) -> None:
    """Nothing is fitted for it, it is listed, and its rows are as the scenario says."""
    rows = tuple(replace(row, anchor=False, split=Split.TEST) for row in known.rows)
    found = validate([replace(known, rows=rows)], processes=1)
    assert set(found.unfitted.values()) == {"no anchor"}
    assert found.constants == {}
    plain = predict(load_scenario(BASE, overrides=("input.workers=2",)))
    assert predicted(found)["slow-2", STEP] == plain.timing.step_time.mean


def test_mistakes_of_scenarios_are_told_with_their_rows(known: MeasurementSet) -> None:
    """Every mistake once, with the first row that has it and how many more do."""
    rows = tuple(
        replace(row, overrides=(*row.overrides, "hardware.machine=node/dgx-a10"))
        for row in known.rows
    )
    bad = replace(rows[0], id="bad", overrides=("input.workers=1", "train.copies=3"))
    with pytest.raises(InputError) as caught:
        validate([replace(known, fit=(), rows=(*rows, bad))], processes=1)
    told = [str(problem) for problem in caught.value.problems]
    assert len(told) == 2
    assert told[0].startswith("mine, row slow-1 and 7 more: hardware.machine: there is no machine")
    assert told[1].startswith("mine, row bad: train.copies:")
