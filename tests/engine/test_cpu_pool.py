"""Threads share cores as the docstring of `simulator.engine.cpu_pool` says."""

import pytest
from simpy import Environment

from simulator.engine.cpu_pool import CpuPool
from simulator.schema.machines import CpuPool as Processors


@pytest.fixture
def env() -> Environment:
    """Return a clock at zero."""
    return Environment()


@pytest.mark.parametrize(
    ("jobs", "end"),
    [(1, 1.0), (4, 1.0), (6, 6 / 4.5), (8, 8 / 5.0), (16, 16 / 5.0)],
    ids=["one core is the most", "a core each", "some share", "all share", "time slices"],
)
def test_jobs_share_cores_and_second_threads(env: Environment, jobs: int, end: float) -> None:
    """Equal jobs on 4 cores with 8 threads worth a quarter more end at n / capacity(n)."""
    pool = CpuPool(env, cores=4, threads=8, smt_worth=0.25)
    env.run(env.all_of([pool.run(1.0) for _ in range(jobs)]))
    assert env.now == pytest.approx(end)
    assert pool.busy() == pytest.approx(end * min(1.0, jobs / 8))


def test_speed_scales_the_work_done(env: Environment) -> None:
    """A pool of twice the speed does two core-seconds per second and core."""
    pool = CpuPool(env, cores=1, threads=1, smt_worth=0.0, speed=2.0)
    env.run(pool.run(3.0))
    assert env.now == 1.5


def test_job_of_many_threads_is_served_many_times(env: Environment) -> None:
    """Three threads against one on two cores get three quarters of the pool."""
    pool = CpuPool(env, cores=2, threads=2, smt_worth=0.0)
    wide, narrow = pool.run(3.0, threads=3), pool.run(1.0)
    env.run(wide)
    assert env.now == 2.0
    assert narrow.triggered


def test_fraction_of_a_thread(env: Environment) -> None:
    """A job of half a thread is served at half a core, and leaves nothing behind."""
    pool = CpuPool(env, cores=2, threads=2, smt_worth=0.0)
    env.run(pool.run(1.0, threads=0.5))
    assert env.now == 2.0
    assert pool.busy() == 0.5
    assert pool.utilization() == 0.25
    env.run(until=3.0)
    assert pool.utilization() == 0.0


def test_less_than_a_core(env: Environment) -> None:
    """Half a hardware thread of a quarter core, worth half more, does 0.375 of a core's work."""
    pool = CpuPool(env, cores=0.25, threads=0.5, smt_worth=0.5)
    env.run(pool.run(3.0))
    assert env.now == pytest.approx(8.0)


def test_late_arrival_slows_those_who_are_there(env: Environment) -> None:
    """Work done before the arrival counts; the rest is shared."""
    pool = CpuPool(env, cores=1, threads=1, smt_worth=0.0)
    first = pool.run(2.0)
    env.run(until=1.0)
    second = pool.run(0.5)
    env.run(second)
    assert env.now == 2.0
    env.run(first)
    assert env.now == 2.5


def test_utilization_is_told_when_it_changes(env: Environment) -> None:
    """The listener sees the share of hardware threads in use."""
    told: list[tuple[float, object, float]] = []
    pool = CpuPool(
        env, cores=2, threads=2, smt_worth=0.0, on_change=lambda *entry: told.append(entry)
    )
    pool.run(1.0)
    pool.run(2.0)
    pool.run(0.0)
    env.run()
    assert told == [(0, "cpu", 1.0), (1.0, "cpu", 0.5), (2.0, "cpu", 0.0)]


@pytest.mark.parametrize(
    "wrong",
    [{"cores": 0}, {"threads": 1}, {"smt_worth": 1.5}, {"smt_worth": -0.1}, {"speed": 0}],
)
def test_nonsense_is_refused(env: Environment, wrong: dict[str, float]) -> None:
    """A pool without cores, or with fewer threads than cores, is an error."""
    right = {"cores": 2, "threads": 2, "smt_worth": 0.0, "speed": 1.0}
    with pytest.raises(ValueError, match="must be"):
        CpuPool(env, **(right | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("taken", [0.0, 1.5, 4.0])
@pytest.mark.parametrize("threads", [1.0, 5.0, 8.0, 12.0, 40.0])
def test_threads_that_others_keep_busy(threads: float, taken: float) -> None:
    """The pool gives what its closed form says, and tells how busy the rest of it is."""
    hardware = {"cores": 8.0, "threads": 12.0, "smt_worth": 0.25, "contention": 0.5}
    closed = Processors(**hardware, taken=taken)  # type: ignore[arg-type] # figures by name
    env = Environment()
    pool = CpuPool(env, **hardware, taken=taken)  # type: ignore[arg-type] # figures by name
    env.run(pool.run(10.0, threads=threads))
    assert 10.0 / env.now == pytest.approx(float(closed.capacity_for(threads)))
    assert pool.busy() / env.now == pytest.approx(min(1.0, threads / (12.0 - taken)))
