"""The HTML page of a prediction shows that prediction, and nothing that is not escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from itertools import pairwise

import pytest

from simulator.files.scenario import load_scenario
from simulator.predict import predict
from simulator.report.page.bars import stack, waterfall
from simulator.report.page.prediction import as_page
from simulator.report.page.timeline import timeline
from simulator.report.verdict import verdict
from simulator.results import Prediction, Slice, Trace

SCENARIO = "resnet18-imagenet-hidden"


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    """A quick one, with its trace."""
    return predict(load_scenario(SCENARIO), trace=True)


def test_the_verdict_comes_first(prediction: Prediction) -> None:
    """The sentence of the terminal report, before any drawing."""
    page = unescape(as_page(prediction))
    assert 0 < page.index(verdict(prediction)) < page.index("<svg")


def test_nothing_is_loaded_from_elsewhere(prediction: Prediction) -> None:
    """No link, script, font or picture from a server."""
    page = as_page(prediction)
    assert not re.search(r"(?:src|href)\s*=", page)
    assert "default-src 'none'" in page


def test_hostile_names_are_text(prediction: Prediction) -> None:
    """A script in a name is shown, not run."""
    evil = "<script>alert(1)</script>"
    scenario = replace(prediction.scenario, name=evil, title=evil)
    page = as_page(replace(prediction, scenario=scenario, warnings=(evil,)))
    assert evil not in page
    assert page.count("&lt;script&gt;alert(1)") >= 3


def test_the_page_follows_the_input() -> None:
    """Slower work gives another verdict, another waterfall and other figures."""
    quick = predict(load_scenario(SCENARIO), doubts=False)
    slow = predict(load_scenario(SCENARIO, overrides=("input.decode=500 ms",)), doubts=False)
    pages = [as_page(quick), as_page(slow)]
    found = [re.search(r'id="verdict">(.*?)</p>', page, re.DOTALL) for page in pages]
    texts = [match.group(1) for match in found if match]
    assert len(set(texts)) == 2
    drawn = [re.findall(r'<rect class="t\d".*?width="([\d.]+)"', page) for page in pages]
    assert drawn[0] != drawn[1]


def test_the_waterfall_adds_up(prediction: Prediction) -> None:
    """Each part begins where the one before it ends, the last one at the whole."""
    drawn = waterfall(prediction)
    for one, after in pairwise(drawn):
        assert after.start == pytest.approx(one.start + one.length, abs=1e-4)
    assert drawn[-1].start + drawn[-1].length == pytest.approx(1.0, abs=1e-4)


def test_a_memory_that_is_too_small_ends_before_the_stack(prediction: Prediction) -> None:
    """The mark of the capacity lies inside the drawing."""
    ram = replace(prediction.host_ram, capacity=prediction.host_ram.total / 2.0)
    drawn = stack("RAM", ram)
    assert drawn.capacity == pytest.approx(0.5)
    assert sum(bar.length for bar in drawn.bars) == pytest.approx(1.0)


def test_the_timeline_shows_steps_like_the_mean() -> None:
    """A window whose steps have the mean of all is chosen: here five quick ones and a slow one."""
    steps = [1.0, 1.0, 1.0, 1.0, 1.0, 7.0] * 6
    slices = tuple(
        Slice(track="rank 0 compute", name="forward", start=float(i), length=0.5, step=i)
        for i in range(72)
    )
    drawn = timeline(Trace(slices=slices, start=0.0, end=72.0), steps, mean=2.0)
    assert drawn is not None
    assert "12 s in all" in drawn.title
    assert [len(lane.pieces) for lane in drawn.lanes] == [12]
    assert timeline(Trace(), [], mean=1.0) is None


def test_the_timeline_stays_where_the_trace_is() -> None:
    """Of a long run only the beginning is traced; the steps that are shown lie in it."""
    slices = tuple(
        Slice(track="gpu 0", name="forward", start=2.0 * step, length=1.0, step=step)
        for step in range(20)
    )
    drawn = timeline(Trace(slices=slices, start=0.0, end=38.0), [2.0] * 200, mean=2.0)
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes] == ["gpu 0"]
    assert len(drawn.lanes[0].pieces) >= 6
