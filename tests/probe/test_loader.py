"""Measuring a data loader: on objects with a DataLoader's attributes, and on a real one."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simulator import torch as door
from simulator.errors import PlanError
from simulator.predict import predict
from simulator.probe import loader as probe
from simulator.probe.loader import Timed
from simulator.probe.machine import Usage, in_line, own_memory, usage
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.torch import WorkloadProfile, profile_loader, profile_step


class Hand:
    """A clock that stands still but where someone sleeps, instead of the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.perf_counter = self.monotonic = lambda: self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


CLOCK = Hand()


@contextmanager
def by_hand() -> Iterator[None]:
    """What is profiled is timed by `CLOCK`, so that no other program on the machine counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "time", CLOCK)
        patch.setattr(door, "time", CLOCK)
        patch.setattr(probe, "in_line", lambda: 0.0)
        yield


SAMPLE, BATCH, TAKE = 0.0005, 0.004, 0.002
REST = """
schema = 1
[hardware]
machine = "node/benchmark-client"
emulated = 1
storage = "storage/nvme-gen4"
[train]
mode = "infer"
batch_size = 32
precision = "fp32"
sync_every_step = true
"""


class BatchSampler:
    """A plain sampler of batches, called as torch calls it."""

    def __init__(self, samples: int, batch_size: int) -> None:
        self.samples, self.batch_size, self.drop_last = samples, batch_size, True

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self.samples // self.batch_size


class OddSampler(BatchSampler):
    """A sampler whose batches are its own business."""


class FakeLoader:
    """A loader of one worker: a batch is ready some time after the one before was, two ahead."""

    def __init__(self, samples: int = 4096, size: int = 32, sampler: type = BatchSampler) -> None:
        self.dataset = range(samples)
        self.sampler = self.dataset
        self.batch_sampler = sampler(samples, size)
        self.batch_size = size
        self.collate_fn = list
        self.num_workers, self.prefetch_factor = 6, 4
        self.pin_memory, self.persistent_workers, self.in_order = True, True, False

    def __setattr__(self, name: str, value: object) -> None:
        """A DataLoader refuses to change once it is made."""
        if name == "persistent_workers" and name in self.__dict__:
            msg = "set after initialization"
            raise ValueError(msg)
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[object]:
        """Batches, made as one worker makes them."""
        assert (self.num_workers, self.prefetch_factor, self.persistent_workers) == (1, 2, False)
        size = self.batch_sampler.batch_size
        cost = BATCH + SAMPLE * size
        ready = CLOCK.now
        asked = [ready] * probe.PREFETCH
        for _ in range(len(self)):
            ready = max(ready, asked.pop(0)) + cost
            CLOCK.sleep(max(0.0, ready - CLOCK.now))
            CLOCK.sleep(TAKE)
            asked.append(CLOCK.now)
            yield {"image": np.zeros((size, 3, 8), np.float32), "label": [np.zeros(size)]}


@pytest.fixture(scope="module")
def found() -> WorkloadProfile:
    """The profile of the fake loader."""
    with by_hand():
        return profile_loader(FakeLoader(), batches=10)


def test_samples_and_batches_are_told_apart(found: WorkloadProfile) -> None:
    """Two batch sizes give the cost of a sample and of a batch; ready batches that of taking."""
    assert [run.size for run in found.runs] == [32, 8]
    assert found.sample_time == pytest.approx(SAMPLE, rel=0.01)
    assert found.batch_time == pytest.approx(BATCH, rel=0.01)
    taken = found.receive_per_batch + 32 * found.receive_per_sample
    assert taken == pytest.approx(TAKE, rel=0.01)
    assert found.sample_bytes == 3 * 8 * 4 + 8


def test_settings_are_those_of_the_loader(found: WorkloadProfile) -> None:
    """What is profiled with one worker is still a loader of six."""
    said = found.settings
    assert (said.workers, said.prefetch, said.batch_size, said.samples) == (6, 4, 32, 4096)
    assert (said.pin_memory, said.persistent, said.drop_last, said.in_order) == (
        True,
        True,
        True,
        False,
    )


def test_the_loader_is_left_as_it_was() -> None:
    """A copy runs; the user's own loader keeps its workers, batches and iterator."""
    loader = FakeLoader()
    before = dict(vars(loader))
    clone = probe.one_worker(loader, 8)
    assert (clone.num_workers, clone.batch_size, len(clone)) == (1, 8, 512)
    assert vars(loader) == before
    assert len(loader) == 128


def test_the_sections_are_a_scenarios(found: WorkloadProfile, tmp_path: Path) -> None:
    """The text, with a machine and a batch size above it, predicts the loader it came from."""
    with by_hand():
        step = profile_step(lambda: CLOCK.sleep(0.001), batch_size=32, repeats=3)
    path = tmp_path / "mine.toml"
    # An emulated device shares the host's memory: nothing is pinned for it.
    text = found.toml(steps=[step]).replace("pin_memory = true", "pin_memory = false")
    path.write_text(REST + text)
    scenario = load_scenario(str(path), catalogue=Catalogue.default())
    assert (scenario.job.input.workers, scenario.job.input.prefetch) == (6, 4)
    assert scenario.job.dataset.samples == 4096
    one = load_scenario(str(path), overrides=["input.workers=1"])
    assert predict(one).timing.step_time.mean == pytest.approx(BATCH + 32 * SAMPLE, rel=0.2)


def test_a_sampler_of_its_own_gives_one_size() -> None:
    """Where batches cannot be resized, all cost is that of samples, and a note says so."""
    found = profile_loader(FakeLoader(sampler=OddSampler), batches=5)
    assert [run.size for run in found.runs] == [32]
    assert found.batch_time == 0.0
    assert any("One batch size" in note for note in found.notes)


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ([1, 2], "list is not a DataLoader: it has no dataset"),
        (FakeLoader(samples=320), "gives 10 batches of 32; measuring takes 11"),
    ],
)
def test_what_cannot_be_measured_is_said(loader: object, message: str) -> None:
    """No loader, or one with too little in it, is one clear message."""
    with pytest.raises(PlanError, match=message):
        profile_loader(loader)


def test_a_loader_that_does_not_batch_is_refused() -> None:
    """Without a batch size there is nothing to scale by."""
    loader = FakeLoader()
    loader.batch_size, loader.batch_sampler = None, None
    with pytest.raises(PlanError, match="give it a batch_size"):
        profile_loader(loader)


def test_the_users_own_error_is_passed_on() -> None:
    """What the data set raises is reported in a line, not as a bug of plan."""

    class Broken(FakeLoader):
        def __iter__(self) -> Iterator[object]:
            msg = "Caught ValueError in worker\nTraceback ...\nValueError: no such image"
            raise ValueError(msg)

    with pytest.raises(PlanError, match=r"failed with one worker: ValueError: .*no such image$"):
        profile_loader(Broken())


@pytest.mark.parametrize("batches", [1, 5, 12])
def test_a_stream_that_ends_early_is_said(batches: int) -> None:
    """A stream of unknown length may be too short; what there is beyond the least is used."""

    class Stream(FakeLoader):
        def __len__(self) -> int:
            raise TypeError

        def __iter__(self) -> Iterator[object]:
            return itertools.repeat(np.zeros(4), batches)

    loader = Stream(sampler=OddSampler)
    if batches > 1 + probe.PREFETCH + probe.MIN_BATCHES:
        assert profile_loader(loader, batches=3).runs[0].count == 3
        return
    with pytest.raises(PlanError, match="ended before 11 batches"):
        profile_loader(loader, batches=20)


def test_too_few_batches_are_refused() -> None:
    """One batch is not a measurement."""
    with pytest.raises(PlanError, match="3 at least"):
        profile_loader(FakeLoader(), batches=1)


def test_costs_are_cpu_time_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time in line for a core is not counted, time on nothing is waiting for reads."""
    run = Timed(size=10, count=2, made=(1.0, 1.0), taken=0.1, first=1.5, read=1e6,
                held=5e7, cpu=0.2, blocked=0.3, batch_bytes=1e5)  # fmt: skip
    monkeypatch.setattr(probe, "measure", lambda *_: [run])
    found = profile_loader(FakeLoader())
    assert found.sample_time == pytest.approx(0.02)
    assert found.blocked_time == pytest.approx(0.03)
    assert found.stored_bytes == pytest.approx(1e5)
    assert found.worker_start == pytest.approx(0.5)
    text = found.toml()
    for said in ('decode = "20 ms"', 'read_time = "30 ms"', 'bytes_per_sample = "100 kB"'):
        assert said in text
    assert profile_loader(FakeLoader(), bytes_per_sample=7.0).stored_bytes == 7.0


def test_what_a_worker_used_is_split_three_ways() -> None:
    """On a core, in line for one, and waiting for something else add up to the clock."""
    before = Usage(running=1.0, waiting=1.0, read=0.0)
    after = Usage(running=2.0, waiting=1.5, read=400.0)
    split = probe._of_worker(before, after, [1.0, 1.0])  # noqa: SLF001 - the split itself
    assert split == {"cpu": 0.5, "blocked": 0.25, "read": 200.0}
    assert probe._of_worker(None, after, [1.0]) == {}  # noqa: SLF001 - the same


@pytest.mark.parametrize(
    ("points", "cost"),
    [
        ([(32.0, 10.0), (8.0, 4.0)], (0.25, 2.0)),
        ([(32.0, 8.0), (8.0, 1.0)], (0.25, 0.0)),
        ([(32.0, 3.0), (8.0, 5.0)], (0.0, 4.0)),
        ([(32.0, 8.0)], (0.25, 0.0)),
    ],
    ids=["a line", "steeper than proportional", "falling", "one size"],
)
def test_no_cost_is_below_zero(
    points: list[tuple[float, float]], cost: tuple[float, float]
) -> None:
    """Noise that bends the line the wrong way makes no negative cost."""
    assert probe.line(points) == pytest.approx(cost)


def test_bytes_of_any_batch() -> None:
    """Tensors, arrays and bytes count however they are nested."""

    class Packed:
        def __init__(self) -> None:
            self.input_ids = np.zeros(3, np.int64)

    class Tensor:
        element_size, nelement = (lambda _: 2), (lambda _: 5)

    batch = [Tensor(), {"a": (b"123", np.zeros(2))}, Packed(), "text", 7]
    assert probe.bytes_of(batch) == 10 + 3 + 16 + 24


def test_processes_are_read_off_proc(tmp_path: Path) -> None:
    """Threads add up; a process that is gone, or says nothing, is None."""
    files = {
        "7/task/7/schedstat": "2000000000 500000000 3\n",
        "7/task/8/schedstat": "1000000000 0 3\n",
        "7/io": "rchar: 123\nwchar: 5\n",
        "7/smaps_rollup": "Private_Clean:  1 kB\nPrivate_Dirty:  3 kB\nShared_Clean:  9 kB\n",
        "thread-self/schedstat": "1 250000000 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    seen = usage(7, tmp_path)
    assert seen is not None
    assert (seen.running, seen.waiting, seen.read) == pytest.approx((3.0, 0.5, 123.0))
    assert own_memory(7, tmp_path) == 4096
    assert in_line(tmp_path) == pytest.approx(0.25)
    gone = tmp_path / "gone"
    assert (usage(7, gone), own_memory(7, gone), in_line(gone)) == (None, None, 0.0)


def test_steps_are_timed_after_warming_up() -> None:
    """The median of the steps that count; the first, slow ones don't."""
    naps = iter([0.1, 0.1, 0.004, 0.004, 0.02, 0.004, 0.003])
    with by_hand():
        found = profile_step(lambda: CLOCK.sleep(next(naps)), batch_size=16, repeats=5, warm_up=2)
    assert len(found.times) == 5
    assert found.time == pytest.approx(0.004)
    assert "[[model.step_times]]\nbatch_size = 16\n" in found.toml()
    with pytest.raises(PlanError, match="1 at least"):
        profile_step(lambda: None, batch_size=0)


def test_a_device_times_its_own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CUDA the time between events counts, not that of the host that runs ahead."""
    marks: list[float] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            marks.append(12.5 * len(marks))
            self.at = marks[-1]

        def elapsed_time(self, end: Event) -> float:
            return end.at - self.at

    cuda = SimpleNamespace(
        Event=Event,
        is_available=lambda: True,
        synchronize=lambda: None,
        get_device_name=lambda: "A Device",
    )
    monkeypatch.setattr(door, "_torch", lambda: SimpleNamespace(cuda=cuda))
    found = profile_step(lambda: None, batch_size=4, repeats=6)
    assert found.times == pytest.approx([0.0125] * 6)
    assert found.device == "A Device"


def real() -> Any:
    """A real DataLoader whose workers compute 2 ms a sample."""
    data = pytest.importorskip(
        "torch.utils.data", reason="torch is an extra: pip install '.[torch]'"
    )
    return data.DataLoader(Working(), batch_size=8, num_workers=2, prefetch_factor=3)


class Working:
    """Samples of 1000 numbers that take 2 ms of CPU time each."""

    def __len__(self) -> int:
        """Samples."""
        return 800

    def __getitem__(self, index: int) -> object:
        """One sample."""
        if index >= len(self):
            raise IndexError
        end = time.process_time() + 0.002
        while time.process_time() < end:
            math.sqrt(index)
        return np.full(1000, index, np.float32)


def test_a_real_loader_is_measured() -> None:
    """PyTorch's own loader: its costs, its settings, its bytes; and it still works afterwards."""
    loader = real()
    found = profile_loader(loader, batches=10, seconds=10.0)
    assert found.sample_time > 0.001  # CPU time, whatever else the machine does
    assert found.sample_bytes == 4000
    assert (found.settings.workers, found.settings.prefetch) == (2, 3)
    assert (loader.num_workers, loader.batch_size) == (2, 8)
    assert found.worker_memory is None or found.worker_memory > 0.0


def test_a_real_loaders_error_is_passed_on() -> None:
    """An exception in a worker ends in its last line."""
    loader = real()
    loader.dataset.__class__ = Failing
    with pytest.raises(PlanError, match=r"failed with one worker: .*no such image"):
        profile_loader(loader)


class Failing(Working):
    """Samples that are not there."""

    def __getitem__(self, index: int) -> object:
        """Nothing."""
        msg = "no such image"
        raise ValueError(msg)
