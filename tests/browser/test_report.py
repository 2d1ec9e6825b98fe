"""The report of a scenario in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.browsing import complaints, requested, sideways, smallest_text

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.html.prediction import as_page
from simulator.report.prediction.verdict import verdict
from simulator.results.prediction import Prediction
from simulator.units import SECOND, parse

pytestmark = pytest.mark.slow

Show = Callable[..., Any]


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    """A quick one with a timeline."""
    return predict(load_scenario("resnet18-imagenet-hidden"), trace=True)


def test_it_opens_without_complaint(show: Show, prediction: Prediction) -> None:
    """No console error, no request, and the verdict is to be seen."""
    browser = show(as_page(prediction))
    assert complaints(browser) == []
    assert requested(browser) == []
    shown = browser.find_element("id", "verdict")
    assert shown.is_displayed()
    assert shown.text == verdict(prediction)


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)]
)
def test_nothing_runs_off_the_page(
    show: Show,
    prediction: Prediction,
    width: int,
    dark: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Light and dark, wide and on a phone: all of it fits the window, with readable text."""
    browser = show(as_page(prediction), width=width, dark=dark)
    assert sideways(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert smallest_text(browser) >= 10.0
    back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in back.removeprefix("rgb(").rstrip(")").split(",")]
    assert (max(channels) < 100) is dark


def test_the_pointer_tells_more(show: Show, prediction: Prediction) -> None:
    """Over a bar of the waterfall its part and time appear; off it they go."""
    action_chains = pytest.importorskip("selenium.webdriver").ActionChains
    browser = show(as_page(prediction))
    hint = browser.find_element("id", "hint")
    assert not hint.is_displayed()
    bar = browser.find_element("css selector", ".bars li[data-hint]")
    action_chains(browser).move_to_element(bar).perform()
    assert hint.is_displayed()
    assert hint.text == bar.get_attribute("data-hint")
    action_chains(browser).move_to_element(browser.find_element("tag name", "h1")).perform()
    assert not hint.is_displayed()


def test_the_timeline_zooms(show: Show, prediction: Prediction) -> None:
    """Zooming in shows half as much, all shows all again."""
    browser = show(as_page(prediction))
    drawn = browser.find_element("css selector", "svg.zoomed")

    def part() -> float:
        box = browser.execute_script("return arguments[0].getAttribute('viewBox')", drawn)
        return float(box.split()[2])

    def shown_seconds() -> float:
        """From the first to the last mark of the axis [s]."""
        marks = browser.find_elements("css selector", ".ticks span")
        first, last = (parse(mark.text, SECOND) for mark in (marks[0], marks[-1]))
        return last - first

    whole, length = part(), shown_seconds()
    for mark, share in (("in", 0.5), ("in", 0.25), ("out", 0.5), ("all", 1.0)):
        button = browser.find_element("css selector", f"button[data-{mark}]")
        browser.execute_script("arguments[0].click()", button)
        assert part() == pytest.approx(share * whole)
        assert shown_seconds() == pytest.approx(share * length, rel=0.01)


def test_long_names_fit(show: Show, prediction: Prediction) -> None:
    """A name of hundreds of letters is broken, not cut, and pushes nothing off the page."""
    name = "x" * 300
    scenario = replace(prediction.scenario, name=name, title=f"{name} {name}")
    browser = show(as_page(replace(prediction, scenario=scenario, warnings=(name,))), width=390)
    assert browser.find_element("tag name", "h1").text == name
    assert sideways(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_a_script_in_a_name_does_not_run(show: Show, prediction: Prediction) -> None:
    """It is shown as the text it is."""
    evil = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    scenario = replace(prediction.scenario, name=evil, title=evil)
    browser = show(as_page(replace(prediction, scenario=scenario, warnings=(evil,))))
    assert browser.title != "owned"
    assert evil in browser.find_element("tag name", "h1").text
    assert requested(browser) == []
