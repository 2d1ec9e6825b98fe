"""The report of a sweep in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.browsing import complaints, requested, sideways, smallest_text

from simulator.report.html.sweep import as_page
from simulator.studies.search.explore import TIME_AND_COST
from simulator.studies.search.findings import Findings, findings
from simulator.studies.search.outcome import Candidate, Outcome, Status

pytestmark = pytest.mark.slow

Show = Callable[..., Any]


@pytest.fixture
def found() -> Findings:
    """Twelve candidates over two keys; fast ones are dear."""
    outcomes = []
    for index in range(12):
        workers, batch = 1 + index % 4, 16 * (1 + index // 4)
        figures = {
            "total_time_s": 3600.0 / workers + batch,
            "cost.usd_to_train": 10.0 * workers + batch / 16.0,
        }
        settings = {"input.workers": workers, "train.batch_size": batch}
        candidate = Candidate(index=index, settings=settings)
        outcomes.append(Outcome(candidate=candidate, status=Status.PREDICTED, figures=figures))
    return findings(outcomes, TIME_AND_COST)


@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_complaint(show: Show, found: Findings, width: int) -> None:
    """No console error, no request, nothing beyond the window; the best is to be seen."""
    browser = show(as_page(found, "mine"), width=width)
    assert complaints(browser) == []
    assert requested(browser) == []
    assert browser.find_element("id", "verdict").is_displayed()
    assert sideways(browser) == []
    assert smallest_text(browser) >= 10.0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_scale_is_read_without_colours(show: Show, found: Findings) -> None:
    """Each colour of the map has its range of values beside it, the best and the worst named."""
    browser = show(as_page(found, "mine"), width=390)
    keys = [key.text for key in browser.find_elements("css selector", ".scale li")]
    assert keys[0] == "run time:"
    assert keys[1].endswith(" min, the best")
    assert keys[-1].endswith(", the worst")


@pytest.mark.parametrize("mark", ["circle.t1", "rect.shade0"])
def test_the_pointer_tells_which_it_is(show: Show, found: Findings, mark: str) -> None:
    """Over a point of the front, and over a place of the map, its settings appear."""
    action_chains = pytest.importorskip("selenium.webdriver").ActionChains
    browser = show(as_page(found, "mine"))
    place = browser.find_element("css selector", mark)
    action_chains(browser).scroll_to_element(place).move_to_element(place).perform()
    hint = browser.find_element("id", "hint")
    assert hint.is_displayed()
    assert "batch 16: run time " in hint.text
    assert hint.text == place.get_attribute("data-hint")
