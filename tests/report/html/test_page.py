"""The HTML page of a prediction shows that prediction, and nothing that is not escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from itertools import accumulate, pairwise

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.html.charts import COLOURS, busy, idle, stack, waterfall
from simulator.report.html.page import Made
from simulator.report.html.prediction import as_page
from simulator.report.html.timeline import timeline
from simulator.report.prediction.verdict import verdict
from simulator.results.prediction import Prediction, Slice, Trace

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
    quick = predict(load_scenario(SCENARIO), intervals=False)
    slow = predict(load_scenario(SCENARIO, overrides=("input.decode=500 ms",)), intervals=False)
    pages = [as_page(quick), as_page(slow)]
    found = [re.search(r'id="verdict">(.*?)</p>', page, re.DOTALL) for page in pages]
    texts = [match.group(1) for match in found if match]
    assert len(set(texts)) == 2
    drawn = [re.findall(r'<rect class="t\d".*?width="([\d.]+)%"', page) for page in pages]
    assert drawn[0]
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
    ends = tuple(accumulate([1.0, 1.0, 1.0, 1.0, 1.0, 7.0] * 6))
    slices = tuple(
        Slice(track="rank 0 compute", name="forward", start=float(i), length=0.5, step=i)
        for i in range(72)
    )
    drawn = timeline(Trace(slices=slices, start=0.0, end=72.0, ends=ends), mean=2.0)
    assert drawn is not None
    assert "12 s in all" in drawn.title
    assert [len(lane.pieces) for lane in drawn.lanes] == [12]
    assert timeline(Trace(), mean=1.0) is None


def test_the_timeline_shows_the_first_rank_whole_and_what_others_compute() -> None:
    """Streams, then compute of the others, stages, workers; gaps for workers that nobody asks."""
    tracks = ["rank 1 worker 0", "rank 1 compute", "rank 0 worker 1", "rank 0 worker 0"]
    tracks += ["pipeline stage 1 of 8", "rank 0 pin memory", "rank 0 copy", "rank 0 compute"]
    bars = [Slice(track=track, name="forward", start=0.0, length=1.0) for track in tracks]
    idle = Slice(track="rank 0 worker 1", name="waits to be asked", start=1.0, length=1.0)
    stall = Slice(track="rank 0 compute", name="waits for data", start=1.0, length=1.0, step=3)
    drawn = timeline(Trace(slices=(*bars, idle, stall), end=2.0, ends=(2.0,)), mean=2.0)
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes] == [
        *("rank 0 compute", "rank 0 copy", "rank 0 pin memory", "rank 1 compute"),
        *("pipeline stage 1 of 8", "rank 0 worker 0", "rank 0 worker 1"),
    ]
    assert drawn.left_out == 1
    assert [(piece.hint, piece.waits) for piece in drawn.lanes[0].pieces] == [
        ("forward: 1 s", False),
        ("waits for data, step 3: 1 s", True),
    ]
    assert [len(lane.pieces) for lane in drawn.lanes[1:]] == [1] * 6
    assert {key.name: key.waits for key in drawn.keys} == {"forward": False, "waits for data": True}


def test_the_timeline_shows_the_step_whose_stages_are_known() -> None:
    """Stages of a pipeline are placed for one step, which is shown; helpers say where they are."""
    compute = tuple(
        Slice(track="rank 0 compute", name="forward", start=float(i), length=0.5, step=i)
        for i in range(20)
    )
    stage = Slice(
        track="pipeline stage 1 of 2",
        name="forward",
        start=7.0,
        length=1.0,
        step=7,
        process="pipeline",
    )
    away = Slice(
        track="rank 0 worker 3", name="decode", start=7.0, length=1.0, batch=9, process="helpers1"
    )
    ends = tuple(float(i + 1) for i in range(20))
    drawn = timeline(Trace(slices=(*compute, stage, away), end=20.0, ends=ends), mean=1.0)
    assert drawn is not None
    assert drawn.title.startswith("Step 8 of the simulated ones, 1 s")
    lanes = ["rank 0 compute", "pipeline stage 1 of 2", "helpers1: worker 3"]
    assert [lane.name for lane in drawn.lanes] == lanes


def test_every_lane_of_the_timeline_is_complete() -> None:
    """A lane with more pieces than can be drawn is drawn coarser, not cut off."""
    many = tuple(
        Slice(track="pipeline stage 1 of 2", name="forward", start=i / 1e4, length=1e-4, step=0)
        for i in range(10_000)
    )
    long = Slice(track="rank 0 compute", name="backward", start=0.0, length=1.0, step=0)
    drawn = timeline(Trace(slices=(*many, long), end=1.0, ends=(1.0,)), mean=1.0)
    assert drawn is not None
    lane = next(lane for lane in drawn.lanes if lane.name.startswith("pipeline"))
    assert len(lane.pieces) < 10_000
    assert sum(piece.length for piece in lane.pieces) == pytest.approx(1.0, abs=0.01)
    assert lane.pieces[-1].start + lane.pieces[-1].length == pytest.approx(1.0)


def test_a_lane_with_nothing_to_see_is_counted_not_drawn() -> None:
    """A copy of a microsecond in a step of a second would be an empty lane."""
    slices = (
        Slice(track="rank 0 compute", name="forward", start=0.0, length=1.0, step=0),
        Slice(track="rank 0 copy", name="h2d", start=0.0, length=1e-6, step=0),
    )
    drawn = timeline(Trace(slices=slices, end=1.0, ends=(1.0,)), mean=1.0)
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes] == ["rank 0 compute"]
    assert drawn.left_out == 1
    assert [key.name for key in drawn.keys] == ["forward"]


def test_forward_and_backward_are_apart(prediction: Prediction) -> None:
    """They have bars of their own in the step, in colours of their own."""
    bars = {bar.label: bar.tone for bar in waterfall(prediction)}
    assert {"GPU forward", "GPU backward"} <= set(bars)
    assert bars["GPU forward"] != bars["GPU backward"]


def test_what_hardly_works_is_named_in_a_line(prediction: Prediction) -> None:
    """Resources are drawn or named, none of them both, none by its key."""
    drawn = [bar.label for bar in busy(prediction)]
    named = idle(prediction)
    assert len(drawn) + named.count(",") + (1 if named else 0) == len(prediction.timing.usage)
    assert not any(label in named for label in drawn)
    assert "host_memory" not in (*drawn, named)


def test_the_smallest_items_of_a_memory_are_one(prediction: Prediction) -> None:
    """There are no more bars than colours, the largest first, and none of the memory is lost."""
    items = {f"item {i}": float(i) for i in range(1, 15)}
    drawn = stack("RAM", replace(prediction.host_ram, items=items, capacity=105.0))
    assert len(drawn.bars) == COLOURS
    assert drawn.bars[0].label == "item 14"
    assert drawn.bars[-1].label == "7 smaller items"
    assert sum(bar.length for bar in drawn.bars) == pytest.approx(1.0)


def test_the_page_says_how_it_came_to_be(prediction: Prediction) -> None:
    """Day, version, seed and command stand before the verdict, inputs in a table."""
    made = Made(date="2026-11-23", command="plan report 'a b.toml'", seed=7)
    page = unescape(as_page(prediction, made=made))
    top = page.partition('id="verdict"')[0]
    assert "2026-11-23, plan " in top
    assert "seed 7: <code>plan report 'a b.toml'</code>" in top
    asked = page.partition('id="asked"')[2].partition("<h2")[0]
    for name in ("Machine", "Data", "Input", "Model", "Rent"):
        assert f'<th scope="row">{name}</th>' in asked


def test_a_job_that_prepares_data_has_no_steps() -> None:
    """Nothing on its page is a step of training, and nothing waits for data."""
    page = as_page(predict(load_scenario("offline-preparation"), intervals=False))
    words = re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    shown = words.partition("Assumptions and sources")[0]
    assert not re.search(r"\b(steps?|waiting for data|to train)\b", shown)


def test_a_page_is_as_exact_as_its_intervals(prediction: Prediction) -> None:
    """No bound in closed form, no bill of a single step, and no list of guesses said twice."""
    page = unescape(as_page(prediction))
    names = re.findall(r'<th scope="row">(.*?)</th>', page)
    assert "throughput" in names
    assert not {"bounds", "first epoch", "1,000 samples", "step"} & set(names)
    assert "<li>rests on" not in page


def test_a_lane_that_only_waits_is_left_out() -> None:
    """A job that only reads and writes has no device whose waiting could be drawn."""
    waits = Slice(track="rank 0 compute", name="waits for data", start=0.0, length=2.0)
    reads = Slice(track="rank 0 worker 0", name="read", start=0.0, length=2.0)
    drawn = timeline(Trace(slices=(waits, reads), end=2.0, ends=(2.0,)), mean=2.0)
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes] == ["rank 0 worker 0"]
    assert [key.name for key in drawn.keys] == ["read"]
    assert drawn.left_out == 1
