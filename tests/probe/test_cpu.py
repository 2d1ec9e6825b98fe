"""Measuring processors: real processes, and the shares that the model wants."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from simulator.equations.cpu import pool_capacity, thread_slowdown
from simulator.errors import PlanError
from simulator.probe import cpu, decode, memory
from simulator.probe.machine import Machine
from simulator.schema.machines import CpuPool
from simulator.units import PER_SECOND

ONE = Machine(host="h", cpu="c", sockets=1, cores=1, threads=1, ram=4e9)
PAIR = Machine(host="h", cpu="c", sockets=1, cores=4, threads=8, ram=16e9)


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("busy", [(0.0, 0.0), (0.4, 0.25), (0.05, 0.9), (1.0, 0.0)])
def test_shares_are_the_models_own(busy: tuple[float, float]) -> None:
    """What is read off slow-downs puts the same slow-downs into `CpuPool`."""
    contention, worth = busy
    pool = CpuPool(cores=8, threads=16, contention=contention, smt_worth=worth)
    full = float(thread_slowdown(8, 8, 16, worth, contention))
    every = float(thread_slowdown(16, 8, 16, worth, contention))
    assert cpu.contention(full, 8) == pytest.approx(contention)
    assert cpu.smt_worth(every / full, 8, 16) == pytest.approx(worth)
    assert np.isclose(16 / every, pool.capacity)
    assert 16 / (every / full) == pytest.approx(float(pool_capacity(16, 8, 16, worth)))


def levels(monkeypatch: pytest.MonkeyPatch, costs: dict[int, float]) -> list[int]:
    """Let processes cost what `costs` says; the counts that were asked for."""
    asked = []

    def run(_: bytes, processes: int, seconds: float, *, jpeg: bool) -> tuple[float, float]:
        assert seconds == pytest.approx(1.0)
        assert isinstance(jpeg, bool)
        asked.append(processes)
        cost = costs[processes]
        return cost, processes / cost

    monkeypatch.setattr(cpu, "run", run)
    monkeypatch.setattr(decode, "has_pillow", lambda: False)
    return asked


def test_one_core_and_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process, one a core, one a thread; shares from CPU time at each."""
    asked = levels(monkeypatch, {1: 0.001, 4: 0.0013, 8: 0.0013 * 1.6})
    found = cpu.measure(PAIR, 3.0, quiet)
    assert asked == [1, 4, 8]
    values = {reading.key: reading.value for reading in found.readings}
    assert values["contention"] == pytest.approx(0.4)
    assert values["smt_worth"] == pytest.approx(0.25)
    assert values["inflate_time"] == 0.001
    assert found.warnings == (
        "Pillow is not installed: zlib data were inflated instead of decoding JPEG",
    )


def test_shares_that_no_profile_may_hold_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine so loaded that shares leave their range gets a warning instead."""
    levels(monkeypatch, {1: 0.001, 4: 0.004, 8: 0.002})
    found = cpu.measure(PAIR, 3.0, quiet)
    assert not {"contention", "smt_worth"} & {reading.key for reading in found.readings}
    assert sum("left out" in warning for warning in found.warnings) == 2


def test_one_core_has_no_contention(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one core and one thread there is nothing to share."""
    levels(monkeypatch, {1: 0.001})
    found = cpu.measure(ONE, 1.0, quiet)
    assert {r.unit.name for r in found.readings} == {"time", PER_SECOND.name}


@pytest.mark.parametrize("jpeg", [True, False])
def test_processes_really_work(*, jpeg: bool) -> None:
    """Two processes decode at once; their CPU time per job is that of the job."""
    if jpeg:
        pytest.importorskip("PIL", reason="Pillow is not installed")
    cost, rate = cpu.run(decode.sample(jpeg=jpeg), 2, 0.2, jpeg=jpeg)
    assert 0.0 < cost < 0.1
    assert rate > 0.0
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken worker is one message, and no process is left."""
    monkeypatch.setattr(cpu, "START_TIMEOUT", 20.0)
    with pytest.raises(PlanError, match="ended before its time"):
        cpu.run(b"no zlib data", 1, 0.1, jpeg=False)
    assert multiprocessing.active_children() == []


def test_the_picture_is_a_photograph_in_size() -> None:
    """The JPEG has the bytes a pixel of photographs, decodes to RGB, and never changes."""
    pytest.importorskip("PIL", reason="Pillow is not installed")
    data = decode.sample(jpeg=True)
    assert data == decode.sample(jpeg=True)
    assert 0.3 < len(data) / (decode.WIDTH * decode.HEIGHT) < 0.8
    image = decode.job(data, jpeg=True)()
    assert (image.size, image.mode) == ((decode.WIDTH, decode.HEIGHT), "RGB")


def test_memory_counts_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy reads and writes: twice the bytes over the time, for one thread and for all."""
    monkeypatch.setattr(memory, "BUFFER", 2**20)
    found = memory.measure(PAIR, 0.1, quiet)
    assert [r.key for r in found.readings] == ["copy_one_core", "copy_all_cores"]
    assert all(1e8 < r.value < 1e13 for r in found.readings)
    ticks = iter([0.0, 0.0, 0.5, 0.5, 2.0])
    monkeypatch.setattr(memory.time, "perf_counter", lambda: next(ticks))
    pair = (np.ones(1000, dtype=np.uint8), np.ones(1000, dtype=np.uint8))
    assert memory._rate([pair], 0.4) == 2.0 * 1000 / 2.0  # noqa: SLF001 - the same
