"""The recursion and the event engine: the same floats, wherever the recursion may be used."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.scenarios import host, question, scenario, store

from simulator.engine import run
from simulator.engine.maxplus.pipeline import pipeline
from simulator.engine.run import Options, solve
from simulator.pipeline.stages.base import Phase
from simulator.results.prediction import Solver, Timing
from simulator.schema.scenario import Scenario
from simulator.schema.workload.dataset import CachePolicy
from simulator.schema.workload.distribution import CONSTANT, Shape, Spread
from simulator.schema.workload.loader import LoaderKind, Straggler
from simulator.schema.workload.models.custom import CustomModel

ROUND = st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.08])
"""Round times: they meet at one instant again and again."""
CROOKED = st.floats(1e-4, 0.2)
TIMES = ROUND | CROOKED


@st.composite
def jobs(draw: st.DrawFn) -> Scenario:
    """Jobs without randomness; most of them feed-forward."""
    kind = draw(st.sampled_from([LoaderKind.PYTORCH] * 3 + [LoaderKind.DALI, LoaderKind.TF_DATA]))
    workers = draw(st.integers(0 if kind is LoaderKind.PYTORCH else 1, 5))
    gpus = draw(st.sampled_from([1, 1, 2, 4]))
    node = host(
        gpus=gpus,
        cores=draw(st.sampled_from([64.0, 64.0, 4.0])),
        contention=draw(st.sampled_from([0.0, 0.0, 0.0, 0.5])),
        nvlink=draw(st.sampled_from([235e9, None])),
        memory_bandwidth=draw(st.sampled_from([None, None, 1e11])),
        pcie=draw(st.sampled_from([16e9, 1e8])),
    )
    return scenario(
        batches=draw(st.integers(1, 160)),
        batch_cpu=draw(TIMES),
        compute=draw(st.sampled_from([0.01, 0.02, 0.04]) | CROOKED),
        workers=workers,
        prefetch=draw(st.integers(1, 4)),
        epochs=draw(st.sampled_from([1.0, 3.0])),
        machine=node,
        storage=store(rate=draw(st.sampled_from([1e9, 1e8])), latency=draw(ROUND) / 32.0),
        read_time=draw(st.none() | TIMES.map(lambda time: time / 32.0)),
        cache=draw(
            st.sampled_from([CachePolicy.PRELOADED, CachePolicy.PRELOADED, CachePolicy.NONE])
        ),
        output_bytes=draw(st.sampled_from([0.0, 1e4, 333333.3])),
        sync=draw(st.booleans()),
        accumulation=draw(st.sampled_from([1, 1, 2, 3])),
        last_share=draw(st.sampled_from([1.0, 0.5, 0.25, 3.0 / 32.0])),
        kind=kind,
        pin_memory=draw(st.booleans()),
        overlap_copies=draw(st.booleans()),
        drop_last=draw(st.booleans()),
        in_step=draw(st.booleans()),
        persistent_workers=draw(st.booleans()),
        receive_per_batch=draw(TIMES),
        worker_start=draw(ROUND),
        epoch_start=draw(ROUND),
        device_spread=draw(st.sampled_from([CONSTANT, CONSTANT, VARIES])),
    )


def exact(job: Scenario) -> bool:
    """Whether both epochs of a job may be solved by the recursion."""
    asked = question(job)
    return all(pipeline(job, asked.topology, asked.demands[phase]) is not None for phase in Phase)


def by_events(job: Scenario, options: Options) -> Timing:
    """What the event engine says, whoever was asked before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "pipeline", lambda *_: None)
        patch.setattr(run, "simulated", lambda asked, simulate: simulate(asked))
        return solve(question(job), options)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(job=jobs(), replay=st.sampled_from([False, False, False, True]))
def test_both_solvers_give_the_same_floats(job: Scenario, replay: bool) -> None:  # noqa: FBT001 - drawn
    """Steps, split, first step, epochs, utilization: all equal to the last bit."""
    options = Options(replay=replay, most_steps=60)
    one = solve(question(job), options)
    events = by_events(job, options)
    assert events.solver is Solver.EVENTS
    assert replace(one, solver=events.solver) == events


@settings(max_examples=25, deadline=None)
@given(job=jobs())
def test_the_trace_changes_nothing(job: Scenario) -> None:
    """A run that is watched, which takes the event engine, says the same as one that is not."""
    asked = question(job)
    plain = solve(asked, Options(most_steps=40))
    watched = solve(asked, Options(most_steps=40, trace=True))
    assert watched.trace is not None
    assert replace(watched, trace=None, solver=plain.solver) == plain


def test_a_good_share_of_these_jobs_is_solved_by_the_recursion() -> None:
    """The comparison compares: of the jobs that are drawn, a third and more need no events."""
    found: list[Solver] = []

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(job=jobs())
    def count(job: Scenario) -> None:
        found.append(solve(question(job), Options(most_steps=8)).solver)

    count()
    assert found.count(Solver.RECURSION) > len(found) / 3
    assert Solver.EVENTS in found


FED: dict[str, object] = {"workers": 2, "batch_cpu": 0.1, "receive_per_batch": 0.001}
VARIES = Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0)
SHARED: dict[str, dict[str, object]] = {
    "threads that slow each other": {"machine": host(contention=0.1)},
    "more threads than cores": {"machine": host(cores=2.0)},
    "one store for two": {"cache": CachePolicy.NONE},
    "host memory for two": {"machine": host(memory_bandwidth=1e11), "output_bytes": 1e5},
    "chance in the work": {"cost_spread": VARIES},
    "chance in the sizes": {"size_spread": VARIES},
    "a slow worker": {"stragglers": (Straggler(factor=2.0, worker=1),)},
    "whichever batch is ready": {"in_order": False},
    "one queue for all": {"kind": LoaderKind.ACTORS},
}


@pytest.mark.parametrize("why", SHARED)
def test_what_may_slow_something_else_takes_the_event_engine(why: str) -> None:
    """Each of these alone makes times depend on what else goes on, or on chance."""
    assert exact(scenario(**FED))  # type: ignore[arg-type] # arguments by name
    job = scenario(**(FED | SHARED[why]))  # type: ignore[arg-type] # arguments by name
    assert not exact(job)
    assert solve(question(job), Options(most_steps=8)).solver is Solver.EVENTS


def test_one_after_the_other_nothing_is_shared() -> None:
    """A program that makes each batch itself and waits for the device never contends."""
    node = host(contention=0.5, memory_bandwidth=1e10)
    job = scenario(batch_cpu=0.1, machine=node, output_bytes=1e5, cache=CachePolicy.NONE)
    assert exact(job)
    assert not exact(scenario(sync=False, machine=node, output_bytes=1e5, pin_memory=True))


def test_batches_that_come_out_of_turn_are_left_to_the_event_engine() -> None:
    """Workers that take no time finish many batches at one instant, in an order of their own."""
    job = scenario(workers=2, receive_per_batch=0.01)
    assert exact(job)
    assert solve(question(job), Options()).solver is Solver.EVENTS


def test_a_pipeline_by_hand() -> None:
    """Two workers of 0.1 s a batch feed a step of 0.02 s: batches come in pairs every 0.1 s."""
    timing = solve(question(scenario(workers=2, batch_cpu=0.1, in_step=True)), Options())
    assert timing.solver is Solver.RECURSION
    assert timing.step_times[:4] == pytest.approx((0.12, 0.02, 0.08, 0.02))
    assert timing.step_time.mean == pytest.approx(0.05)
    assert timing.split.data_stall == pytest.approx(0.03)
    assert timing.usage["cpu"].total == pytest.approx(2.0)


def with_gradients(job: Scenario, bucket: float = 25e6) -> Scenario:
    """The same job with gradients to exchange, in buckets."""
    model = CustomModel(name="model/test", parameters=25e6, forward_flops=1e9)
    own = job.jobs[0]
    train = replace(own.train, bucket_bytes=bucket)
    return replace(job, jobs=(replace(own, model=model, train=train),))


@settings(max_examples=25, deadline=None)
@given(job=jobs(), bucket=st.sampled_from([0.0, 1e7, 25e6, 1e9]))
def test_gradients_exchanged_beside_the_backward_pass(job: Scenario, bucket: float) -> None:
    """With all-reduce in buckets both solvers agree too."""
    reducing = with_gradients(job, bucket)
    one = solve(question(reducing), Options(most_steps=40))
    assert replace(one, solver=Solver.EVENTS) == by_events(reducing, Options(most_steps=40))


def test_gradients_exchanged_by_the_recursion() -> None:
    """Four devices with links of their own exchange gradients, and nothing of it is shared."""
    job = with_gradients(scenario(machine=host(gpus=4), workers=2, batch_cpu=0.01))
    timing = solve(question(job), Options())
    assert timing.solver is Solver.RECURSION
    assert timing.communication.exposed > 0.0
    assert timing.communication.hidden > 0.0
