"""The rules about changes: what they compare is told, exceptions are listed, and they can fail."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.invariants import INTERVAL_INVARIANTS, INVARIANTS
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from tests.support import rules
from tests.support.campaign import of_seed, of_shipped
from tests.support.generated import generated
from tests.support.rules import EXCEPTIONS, RULES, Job

TEXT = """
schema = 1
[hardware]
machine = "instance/aws/g4dn.xlarge"
storage = "storage/s3"
[data]
samples = 1_000
bytes_per_sample = "110 kB"
cache = "preloaded"
[input]
workers = 2
decode = "1 ms"
[model]
step_time = "50 ms"
[train]
batch_size = 32
precision = "fp32"
"""


def after(change: Callable[[Prediction], Prediction]) -> Callable[..., Prediction]:
    """Predictions that are tampered with where the scenario is not the job as it stands."""
    plain = rules.predicted

    def predicted(scenario: Scenario, seed: int = 0) -> Prediction:
        return change(plain(scenario, seed))

    return predicted


def longer(prediction: Prediction) -> Prediction:
    """Three times the time, and as much waiting."""
    timing = prediction.timing
    total = 3.0 * timing.total_time
    step = replace(timing.step_time, mean=3.0 * timing.step_time.mean)
    stall = replace(timing.split, data_stall=timing.step_time.mean)
    return replace(
        prediction, timing=replace(timing, total_time=total, step_time=step, split=stall)
    )


def test_a_sound_job_breaks_no_rule() -> None:
    """Every rule compares something, and nothing breaks."""
    job = Job.of(TEXT)
    for rule in RULES:
        told = list(rule.compared(job, None))
        assert told, rule.name
        assert set(told) == {None}, rule.name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_can_fail(rule: rules.Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prediction after the change that is three times as long is told."""
    job = Job.of(TEXT)
    monkeypatch.setattr(rules, "predicted", after(longer))
    assert any(rule.compared(job, random.Random(1)))  # noqa: S311 - reproducible, not secret


def test_docs_list_rules_and_exceptions(root: Path) -> None:
    """docs/invariants.md has a row for every rule, and for every exception with its reason."""
    page = " ".join((root / "docs" / "invariants.md").read_text(encoding="utf-8").split())
    for rule in RULES:
        assert f"| {rule.name} |" in page
    for one in EXCEPTIONS:
        assert f"| {one.rule} | {one.case} | {one.reason} |" in page


def test_docs_list_the_laws(root: Path) -> None:
    """docs/invariants.md has a row for every invariant, under its name."""
    page = (root / "docs" / "invariants.md").read_text(encoding="utf-8")
    for invariant in (*INVARIANTS, *INTERVAL_INVARIANTS):
        assert f"| {invariant.name} |" in page


def test_a_seed_gives_the_same_scenario() -> None:
    """And another seed another one."""
    assert generated(3) == generated(3)
    assert generated(3) != generated(4)


@pytest.mark.slow
def test_records_say_what_was_compared() -> None:
    """A generated scenario and a shipped one: predicted, with comparisons by rule."""
    assert of_seed(0, rules=False).compared == {}
    found = of_shipped("svm-cpu-only")
    assert (found.outcome, found.broken) == ("predicted", [])
    assert found.compared[rules.MORE] > 1
