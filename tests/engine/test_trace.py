"""What a traced run writes down, against closed forms and against the untraced run."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from support.scenarios import host, inputs_of, scenario, store

from simulator.engine.run import Options, solve
from simulator.engine.trace import Meter
from simulator.results.prediction import Slice, Timing, Trace
from simulator.schema.accelerators import EMULATED
from simulator.schema.data_loading import CachePolicy
from simulator.schema.fields import Shape, Spread
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario


def traced(job: Scenario, *, replay: bool = True) -> tuple[Timing, Trace]:
    """The timing of a traced run, and its trace."""
    timing = solve(inputs_of(job), Options(replay=replay, trace=True))
    assert timing.trace is not None
    return timing, timing.trace


def lane(trace: Trace, track: str) -> list[Slice]:
    """The bars of a track in order."""
    return sorted((s for s in trace.slices if s.track == track), key=lambda s: s.start)


def test_a_compute_lane_has_no_gaps() -> None:
    """A device that waits says for what: its bars follow each other from start to end."""
    job = scenario(
        machine=host(gpus=2, nvlink=50e9),
        workers=1,
        batch_cpu=0.05,
        output_bytes=1e6,
        batches=8,
        pin_memory=True,
    )
    _, trace = traced(job)
    bars = lane(trace, "rank 1 compute")
    assert bars[0].start == 0.0
    for before, after in pairwise(bars):
        assert before.start + before.length == pytest.approx(after.start, abs=1e-12)
    assert bars[-1].start + bars[-1].length == pytest.approx(trace.ends[-1])
    assert {"waits for data", "waits for copy", "forward", "backward"} <= {b.name for b in bars}


def test_the_receiver_has_a_lane_of_its_own_where_it_is_a_thread() -> None:
    """With pinning a thread receives; without, the main thread does."""
    pinned, plain = (
        scenario(workers=1, batch_cpu=0.01, receive_per_batch=0.002, pin_memory=pins)
        for pins in (True, False)
    )
    received = [b.length for b in lane(traced(pinned)[1], "rank 0 pin memory")]
    assert received == pytest.approx([0.002] * 100)
    assert {b.name for b in lane(traced(plain)[1], "rank 0 main thread")} == {"receive"}


def test_without_workers_the_main_thread_makes_the_batches() -> None:
    """Reading and decoding stand on its lane, and nobody is called a worker."""
    _, trace = traced(scenario(machine=host(gpus=1), workers=0, batch_cpu=0.01, batches=4))
    assert "decode" in {b.name for b in lane(trace, "rank 0 main thread")}
    assert not [s.track for s in trace.slices if "worker" in s.track]


def test_a_worker_that_nobody_asks_waits() -> None:
    """With one credit, a worker that needs 10 ms for a step of 100 ms waits 90 ms."""
    job = scenario(
        machine=host(gpus=1), workers=1, prefetch=1, batch_cpu=0.01, compute=0.1, batches=8
    )
    _, trace = traced(job)
    waits = [b.length for b in lane(trace, "rank 0 worker 0") if b.name == "waits to be asked"]
    assert waits[-1] == pytest.approx(0.09, rel=1e-6)


def test_tracing_changes_no_figure() -> None:
    """A traced run has the times and utilizations of an untraced one."""
    job = scenario(
        machine=host(gpus=4, nvlink=50e9),
        workers=2,
        batch_cpu=0.02,
        output_bytes=1e6,
    )
    plain = solve(inputs_of(job), Options())
    timing, _ = traced(job, replay=False)
    assert timing.step_time.mean == pytest.approx(plain.step_time.mean, rel=1e-12)
    assert timing.split.compute == pytest.approx(plain.split.compute, rel=1e-12)
    for name, usage in plain.usage.items():
        assert timing.usage[name].mean == pytest.approx(usage.mean, rel=1e-9, abs=1e-12)


def test_an_epoch_that_is_ended_for_its_events_ends_at_the_same_step_if_traced() -> None:
    """A link told the meter that it was idle by an event more, which counted as the run's own."""
    job = scenario(
        batches=400,
        workers=3,
        batch_cpu=0.05,
        storage=store(rate=1e8),
        cache=CachePolicy.NONE,
        machine=host(memory_bandwidth=1e9),
        output_bytes=1e5,
        cost_spread=Spread(shape=Shape.GAMMA, relative_deviation=0.5),
    )
    few = Options(most_events=3000)
    plain, noted = (solve(inputs_of(job), replace(few, trace=trace)) for trace in (False, True))
    assert plain.simulated_steps < 400
    assert noted.simulated_steps == plain.simulated_steps


def test_a_rank_that_stands_for_others_says_so() -> None:
    """Of twelve ranks without a link of their own one is shown, for twelve; of four all are."""
    few, many = (scenario(machine=played(n), workers=1, batches=4) for n in (4, 12))
    shown, reduction = traced(few)[1], traced(many)[1]
    assert (dict(shown.shown_as), set(shown.stands_for.values())) == ({0: 0, 1: 0, 2: 0, 3: 0}, {4})
    assert (dict(reduction.shown_as), dict(reduction.stands_for)) == ({0: 0}, {0: 12.0})


def played(ranks: int) -> Host:
    """A machine whose accelerators are emulated: none has a link of its own."""
    node = host(gpus=ranks, cores=16.0, nvlink=None)
    return replace(node, gpu=EMULATED, host_link=None, gpu_count=ranks)


def test_every_unit_has_a_counter_from_the_start() -> None:
    """Idle units are counted too, so that a viewer shows that they are idle."""
    _, trace = traced(scenario(machine=host(gpus=2), storage=store(), workers=1, batches=4))
    started = {sample.unit for sample in trace.samples if sample.time == 0.0}
    assert {counter.unit for counter in trace.counters} <= started
    assert {"cpu", "storage", "gpu0", "gpu1"} <= started


def test_a_meter_adds_what_shares_a_unit_and_what_nothing_slows() -> None:
    """Each tells its own part; the sample is the sum."""
    meter = Meter({"link": ["link"]})
    meter.fixed(0.0, "link", 0.25)
    meter.shared(1.0, "link", 0.5)
    meter.fixed(2.0, "link", 0.0)
    assert [sample.value for sample in meter.samples] == [0.25, 0.75, 0.5]
