"""One CPU pool for workers, pin-memory threads and learners, and one on each helper."""

from __future__ import annotations

import pytest
from coupling.build import helpers, networked, with_helpers, with_job
from coupling.on_cpu import (
    actors,
    preparing_cpu_bound,
    preparing_read_bound,
    preparing_write_bound,
    with_remote_workers,
)
from support.scenarios import host, inputs_of, scenario

from simulator.engine.run import Options, solve
from simulator.predict import predict
from simulator.results.prediction import Trace
from simulator.schema.data_loading import Remote
from simulator.schema.scenario import Scenario


def trace(job: Scenario) -> Trace:
    """The timeline of a whole epoch."""
    found = solve(inputs_of(job), Options(trace=True, replay=True)).trace
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("case", "bottleneck"),
    [
        (preparing_read_bound, "storage"),
        (preparing_cpu_bound, "cpu"),
        (preparing_write_bound, "storage"),
    ],
)
def test_preparation_names_what_limits_it(case: object, bottleneck: str) -> None:
    """A job that reads, works and writes is as fast as the disk or the CPU."""
    prediction = predict(case().job)  # type: ignore[operator]
    assert prediction.timing.bottleneck == bottleneck
    assert prediction.timing.usage[bottleneck].mean == pytest.approx(1.0, abs=0.01)
    assert prediction.memory is None


@pytest.mark.parametrize(("compute", "step"), [(0.02, 0.02), (0.005, 0.01)])
def test_actors_or_learner_set_the_pace(compute: float, step: float) -> None:
    """Eight actors make a batch every 10 ms: a learner of 20 ms is the limit, one of 5 ms not."""
    timing = predict(actors(compute)).timing
    assert timing.step_time.mean == pytest.approx(step, rel=1e-6)
    assert timing.bottleneck == ("gpu" if compute > step / 1.5 else "cpu")


def test_actors_that_share_cores_are_slower() -> None:
    """Eight actors on four cores make a batch every 20 ms."""
    assert predict(actors(0.005, cores=4.0)).timing.step_time.mean == pytest.approx(0.02, rel=1e-6)


def test_the_queue_of_the_actors_is_bounded() -> None:
    """Before a slow learner wait 2 batches in the queue and at most one with each actor."""
    pieces = trace(actors(0.1)).slices
    made = sorted(p.start + p.length for p in pieces if p.name == "decode")
    taken = sorted(p.start for p in pieces if p.name == "forward")
    ahead = [i + 1 - sum(start <= end for start in taken) for i, end in enumerate(made)]
    assert max(ahead) <= 2 + 8


def test_waiting_actors_leave_the_cpu_idle() -> None:
    """A learner of 100 ms needs 80 core-ms of actors: a tenth of eight cores."""
    assert predict(actors(0.1)).timing.usage["cpu"].mean == pytest.approx(0.1, rel=0.01)


def test_local_and_remote_workers_make_batches_by_their_speed() -> None:
    """Of 20 equal workers 4 are local: they make a fifth of the batches."""
    pieces = [p for p in trace(with_remote_workers(own=4)).slices if p.name == "decode"]
    local = [p for p in pieces if int(p.track.split()[3]) < 4]
    assert len(local) / len(pieces) == pytest.approx(4 / 20, abs=0.01)


def test_remote_workers_spare_the_trainers_cpu() -> None:
    """With all batches made elsewhere the local cores have nothing to do."""
    timing = predict(with_remote_workers()).timing
    assert timing.usage["cpu"].mean == 0.0
    assert timing.usage["data.cpu"].mean == pytest.approx(1.0, rel=0.02)
    assert timing.bottleneck == "data.cpu"


def test_remote_workers_fast_enough_leave_the_device_the_limit() -> None:
    """Batches every 5 ms are enough for a device of 20 ms."""
    timing = predict(with_remote_workers(compute=0.02)).timing
    assert timing.step_time.mean == pytest.approx(0.02, rel=1e-6)
    assert timing.bottleneck == "gpu"


@pytest.mark.parametrize("shares", [False, True])
def test_threads_of_one_batch_and_workers_of_many_make_as_much(*, shares: bool) -> None:
    """A service that works on one batch at a time keeps the remote cores as busy."""
    job = with_remote_workers()
    remote = Remote(name="data", workers=8, shares_batches=shares)
    step = predict(with_job(job, remote=remote)).timing.step_time.mean
    assert step == pytest.approx(0.08 / 16, rel=0.03)


@pytest.mark.parametrize("own", [0, 8])
def test_eight_devices_and_four_helpers_settle_soon(own: int) -> None:
    """A run of 5,000 steps on five machines is known after some hundred simulated ones."""
    base = scenario(
        batches=5000,
        batch_cpu=0.4,
        compute=0.02,
        workers=own,
        output_bytes=1e5,
        machine=networked(host(gpus=8, cores=96.0), 12.5e9),
        pin_memory=True,
        sync=False,
    )
    grouped = with_helpers(base, helpers(count=4, cores=36.0, network=3.125e9))
    timing = predict(with_job(grouped, remote=Remote(name="data", workers=32))).timing
    assert timing.simulated_steps <= 700
    made_by = 8 * own + 4 * 32
    assert timing.step_time.mean == pytest.approx(max(0.02, 8 * 0.4 / made_by), rel=0.03)
