"""Traces of the PyTorch profiler: real ones of a CPU, invented ones of a GPU."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.importing import DATA, call, check_prefix, refused
from support.kineto import Job, trace

from simulator.importers.torch_profiler import trace as torch_trace
from simulator.importers.torch_profiler.steps import Composition, composition, window
from simulator.importers.torch_profiler.trace import Request, Traced
from simulator.importers.torch_profiler.trace_file import Kind, read_trace
from simulator.reading.scenario import load_scenario

REAL = DATA / "kineto-2.13-cpu-real.pt.trace.json.gz"
INVENTED = DATA / "kineto-gpu-invented.json"
US = 1e-6
PARTS = ("compute", "communication", "to_device", "to_host", "data", "gaps")


def write(folder: Path, data: object, name: str = "rank0.pt.trace.json") -> Path:
    """A trace file."""
    path = folder / name
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def spent(folder: Path, job: Job) -> Composition:
    """How a step of a job is spent, as read from its trace."""
    read = read_trace(write(folder, trace(job)))
    return composition(read, window(read))


def traced(folder: Path, job: Job) -> Traced:
    """A job's trace taken apart."""
    return torch_trace._traced(write(folder, trace(job)), job.batch, None)  # noqa: SLF001 - its parts


def scaled(folder: Path, job: Job, batch: int | None = None, **target: Any) -> Composition:
    """A job's step at another size, from its own trace."""
    base = traced(folder, job)
    rules = torch_trace._rules(base, batch, Request(**target), {})  # noqa: SLF001 - the rules under test
    assert base.replay is not None
    return base.replay.composition(rules.duration, rules.growth)


def edited(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """The invented trace with its events changed, as old as the invented one."""
    data = json.loads(INVENTED.read_text(encoding="utf-8"))
    change(data["traceEvents"])
    path = write(folder, data)
    shutil.copystat(INVENTED, path)
    return path


def first(events: list[dict[str, Any]], category: str) -> dict[str, Any]:
    """The first event of a category."""
    return next(event for event in events if event.get("cat") == category)


def test_a_real_trace_of_a_cpu() -> None:
    """Of torch 2.13.0: three steps, most of which waits for one worker; parts add up."""
    read = read_trace(REAL)
    found = composition(read, window(read))
    marks = json.loads(gzip.decompress(REAL.read_bytes()))["traceEvents"]
    steps = [event["dur"] for event in marks if event["name"].startswith("ProfilerStep#")]
    loads = [event["dur"] for event in marks if "__next__" in event["name"]]
    assert len(steps) == 3
    assert found.step == pytest.approx(sum(steps) / 3 * US, rel=1e-9)
    assert found.data == pytest.approx(sum(loads) / 3 * US, rel=1e-9)
    assert sum(getattr(found, part) for part in PARTS) == pytest.approx(found.step)
    assert found.on_device is False


def test_operators_of_a_real_trace_spend_their_own_time() -> None:
    """Nested operators are not counted twice: together they take what operators cover."""
    base = torch_trace._traced(REAL, 16, None)  # noqa: SLF001 - its rows
    total = sum(row.time for row in base.rows)
    assert total == pytest.approx(base.spent.compute, rel=0.02)
    named = {row.name: row for row in base.rows}
    assert named["aten::addmm"].calls == 1
    assert not named["aten::t"].grows
    assert named["aten::mkldnn_convolution"].grows


def test_a_step_on_a_device_by_hand(tmp_path: Path) -> None:
    """Compute, exposed and hidden collectives, copy, data and gap are those of the job."""
    job = Job()
    found = spent(tmp_path, job)
    layer = job.fixed + job.per_sample * job.batch
    compute = 3 * job.layers * layer + job.optimizer
    copy = job.batch * job.sample_bytes / job.copy_rate
    last = job.all_reduce(2.0 * job.gradient)
    talk = sum(job.all_reduce(2.0 * job.gradient * (1 + i)) for i in range(job.layers))
    assert found.compute == pytest.approx(compute * US)
    assert found.communication == pytest.approx(last * US)
    assert found.hidden_communication == pytest.approx((talk - last) * US)
    assert found.to_device == pytest.approx(copy * US)
    assert found.data == pytest.approx(job.data * US)
    assert found.to_device_bytes == job.batch * job.sample_bytes
    assert sum(getattr(found, part) for part in PARTS) == pytest.approx(found.step)


def test_a_host_that_runs_ahead_misleads_nobody(tmp_path: Path) -> None:
    """Without synchronizing, marks of the host are shorter than the device's steps."""
    job = Job(synchronize=False, data=0.0)
    read = read_trace(write(tmp_path, trace(job)))
    marks = read.of(Kind.STEP)
    found = composition(read, window(read))
    assert sum(mark.duration for mark in marks) / len(marks) < 0.1 * found.step
    assert found.compute == pytest.approx((3 * 4 * 644 + 300) * US)


JOBS = {
    "bound by the device": Job(),
    "bound by the host": Job(per_sample=0.05, fixed=2.0, launch=25.0, optimizer=4.0),
    "without synchronizing": Job(synchronize=False),
    "bound by the network": Job(bandwidth=5e3),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("batch", [8, 16, 64, 256])
def test_another_batch_comes_out_as_its_own_trace(job: Job, batch: int, tmp_path: Path) -> None:
    """The step scaled from one trace is the one traced at that batch, without waits for data."""
    truth = spent(tmp_path, replace(job, batch=batch, data=0.0))
    found = scaled(tmp_path, job, batch=batch)
    assert found.step == pytest.approx(truth.step, rel=0.02)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("ranks", [2, 16, 128])
def test_other_numbers_of_devices_come_out_as_their_own_trace(
    job: Job, ranks: int, tmp_path: Path
) -> None:
    """Collectives follow their ring, and what is hidden behind compute stays hidden."""
    truth = spent(tmp_path, replace(job, ranks=ranks, data=0.0))
    found = scaled(tmp_path, job, devices=ranks)
    assert found.step == pytest.approx(truth.step, rel=0.02)
    assert found.communication == pytest.approx(truth.communication, rel=0.05, abs=2 * US)


def test_a_trace_replays_as_it_is(tmp_path: Path) -> None:
    """Nothing changes where nothing is scaled and nothing waits for data."""
    job = Job(data=0.0)
    assert scaled(tmp_path, job).step == pytest.approx(spent(tmp_path, job).step)


def test_two_traces_show_what_does_not_grow(tmp_path: Path) -> None:
    """Kernels with a large fixed part: one trace misleads, two at other batches do not."""
    job = Job(fixed=400.0)
    paths = [
        write(tmp_path, trace(replace(job, batch=batch)), f"b{batch}.json") for batch in (8, 64)
    ]
    truth = spent(tmp_path, replace(job, batch=256, data=0.0)).step
    both = torch_trace.read(paths, Request(batches=(8, 64), to_batches=(256,)))
    one = torch_trace.read(paths[1:], Request(batches=(64,), to_batches=(256,)))

    def step(text: str) -> float:
        row = next(line for line in text.splitlines() if line.startswith("# step"))
        return float(row.split()[-3]) * 1e-3

    assert step(both.text) == pytest.approx(truth, rel=0.01)
    assert abs(step(one.text) / truth - 1.0) > 0.05


def test_a_network_between_machines_slows_collectives(tmp_path: Path) -> None:
    """Two machines of eight: the reduction between them goes over the network that is given."""
    job = Job()
    alike = scaled(tmp_path, job, devices=16)
    slow = scaled(tmp_path, job, devices=16, network=1e9)
    bucket = 2.0 * job.gradient
    inside = 2 * (7 * job.ring_latency + 7 / 8 * bucket / job.bandwidth)
    between = 2 * job.ring_latency + bucket / 1e9 * 1e6
    assert slow.communication > alike.communication + 10 * (inside + between) * US * 0.5
    assert slow.compute == pytest.approx(alike.compute)


def test_the_sections_stand_for_the_step(tmp_path: Path) -> None:
    """Model, bytes copied and the time that neither waits nor exchanges; scaled ones marked."""
    path = write(tmp_path, trace())
    found = torch_trace.read([path], Request(batches=(32,), to_batches=(64,)))
    data = tomllib.loads(found.text)
    assert data["model"]["parameters"] == 2_000_000 * (1 + 2 + 3 + 4)
    assert data["model"]["input_bytes_per_sample"] == "600 kB"
    assert [point["batch_size"] for point in data["model"]["step_times"]] == [32, 64]
    assert data["model"]["step_times"][0]["time"] == "8.035 ms"
    assert data["train"]["batch_size"] == 64
    assert "# scaled, not measured" in found.text


def test_a_trace_makes_a_scenario(tmp_path: Path) -> None:
    """Built on a scenario that names its model, the trace's step time is what counts."""
    out = tmp_path / "mine.toml"
    outcome = call(
        "torch-trace", INVENTED, "--batch", "32", "--extends", "resnet50-imagenet-p4d", "-o", out
    )
    assert outcome.code == 0, outcome.err
    scenario = load_scenario(str(out))
    assert scenario.job.step_times is not None
    assert scenario.job.step_times.batch_sizes == (32.0,)
    assert scenario.job.train.batch_size == 32.0


def test_without_a_batch_there_is_a_table_only() -> None:
    """How many samples a step takes is in no trace: the table is in comments."""
    outcome = call("torch-trace", INVENTED)
    assert outcome.code == 0
    assert tomllib.loads(outcome.out) == {}
    assert "exposed communication" in outcome.out
    assert "no --batch" in outcome.err


def test_older_traces_are_read(tmp_path: Path) -> None:
    """Categories of 2021, identifiers in lower case, streams by name."""

    def older(events: list[dict[str, Any]]) -> None:
        names = {
            "kernel": "Kernel",
            "gpu_memcpy": "Memcpy",
            "cuda_runtime": "Runtime",
            "cpu_op": "Operator",
            "user_annotation": "Operator",
        }
        for event in events:
            event["cat"] = names.get(event.get("cat", ""), event.get("cat", ""))
            args = event.get("args", {})
            if "External id" in args:
                args["external id"] = args.pop("External id")
            if event["cat"] in {"Kernel", "Memcpy"}:
                event["tid"] = f"stream {event['tid']}"

    new, old = read_trace(INVENTED), read_trace(edited(tmp_path, older))
    assert composition(old, window(old)) == composition(new, window(new))


def test_a_trace_without_marks_needs_their_number(tmp_path: Path) -> None:
    """Nothing says where steps begin: refused, or taken as a given number."""

    def unmarked(events: list[dict[str, Any]]) -> None:
        events[:] = [e for e in events if not e["name"].startswith("ProfilerStep")]

    path = edited(tmp_path, unmarked)
    assert "give --steps" in refused("torch-trace", path)[0]
    read, marked = read_trace(path), read_trace(INVENTED)
    known = composition(marked, window(marked)).step
    assert composition(read, window(read, 3)).step == pytest.approx(known, rel=0.05)


def test_one_step_alone_is_said(tmp_path: Path) -> None:
    """A single step is what host and device take together."""
    read = read_trace(write(tmp_path, trace(Job(steps=1))))
    of = window(read)
    assert of.steps == 1
    assert "one step alone" in of.warnings[0]
    assert composition(read, of).step == pytest.approx(8.98e-3, rel=0.01)


def test_the_busiest_of_several_devices_is_read(tmp_path: Path) -> None:
    """A process that drives several devices: one is read, and that is said."""

    def second(events: list[dict[str, Any]]) -> None:
        kernel = json.loads(json.dumps(first(events, "kernel")))
        kernel["args"]["device"] = 1
        events.append(kernel)

    read = read_trace(edited(tmp_path, second))
    assert "only device 0 is read" in read.warnings[0]
    assert composition(read, window(read)).compute > 0.0


def test_collectives_are_known_by_their_operator_too(tmp_path: Path) -> None:
    """Some versions write size and type at the operator only."""

    def moved(events: list[dict[str, Any]]) -> None:
        for event in events:
            args = event.get("args", {})
            if event.get("cat") == "kernel" and "dtype" in args:
                about = {key: args.pop(key) for key in list(args) if key in _ABOUT}
                record = next(
                    e
                    for e in events
                    if e["name"] == "record_param_comms"
                    and e["args"]["External id"] == args["External id"]
                )
                record["args"].update(about)

    found = torch_trace.read([edited(tmp_path, moved)], Request(batches=(32,)))
    assert tomllib.loads(found.text)["model"]["parameters"] == 6_000_000


_ABOUT = ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: first(e, "kernel").update(dur=-3.0), "dur: is negative, found -3.0"),
        (lambda e: first(e, "kernel").update(dur=float("nan")), "dur: is not a finite number"),
        (lambda e: first(e, "kernel").update(ts="soon"), "ts: is not a number, found 'soon'"),
        (lambda e: first(e, "kernel").pop("dur"), "has no 'dur'"),
        (lambda e: first(e, "gpu_memcpy")["args"].update(bytes=-1), "args.bytes: is negative"),
        (
            lambda e: first(e, "gpu_memcpy").update(dur=768e3),
            "0.025 GB/s, but says 25 GB/s; 'dur' has to be in us",
        ),
        (lambda e: e.append(3), "is not an event, found 3"),
        (list.clear, "has 0 events, none of them of the PyTorch profiler"),
    ],
)
def test_one_message_says_what_is_wrong(
    change: Callable[[list[dict[str, Any]]], object], message: str, tmp_path: Path
) -> None:
    """Each mistake is one message with its place; nothing is written."""
    path = edited(tmp_path, change)
    lines = refused("torch-trace", path, "-o", tmp_path / "out.toml")
    assert len(lines) == 1
    assert message in lines[0]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_many_mistakes_are_cut_short(tmp_path: Path) -> None:
    """A trace whose every time is wrong gives a page of messages, not a book."""

    def wrong(events: list[dict[str, Any]]) -> None:
        for event in events:
            event["dur"] = -1.0

    lines = refused("torch-trace", edited(tmp_path, wrong))
    assert 20 <= len(lines) <= 22


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "has no 'traceEvents'"),
        ("[]", "is not a JSON object but a list"),
        ('{"traceEvents": 3}', "has 0 events"),
        ('{"traceEvents": [{"ph": "X"]}', "is not valid JSON"),
        ('{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "expecting ',' delimiter"),
        ('{"traceEvents": []} more', "extra data"),
        ('{"traceEvents": [{"ph": "X"}', "is cut off"),
    ],
)
def test_other_json_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """JSON that is not a trace, or no JSON, is one message."""
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    lines = refused("torch-trace", path)
    assert len(lines) == 1
    assert message in lines[0]


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    """A gigabyte is refused by its size, at once."""
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(2**30)
    lines = refused("torch-trace", path)
    assert len(lines) == 1
    assert "is larger than" in lines[0]


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    """Bytes that are not text are reported as such."""
    path = tmp_path / "trace.json"
    path.write_bytes(bytes(range(256)) * 10)
    assert "is a binary file, not a trace" in refused("torch-trace", path)[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to-batch", "64"), "--to-batch: needs to know the batch of the trace; give --batch"),
        (("--batch", "1", "--batch", "2"), "--batch: is given 2 times for 1 traces"),
        (("--gpus", "12", "--batch", "32"), None),
        (("--network", "1 GB/s"), "--network: is asked for only with other numbers of devices"),
        (("--network", "1 GB", "--gpus", "16"), "measures bytes"),
        (("--extends", "resnet50-imagenet-p4"), "--extends: there is no scenario"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: tuple[str, ...], message: str | None) -> None:
    """Options that lack others, or fit no trace, are reported; twelve devices are fine."""
    outcome = call("torch-trace", INVENTED, *options)
    assert (outcome.code == 0) == (message is None)
    assert message is None or message in outcome.err


def test_groups_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    """Groups of 8 in a job of 16 become groups of half of the devices, which must be whole."""
    data = trace()
    data["distributedInfo"]["world_size"] = 16
    path = write(tmp_path, data)
    assert call("torch-trace", path, "--gpus", "64").code == 0
    assert "don't divide into groups" in refused("torch-trace", path, "--gpus", "9")[0]


@pytest.mark.parametrize("later", [0.0, 3.0])
def test_a_launch_recorded_twice_counts_once(tmp_path: Path, later: float) -> None:
    """A record that was written twice launches its work once, in the replay too."""

    def twice(events: list[dict[str, Any]]) -> None:
        launches = [event for event in events if event.get("name") == "cudaLaunchKernel"]
        events.extend({**event, "ts": event["ts"] + later} for event in launches)

    scaled_to = ("--batch", "32", "--to-batch", "64", "--gpus", "8")
    plain = call("torch-trace", INVENTED, *scaled_to)
    outcome = call("torch-trace", edited(tmp_path, twice), *scaled_to)
    assert (plain.code, outcome.code) == (0, 0), outcome.err
    if later == 0.0:
        assert outcome.out.replace("rank0.pt.trace.json", INVENTED.name) == plain.out


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.0, 1.0), packed=st.booleans())
def test_a_prefix_is_read_or_refused(share: float, packed: bool) -> None:  # noqa: FBT001 - hypothesis passes it
    """A trace cut off anywhere, packed or not, never ends in a traceback."""
    content = REAL.read_bytes() if packed else INVENTED.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        cut = content[: int(share * len(content))]
        check_prefix(cut, Path(folder), "torch-trace", "--batch", "16")
