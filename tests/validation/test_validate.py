"""Validation: families, splits, tolerances and uncertainties, from predictions given by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.evidence import PREDICTED, forecast, steps, validated

from simulator.report.document import Format, render
from simulator.report.evidence import accuracy_page, as_object, document
from simulator.schema.measurement import Split
from simulator.validation.forecast import Forecast
from simulator.validation.validate import EVERY_FAMILY, Family, Validated


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Validated:
    """The made-up validation."""
    return validated(monkeypatch)


@pytest.fixture
def family(found: Validated) -> Callable[[str, Split, str], Family]:
    """Look up a family."""

    def look(name: str, split: Split, metric: str = "step_time_s.mean") -> Family:
        every = (*found.families, *found.totals)
        return next(f for f in every if (f.name, f.split, f.metric) == (name, split, metric))

    return look


Look = Callable[..., Family]


def test_families_are_scored_by_split(family: Look) -> None:
    """Test rows of 'small' are +4% and -6%; the anchor is counted under fit."""
    tested = family("small", Split.TEST).score
    fitted = family("small", Split.FIT).score
    assert (tested.rows, fitted.rows) == (2, 1)
    assert tested.mean == pytest.approx(0.05)
    assert tested.bias == pytest.approx(-0.01)
    assert fitted.mean == pytest.approx(0.0)


def test_totals_are_over_all_families(family: Look) -> None:
    """The three test rows of both families together: 4%, 6% and 15%."""
    total = family(EVERY_FAMILY, Split.TEST).score
    assert total.rows == 3
    assert total.mean == pytest.approx(0.25 / 3)
    assert total.largest == pytest.approx(0.15)


def test_a_row_is_counted_only_where_it_was_measured(family: Look) -> None:
    """a4 has no measured utilization."""
    assert family("small", Split.TEST, "accelerator_utilization").score.rows == 1


def test_intervals_are_scored_where_there_are_any(family: Look) -> None:
    """a2 lies within its 10%, a4 beyond its 2%; b2 has no interval."""
    assert family("small", Split.TEST).score.coverage == 0.5
    assert family("large", Split.FIT).score.coverage is None


def test_excluded_rows_are_listed_with_their_reason(found: Validated, family: Look) -> None:
    """b4 counts as left out of its family and split, and its reason is kept."""
    assert [(left.id, left.reason) for left in found.left] == [("b4", "the disk was full")]
    assert family("large", Split.TEST).excluded == 1
    assert family("small", Split.TEST).excluded == 0


def test_over_tolerance(found: Validated, family: Look) -> None:
    """15% in 'large' is over 5%, 5% in 'small' is not; totals have tolerances of their own."""
    assert family("small", Split.TEST).over == ()
    assert family("large", Split.TEST).over == ("mean error 15%, tolerance 5%",)
    assert family(EVERY_FAMILY, Split.TEST).over == ()
    assert family(EVERY_FAMILY, Split.TEST, "accelerator_utilization").tolerances
    assert [f.name for f in found.over] == ["large"]


def test_fit_rows_are_never_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """However wrong a fit row is, no tolerance is exceeded by it."""
    known = {row: forecast(row) for row in PREDICTED}
    known["b1"] = replace(known["b1"], figures={"step_time_s.mean": 0.4})
    known["b2"] = replace(known["b2"], figures={"step_time_s.mean": 0.9})
    assert validated(monkeypatch, forecasts=known).over == ()


def test_a_tolerance_of_its_own_replaces_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of a family holds instead of what is said of all."""
    one = steps()
    own = replace(one.tolerance[0], family="large", mean=0.2)
    assert validated(monkeypatch, replace(one, tolerance=(*one.tolerance, own))).over == ()


def test_a_row_that_cannot_be_predicted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model refuses, and a metric the scenario doesn't have, are reasons."""
    known = {row: forecast(row) for row in PREDICTED}
    known["a2"] = Forecast(refused="pipelines of convolutional networks")
    known["a4"] = replace(known["a4"], figures={})
    found = validated(monkeypatch, forecasts=known)
    reasons = {left.id: left.reason for left in found.left}
    assert reasons["a2"] == "not modelled: pipelines of convolutional networks"
    assert reasons["a4"] == "step_time_s.mean does not apply to its scenario"
    small = [f for f in found.families if (f.name, f.split) == ("small", Split.TEST)]
    assert [(f.score, f.excluded, f.over) for f in small] == [(None, 2, ())]


def test_groups_without_an_anchor_are_listed(found: Validated) -> None:
    """What was fitted for m1 is kept; m2 was predicted from its description."""
    assert found.constants == {("steps", ("m1",)): ("input.decode=4.2 ms",)}
    assert found.unfitted == {("steps", ("m2",)): "no anchor"}


def test_a_slip_of_units_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliseconds instead of seconds are a factor of a thousand, and said so row by row."""
    one = steps()
    rows = tuple(
        replace(row, measured={"step_time_s.mean": 1000 * row.measured["step_time_s.mean"]})
        if row.id.startswith("a")
        else row
        for row in one.rows
    )
    found = validated(monkeypatch, replace(one, rows=rows))
    assert len(found.warnings) == 3
    assert found.warnings[0] == (
        "steps, row a1: measured.step_time_s.mean is 200, 0.2 is predicted: a factor of 1,000. "
        "Is it in s?"
    )


def test_sound_figures_are_not_doubted(found: Validated) -> None:
    """Errors of some per cent raise no uncertainty."""
    assert found.warnings == ()


def test_one_constant_width_is_fitted_on_fit_rows(family: Look) -> None:
    """The rival of our intervals has the width that a1 and b2 want (5.3%), not the test rows."""
    wide = 0.2 / 0.19 - 1.0
    measured = {"a2": (0.104, 0.1), "a4": (0.047, 0.05)}
    expected = 0.0
    for predicted, real in measured.values():
        half = wide * predicted
        missed = max(0.0, abs(real - predicted) - half)
        expected += (2 * half + 10 * missed) / real / 2
    assert family("small", Split.TEST).constant_width_score == pytest.approx(expected)


def test_regimes_are_scored_beside_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row counts in each regime it lies in, and in none where it has none; nothing is judged."""
    lie = {"a2": "narrow; long", "a4": "narrow", "b1": "long"}
    rows = tuple(replace(r, labels={**r.labels, "regime": lie.get(r.id, "")}) for r in steps().rows)
    found = validated(monkeypatch, replace(steps(), rows=rows, regime="regime"))
    means = {
        family.name: family.score.mean
        for family in found.regimes
        if family.metric == "step_time_s.mean" and family.score is not None
    }
    assert means == pytest.approx({"long": (0.04 + 0.15) / 2, "narrow": (0.04 + 0.06) / 2})
    assert all(f.split is Split.TEST and not f.tolerances for f in found.regimes)
    text, page = render(document(found), Format.TABLE), accuracy_page(found)
    assert "by regime; a row may be in several" in text
    assert "| narrow | test | 2 |" in page
    assert {one["name"] for one in as_object(found)["regimes"]} == {"long", "narrow"}
    assert validated(monkeypatch).regimes == ()
