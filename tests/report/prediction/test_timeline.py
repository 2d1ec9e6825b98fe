"""The Chrome trace, read back from its text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from support.chrome_trace import ChromeTrace
from support.stages import sampled

from simulator.pipeline.program import STEP
from simulator.pipeline.stages.base import Entry
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.prediction.timeline import (
    as_chrome_trace,
    counter_name,
    part_of,
    timeline_text,
)
from simulator.results.prediction import Counter, Prediction, Sample, Slice, Trace

VARIED = ("data.size_spread.shape=lognormal", "data.size_spread.relative_deviation=0.6")
SCENARIOS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "data-parallel": ("resnet50-imagenet-p4d", ()),
    "remote group": ("heterogeneous-tfdata", ("data.samples=1638400",)),
    "spread": ("gpt3-175b-megatron", ()),
    "several machines": ("two-nodes-cpu-starved", ()),
    "random": ("cpu-starved-p4d", VARIED),
    "own links": ("gpus-under-one-switch", ()),
    "object store": ("imagenet-object-store-g5", ()),
    "no accelerator": ("svm-cpu-only", ()),
}


@cache
def predicted(kind: str) -> Prediction:
    """The traced prediction of a shipped scenario."""
    name, overrides = SCENARIOS[kind]
    return predict(load_scenario(name, overrides=overrides), trace=True, intervals=False)


@cache
def read_back(kind: str) -> ChromeTrace:
    """What its file says."""
    return ChromeTrace(timeline_text(predicted(kind)))


@pytest.mark.parametrize("kind", sampled(SCENARIOS, 3))
def test_counters_are_the_utilization_of_the_report(kind: str) -> None:
    """Integrating the file's counters over the steady window gives every reported utilization.

    Checkpoints, which the reported step has a share of, are not simulated: they stretch it.
    """
    prediction, file = predicted(kind), read_back(kind)
    start, end, steps = file.window
    stretch = prediction.timing.step_time.mean / ((end - start) / steps)
    assert len(prediction.timing.usage) >= 3
    for resource, usage in prediction.timing.usage.items():
        assert file.utilization(resource) / stretch == pytest.approx(usage.mean, abs=1e-6), resource


@pytest.mark.parametrize("kind", sampled(SCENARIOS, 3))
def test_bars_of_the_compute_lane_are_the_split_of_the_step(kind: str) -> None:
    """Each part of the step is the mean of the bars with its name, and together they are all."""
    prediction, file = predicted(kind), read_back(kind)
    split, trace = prediction.timing.split, prediction.timing.trace
    assert trace is not None
    ranks = [name for name in file.processes.values() if name.startswith("rank ")]
    spent = [file.spent(rank, "compute") for rank in ranks]
    start, end, steps = file.window
    computing = {slot.label for slot in STEP if slot.entry is Entry.COMPUTE}
    parts = {
        "compute": sum(lane.get(name, 0.0) for lane in spent for name in computing),
        "data_stall": sum(lane.get("waits for data", 0.0) for lane in spent),
        "h2d": sum(lane.get("waits for copy", 0.0) for lane in spent),
        "bubble": sum(lane.get("bubble", 0.0) for lane in spent),
    }
    for name, total in parts.items():
        assert total / len(ranks) == pytest.approx(getattr(split, name), rel=1e-6, abs=1e-8), name
    whole = sum(sum(lane.values()) for lane in spent) / len(ranks)
    assert whole == pytest.approx((end - start) / steps, rel=1e-6)


@pytest.mark.parametrize("kind", ["data-parallel", "spread", "several machines"])
def test_communication_is_what_the_device_waits_for(kind: str) -> None:
    """Bars of the communication lane that the device waits beside are the exposed communication."""
    prediction, file = predicted(kind), read_back(kind)
    start, end, steps = file.window
    waits = [b for b in file.bars["rank 0", "compute"] if b.name.startswith("waits for")]
    waits = [b for b in waits if b.name.endswith(("all-reduce", "exchange", "gather"))]
    exposed = sum(
        max(0.0, min(bar.end, wait.end, end) - max(bar.start, wait.start, start))
        for bar in file.bars["rank 0", "communication"]
        for wait in waits
    )
    expected = prediction.timing.split.communication
    assert expected > 0.0
    assert exposed / steps == pytest.approx(expected, rel=1e-4)


def test_every_actor_has_its_lane() -> None:
    """Workers, receiver, copies and streams of each of eight ranks, in that order."""
    file = read_back("data-parallel")
    workers = [f"worker {number}" for number in range(12)]
    streams = ["compute", "communication", "copy", "copy back", "pin memory"]
    for rank in range(8):
        lanes = [name for process, name in file.bars if process == f"rank {rank}"]
        assert lanes == [*streams, *workers]
    made = {bar.name for bar in file.bars["rank 3", "worker 0"]}
    assert {"read", "decode", "collate"} <= made
    assert "waits to be asked" in {
        bar.name for bar in read_back("spread").bars["rank 0", "worker 0"]
    }
    assert {bar.name for bar in file.bars["rank 3", "pin memory"]} == {"receive"}


def test_remote_workers_stand_on_their_machine() -> None:
    """Workers of another group and their senders are threads of that machine."""
    file = read_back("remote group")
    assert {"data0", "data1"} <= set(file.processes.values())
    lanes = {name for process, name in file.bars if process == "data1"}
    assert any(name.startswith("rank 0 worker") and name.endswith("sender") for name in lanes)
    assert {
        bar.name for name in lanes if name.endswith("sender") for bar in file.bars["data1", name]
    } == {"send"}


@pytest.mark.parametrize("kind", sampled(SCENARIOS, 3))
def test_bars_of_a_thread_come_one_after_another(kind: str) -> None:
    """A viewer drops bars that overlap without one holding the other."""
    for bars in read_back(kind).rows.values():
        ordered = sorted(bars, key=lambda bar: bar.start)
        gaps = [b.start - a.end for a, b in pairwise(ordered)]
        assert min(gaps, default=0.0) > -1e-9


@pytest.mark.parametrize("kind", sampled(SCENARIOS, 3))
def test_steps_are_bars_and_instants(kind: str) -> None:
    """The lane of steps holds every step, and an instant at the end of each."""
    prediction, file = predicted(kind), read_back(kind)
    trace = prediction.timing.trace
    assert trace is not None
    home = next(iter(file.processes.values()))
    steps = file.bars[home, "steps"]
    assert [bar.end for bar in steps] == pytest.approx(list(trace.ends), abs=1e-8)
    assert sum(bar.args["steady"] for bar in steps) == file.window[2]
    instants = [event["ts"] / 1e6 for event in file.events if event["ph"] == "i"]
    assert instants == pytest.approx(list(trace.ends), abs=1e-8)


def test_the_file_says_what_the_report_says() -> None:
    """Scenario, version, seed, bottleneck and what lanes stand for are in the metadata."""
    about = read_back("data-parallel").about
    timing = predicted("data-parallel").timing
    assert about["scenario"] == "resnet50-imagenet-p4d"
    assert (about["seed"], about["bottleneck"]) == (0, timing.bottleneck)
    assert about["step_time_s"] == timing.step_time.mean
    assert about["lanes"]["rank 0"] == "itself"
    assert about["lanes"]["rank 5"] == "itself, which does the same as rank 0"
    assert about["steps"].startswith("all ")


def test_a_folded_rank_says_how_many_it_stands_for() -> None:
    """Of more ranks than eight without links of their own one is shown."""
    job = load_scenario("resnet50-imagenet-p4d")
    played = predict(job, trace=True, intervals=False).timing.trace
    assert played is not None
    reduction = replace(played, shown_as={0: 0}, stands_for={0: 12.0}, machines=3)
    prediction = predicted("data-parallel")
    timing = replace(prediction.timing, trace=reduction)
    about = ChromeTrace(timeline_text(replace(prediction, timing=timing))).about
    assert about["lanes"] == {
        "rank 0": "12 of 8 ranks of its machine, on each of 3 identical machines"
    }


def test_a_pipeline_shows_its_stages() -> None:
    """First, middle and last stage fill one step with their slots and bubbles."""
    file, split = read_back("spread"), predicted("spread").timing.split
    stages = {name: bars for (process, name), bars in file.bars.items() if process == "pipeline"}
    assert list(stages) == ["stage 1 of 8", "stage 5 of 8", "stage 8 of 8"]
    compute = [
        b for b in file.bars["rank 0", "compute"] if b.args["step"] == file.window[2] - 1 + 8
    ]
    passes = {"forward", "backward", "waits for exchange", "bubble"}
    length = sum(bar.length for bar in compute if bar.name in passes)
    slowest = max(
        sum(bar.length for bar in bars if bar.name != "bubble") for bars in stages.values()
    )
    for bars in stages.values():
        assert sum(bar.length for bar in bars) == pytest.approx(length, rel=1e-6)
        assert {bar.name for bar in bars} == {"forward", "backward", "bubble"}
    assert length - slowest == pytest.approx(split.bubble, rel=1e-6)


def test_a_long_trace_keeps_its_last_steady_steps() -> None:
    """What does not fit is left out from the start, step by step; utilization stays right."""
    prediction = predicted("data-parallel")
    trace = prediction.timing.trace
    assert trace is not None
    part = part_of(trace, 6000)
    kept = part.trace
    assert len(kept.slices) + len(kept.samples) <= 6000 + 2 * len(trace.counters) + 800
    assert 0 < len(kept.ends) < trace.last - trace.first
    assert kept.ends == trace.ends[part.left_out : trace.last]
    assert kept.start == trace.ends[part.left_out - 1]
    assert (kept.first, kept.last) == (0, len(kept.ends))
    assert len(part_of(trace, 1).trace.ends) == 1


def test_a_cut_file_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file names the steps it holds, and its steady window is made of them."""
    monkeypatch.setattr(part_of, "__defaults__", (6000,))
    file = ChromeTrace(timeline_text(predicted("data-parallel")))
    steps = file.window[2]
    assert file.about["steps"].startswith(
        f"{steps} of 98 simulated steps, from step {72 - steps} on"
    )
    home = next(iter(file.processes.values()))
    assert [bar.name for bar in file.bars[home, "steps"]] == [
        f"step {72 - steps + number}" for number in range(steps)
    ]


def test_a_part_of_a_trace_counts_like_the_whole() -> None:
    """Counters of a part begin with the value they had, so they integrate to the same."""
    samples = tuple(
        Sample(unit="cpu", time=time, value=value)
        for time, value in ((0.0, 0.0), (0.5, 1.0), (0.5, 0.25), (3.5, 0.75), (3.75, 0.75))
    )
    slices = tuple(Slice(track="x", name="x", start=0.5 * i, length=0.5) for i in range(8))
    whole = Trace(slices=slices, samples=samples, end=4.0, ends=(1.0, 2.0, 3.0, 4.0), last=4)
    part = part_of(whole, 5).trace
    assert part.start == 2.0
    assert [(s.time, s.value) for s in part.samples] == [(2.0, 0.25), (3.5, 0.75)]
    assert [s.start for s in part.slices] == [2.0, 2.5, 3.0, 3.5]


def test_work_that_overlaps_gets_a_second_thread(prediction: Prediction, trace: Trace) -> None:
    """Two sends of one worker at once stand on two threads of the same name."""
    sends = tuple(
        Slice(track="rank 0 sender", name="send", start=start, length=1.0, process="rank 0")
        for start in (0.0, 0.5, 1.0)
    )
    timing = replace(prediction.timing, trace=replace(trace, slices=sends))
    file = ChromeTrace(timeline_text(replace(prediction, timing=timing)))
    assert len(file.bars["rank 0", "sender"]) == 3
    assert [len(bars) for key, bars in file.rows.items() if key[1] > 0] == [2, 1]


def test_times_are_microseconds(prediction: Prediction) -> None:
    """A bar of 24 ms lasts 24,000 of the format's ticks."""
    events = as_chrome_trace(prediction)["traceEvents"]
    first = next(e for e in events if e["ph"] == "X" and e["name"] == "compute")
    assert first["ts"] == pytest.approx(16000.0)
    assert first["dur"] == pytest.approx(24000.0)
    assert first["args"] == {"step": 0}


@pytest.mark.parametrize(
    ("unit", "machine", "name"),
    [
        ("cpu", "train", "CPU"),
        ("data0 cpu", "data0", "CPU"),
        ("gpu11", "train", "GPU 11"),
        ("pcie switch2 down", "train", "PCIe switch 2 down"),
        ("nvlink gpu0", "train", "NVLink GPU 0"),
        ("storage operations", "train", "storage operations"),
    ],
)
def test_counters_have_readable_names(unit: str, machine: str, name: str) -> None:
    """Units are named in words, without the machine they are part of."""
    assert counter_name(Counter(unit=unit, machine=machine, resource="x")) == name


def test_an_empty_trace_is_a_trace(prediction: Prediction) -> None:
    """Nothing simulated still makes a file that opens."""
    timing = replace(prediction.timing, trace=None)
    tree = json.loads(timeline_text(replace(prediction, timing=timing)))
    assert {event["ph"] for event in tree["traceEvents"]} == {"M"}


def test_a_hostile_name_stays_a_name(prediction: Prediction) -> None:
    """Quotes, tags and control characters in a scenario's name neither break nor reach the file."""
    evil = replace(prediction.scenario, name='"}</script>\x1b[31m\n')
    tree = json.loads(timeline_text(replace(prediction, scenario=evil)))
    assert tree["otherData"]["scenario"].startswith('"}</script>')
    assert "\x1b" not in tree["otherData"]["scenario"]


@pytest.mark.parametrize("kind", sampled(SCENARIOS, 3))
def test_files_stay_small(kind: str) -> None:
    """No file is beyond 20 MB."""
    assert len(timeline_text(predicted(kind)).encode()) < 20e6
