"""Series predicted as if no one had measured them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.measured.measurement_set import load_set
from simulator.report.document import Format, render
from simulator.report.unseen import document, page
from simulator.validation.unseen import REFITTED_KERNELS, LeftOut, leave_out
from simulator.validation.validate import EVERY_FAMILY


@pytest.fixture(scope="module")
def found() -> LeftOut:
    """A few rows of two series and of a set that rests on its own anchors."""
    whole = load_set("llm_training")
    wanted = {"titan": 4, "kort5": 2}
    rows = [
        row
        for series, count in wanted.items()
        for row in [
            r for r in whole.rows if r.labels["series"] == series and not r.excluded and r.measured
        ][:count]
    ]
    few = replace(whole, rows=tuple(rows))
    return leave_out([few, load_set("dlio_small_machine")], processes=1)


def test_other_figures_predict_a_series_that_was_fitted_to(found: LeftOut) -> None:
    """A series that figures were fitted to is predicted otherwise, one that was not the same."""
    by = {(one.name, one.metric): one for one in found.families}
    titan, kort = (by[name, "step_time_s.mean"] for name in ("titan", "kort5"))
    assert titan.by == REFITTED_KERNELS
    assert titan.unseen.median != titan.seen.median
    assert kort.unseen.median == kort.seen.median


def test_unseen_intervals_are_wider(found: LeftOut) -> None:
    """What was not seen is known less well: its intervals are wider than those of a seen job."""
    figures = [one for one in found.judged if one.metric == "step_time_s.mean"]
    assert figures
    for one in figures:
        assert one.point.p90 / one.point.p10 > 1.15


def test_a_set_on_its_own_anchors_says_so(found: LeftOut) -> None:
    """Where a row's own anchors set its level, nothing is claimed of unseen ones."""
    assert set(found.resting) == {"dlio_small_machine"}
    assert "calibration.cpu" in found.resting["dlio_small_machine"]
    assert {one.set for one in found.families} == {"llm_training"}


def test_every_report_names_the_series(found: LeftOut) -> None:
    """Text, JSON, table and page hold the families, and the page the worst misses."""
    answer = document(found, 2)
    texts = (render(answer, Format.TABLE), render(answer, Format.JSON), page(found))
    assert all("titan" in text and "kort5" in text for text in texts)
    assert "misses, one of each series and metric, and why" in texts[2]
    assert len(answer.table().rows) == len(found.families)


def test_anchored_sets_take_the_constants_of_other_makers() -> None:
    """A submitter's runs are predicted by what was fitted to the other submitters' runs."""
    whole = load_set("mlperf_storage")
    rows = [r for r in whole.rows if r.family == "resnet50" and not r.excluded]
    rows = [r for r in rows if r.labels["submitter"] in {"WEKA", "Lightbits_Labs"}]
    found = leave_out([replace(whole, rows=tuple(rows))], processes=1)
    total = next(one for one in found.families if one.name == EVERY_FAMILY)
    assert total.by == "constants of other submitters"
    assert total.unseen.rows == sum(not row.anchor for row in rows)
    assert total.unseen.median != total.seen.median
