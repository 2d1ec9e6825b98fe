"""Recorded calls: what is shown of a number is what made it, in every shipped scenario."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.catalogue import each
from support.stages import sampled

from simulator.physics.footprint import host_ram, memory_fit
from simulator.pipeline.program import CHECKPOINTING, demand_table
from simulator.pipeline.stages.base import Demand, Phase, ask
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.prediction.explain import document
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.schema.training import Schedule
from simulator.terms import excess_of, product_of, quotient_of, stated, sum_of, term

SCENARIOS = sorted(p.stem for p in (Path(__file__).parents[1] / "scenarios").glob("*.toml"))
HOMES = ("simulator.equations.{}", "simulator.{}")


def demands(scenario: Scenario) -> Iterator[Demand]:
    """All demands of a scenario: of its batches with cold and warm caches, and of checkpoints."""
    for phase in Phase:
        for table in (demand_table(scenario, phase), ask(CHECKPOINTING, scenario, phase)):
            yield from (demand for stage in table for demand in stage.demands)


@each("name", SCENARIOS)
def test_every_demand_is_the_value_of_its_term(name: str) -> None:
    """Amount or latency is what the recorded equation gave, and gives again."""
    for demand in demands(load_scenario(name)):
        assert demand.term is not None
        assert demand.term.value in {demand.amount, demand.latency}
        assert demand.delay is None or demand.delay.value == demand.latency
        made = [*demand.term.within(), *(demand.delay.within() if demand.delay else ())]
        for one in made:
            np.testing.assert_allclose(one.again(), one.value, rtol=1e-12)


@each("name", SCENARIOS)
def test_every_item_of_memory_is_the_value_of_its_term(name: str) -> None:
    """Each item of host RAM and of a device, and nothing else, has an equation that gives it."""
    scenario = load_scenario(name)
    for fit in filter(None, (host_ram(scenario), memory_fit(scenario))):
        assert fit.terms.keys() == fit.items.keys()
        for item, one in fit.terms.items():
            assert fit.items[item] == one.value
            for part in one.within():
                np.testing.assert_allclose(part.again(), part.value, rtol=1e-12)


@pytest.mark.parametrize("name", ["resnet50-imagenet-p4d", "preprocess-beforehand"])
def test_every_figure_of_the_bill_is_the_value_of_its_term(name: str) -> None:
    """Rent, a step, the run and its energy; stored data is part of what the run costs."""
    cost = predict(load_scenario(name), intervals=False).cost
    assert {"per_second", "per_step", "for_machines"} <= cost.terms.keys()
    for figure, one in cost.terms.items():
        assert getattr(cost, figure) == one.value
        assert one.again() == one.value


def function(name: str) -> Any:
    """The function that a shown name means."""
    module, _, own = name.partition(".")
    for home in HOMES:
        try:
            return getattr(importlib.import_module(home.format(module)), own)
        except ModuleNotFoundError:
            continue
    raise AssertionError(name)


def arithmetic(name: str) -> Callable[..., float] | None:
    """What a shown sum, product or quotient of names means; None for an equation's name."""

    def worked_out(**operands: float) -> float:
        formula = name.replace(" x ", " * ")
        return float(eval(formula, {"__builtins__": {}, "max": max}, operands))  # noqa: S307

    return None if re.fullmatch(r"[a-z_0-9]+\.[a-z_0-9]+", name) else worked_out


def given(value: Any) -> Any:
    """An input as it is shown, as what its equation takes."""
    if not isinstance(value, str):
        return value
    if value in set(Schedule):
        return Schedule(value)
    return tuple(float(one) for one in value.split())


def recomputed(name: str, of: str, rows: list[dict[str, Any]]) -> float:
    """What the equation of that name gives of the inputs shown as its own; theirs first."""
    equation = arithmetic(name) or function(name)
    whole = {"stages", "chunks"} if name.startswith("schedule.") else set()
    inputs = {}
    for row in (row for row in rows if row["of"] == of):
        value = given(row["value"])
        below = f"{of}: {row['name']}"
        if any(other["of"] == below for other in rows):
            assert recomputed(row["source"], below, rows) == pytest.approx(value, rel=1e-9)
        inputs[row["name"]] = int(value) if row["name"] in whole else value
    return float(equation(**inputs))


@cache
def predicted(name: str) -> Prediction:
    """A shipped scenario's prediction, the same for all its metrics."""
    return predict(load_scenario(name), intervals=False)


@pytest.mark.parametrize("metric", ["step_time_s", "gpu_memory_bytes", "host_ram_bytes", "cost"])
@each("name", sampled(SCENARIOS, 4))
def test_what_is_shown_gives_what_is_shown(name: str, metric: str) -> None:
    """Each demand, item and price of `plan explain --json` comes out of what stands under it."""
    shown = json.loads(render(document(predicted(name), metric), Format.JSON))["terms"]
    rows = [row for row in shown if row["kind"] in {"demand", "latency", "item", "input"}]
    starts = [number for number, row in enumerate(rows) if row["kind"] != "input"]
    for start, end in pairwise([*starts, len(rows)]):
        row, below = rows[start], rows[start + 1 : end]
        of = f"{row['of']}: {row['name']}{' latency' if row['kind'] == 'latency' else ''}"
        found = recomputed(row["source"], of, below)
        assert found == pytest.approx(row["value"], rel=1e-9), row


def test_a_term_keeps_what_it_was_given() -> None:
    """Terms given to an equation count as their values and stay to be shown."""

    def twice(amount: float) -> float:
        return 2.0 * amount

    inner = term(twice, amount=3.0)
    outer = term(twice, amount=inner)
    assert (outer.value, outer.again(), dict(outer.inputs)) == (12.0, 12.0, {"amount": inner})
    assert list(outer.within()) == [outer, inner]
    assert outer.name == "test_terms.twice"


def test_arithmetic_is_written_with_the_names_of_its_operands() -> None:
    """Sums, products, quotients and excesses need no equation, and can be worked out again."""
    parts = sum_of(update=product_of(update=0.5, slowness=2.0), launches=stated(launches=0.25))
    whole = quotient_of(parts=parts, calibration=2.5)
    assert [one.name for one in whole.within()] == [
        "parts / calibration",
        "update + launches",
        "update x slowness",
        "launches",
    ]
    assert whole.value == whole.again() == 0.5
    assert excess_of(needed=whole, counted=0.375).value == 0.125
    assert excess_of(needed=whole, counted=0.375).name == "max(needed - counted, 0)"


def test_a_schedule_that_is_played_names_no_closed_form() -> None:
    """Zero-bubble schedules have none; what is shown gives what is shown."""
    scenario = load_scenario("turing-nlg-530b", overrides=["parallelism.schedule=zero-bubble"])
    found = [d.term for d in demands(scenario) if d.term and "bubble" in d.term.name]
    assert {one.name for one in found} == {"schedule.simulated_bubble"}
    assert all(one.again() == one.value > 0.0 for one in found)
