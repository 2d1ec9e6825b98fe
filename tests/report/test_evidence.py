"""Faces of a validation: golden text, JSON with the agreed keys, HTML that loads nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.evidence import steps, validated

from simulator.report.document import Format, render
from simulator.report.evidence import accuracy_page, document
from simulator.report.html.evidence import as_html
from simulator.report.plot import Dots, predicted_against_measured
from simulator.report.text import WIDTH
from simulator.schema.measurement import Baseline
from simulator.validation.validate import Validated

FAMILY_KEYS = (
    *("name", "split", "rows", "excluded", "median_abs_error", "mean_abs_error", "p90_abs_error"),
    *("max_abs_error", "bias", "rank_correlation", "interval_coverage", "interval_score"),
    "baseline_mean_abs_error",
)
ROW_KEYS = ("id", "family", "split", "metric", "predicted", "p10", "p90", "measured")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Validated:
    """The made-up validation."""
    return validated(monkeypatch)


def test_the_table_reads_as_it_should(found: Validated, golden: Callable[[str, str], None]) -> None:
    """The whole report of two families is the committed text."""
    golden("validate-made-up", render(document(found, worst=3), Format.TABLE) + "\n")


def test_the_table_keeps_to_its_width(found: Validated) -> None:
    """No line is wider than a report."""
    assert max(len(line) for line in render(document(found), Format.TABLE).splitlines()) <= WIDTH


def test_markdown_reads_as_it_should(found: Validated, golden: Callable[[str, str], None]) -> None:
    """The document of the same families is the committed text."""
    golden("accuracy-made-up", accuracy_page(found))


def test_json_has_the_agreed_keys(found: Validated) -> None:
    """Families and rows with every agreed key, errors as fractions, rows left out with reasons."""
    tree = json.loads(render(document(found), Format.JSON))
    assert all(set(FAMILY_KEYS) <= set(family) for family in tree["families"])
    assert all(set(ROW_KEYS) <= set(row) for row in tree["rows"])
    small = next(f for f in tree["families"] if (f["name"], f["split"]) == ("small", "test"))
    assert (small["rows"], small["excluded"]) == (2, 0)
    assert small["mean_abs_error"] == pytest.approx(0.05)
    row = next(r for r in tree["rows"] if r["id"] == "b2" and r["metric"] == "step_time_s.mean")
    assert (row["measured"], row["predicted"], row["p10"]) == (0.2, 0.19, None)
    assert [(left["id"], left["reason"]) for left in tree["excluded"]] == [
        ("b4", "the disk was full")
    ]
    assert tree["over_tolerance"] is True
    assert tree["uncalibrated"] == [{"set": "steps", "group": ["m2"], "reason": "no anchor"}]


def test_a_report_of_nothing_but_excluded_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Families without a predicted row stand there, with what was left out."""
    one = steps()
    rows = tuple(replace(row, excluded="not now") for row in one.rows)
    found = validated(monkeypatch, replace(one, rows=rows, baseline=Baseline.LINEAR), {})
    assert "6 rows: not now" in render(document(found), Format.TABLE)
    assert {f["rows"] for f in json.loads(render(document(found), Format.JSON))["families"]} == {0}
    assert "not now" in as_html(found)


class Loads(HTMLParser):
    """Collects what a page would load, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links to elsewhere."""
        self.tags.append(tag)
        self.loaded += [v or "" for k, v in attrs if k in {"src", "href"} and "#" not in (v or "")]
        self.loaded += [v for k, v in attrs if k == "xlink:href" and v and not v.startswith("#")]


def test_html_is_one_file_with_plots(found: Validated) -> None:
    """Nothing is loaded from elsewhere; each metric has a plot for each split with rows."""
    page = Loads()
    page.feed(as_html(found))
    assert page.loaded == []
    assert page.tags.count("svg") == 4
    assert "mean error 15%, tolerance 5%" in as_html(found)


def test_html_escapes_what_users_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of rows, families and reasons are text, whatever they hold."""
    one = steps()
    nasty = '<img src=x onerror="alert(1)">$x$&'
    rows = tuple(replace(row, family=nasty, excluded=row.excluded and nasty) for row in one.rows)
    text = as_html(validated(monkeypatch, replace(one, rows=rows, title=nasty, tolerance=())))
    page = Loads()
    page.feed(text)
    assert "img" not in page.tags
    assert "&lt;img src=x" in text


def test_plots_have_axes_with_units_and_a_legend() -> None:
    """Both axes say what they show and in what; each group is named; the same data, same bytes."""
    groups = {
        "one": Dots(measured=[1.0, 2.0], predicted=[1.1, 1.9], low=[1.0, 1.5], high=[1.2, 2.3]),
        "other": Dots(measured=[4.0], predicted=[4.0]),
    }
    svg = predicted_against_measured(groups, "step_time_s.mean", "s")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    for wanted in ("measured step_time_s.mean [s]", "predicted step_time_s.mean [s]", "one"):
        assert wanted in texts
    assert 'aria-label="predicted against measured step_time_s.mean, 3 rows"' in svg
    assert svg == predicted_against_measured(groups, "step_time_s.mean", "s")


def test_a_plot_of_shares_is_linear_and_holds_zero() -> None:
    """Zero has no place on a logarithmic axis."""
    dots = {"a": Dots(measured=[0.0, 0.9], predicted=[0.1, 0.8])}
    svg = predicted_against_measured(dots, "accelerator_utilization", "", logarithmic=False)
    assert "measured accelerator_utilization" in svg
    assert "NaN" not in svg.replace("aria", "")
