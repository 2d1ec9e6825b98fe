"""The fewest workers that are enough, against counts known in closed form."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import NotModelled
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.starter import defaults, starter_text
from simulator.studies.advise import Advice, advise_input
from simulator.studies.levers.data_loading import PREFETCH_DEPTHS
from simulator.studies.search.outcome import Progress
from tests.support.scenarios import host
from tests.support.what_if import made_up, reader


def advised(within: float = 0.01, progress: Progress | None = None, **figures: object) -> Advice:
    """The advice for a job whose workers take 0.1 s a batch and whose device takes 0.021 s."""
    return advise_input(made_up(batches=2000, **figures), within, progress=progress)


def test_the_fewest_workers_that_are_enough() -> None:
    """0.1 s over 0.021 s are 4.76 workers: five, and two batches ahead are enough."""
    found = advised()
    assert found.chosen is not None
    assert (found.chosen.workers, found.chosen.prefetch) == (5, 2)
    assert found.chosen.stall <= 0.01
    fewer = next(s for s in found.table if (s.workers, s.prefetch) == (4, 2))
    assert fewer.stall == pytest.approx(1.0 - 0.021 / 0.025, abs=0.01)


@pytest.mark.parametrize(("within", "workers"), [(0.2, 4), (0.5, 3), (0.6, 2), (0.85, 1)])
def test_the_more_waiting_is_allowed_the_fewer_workers(within: float, workers: int) -> None:
    """So many workers leave the device 1 - 0.021 x workers / 0.1 of the time without data."""
    found = advised(within)
    assert found.chosen is not None
    assert found.chosen.workers == workers


def test_what_is_enough_already_is_kept() -> None:
    """Where the fewest are set, the advice is what is there."""
    found = advised(workers=5, prefetch=1)
    assert found.chosen == found.base


@pytest.mark.slow
def test_the_advice_is_no_slower_than_what_was_tried(tmp_path: Path) -> None:
    """Eight workers make batches just in time: no wait for data, and yet a step 4% longer."""
    job = {"hardware.gpus": "1", "data.samples": "3400000", "data.bytes_per_sample": "220 kB"}
    file = tmp_path / "job.toml"
    file.write_text(starter_text("job", "job", {**defaults(), **job, "input.workers": "12"}))
    reader = CandidateReader(str(file))
    found = advise_input(lambda settings: reader.read(settings).scenario, 0.01)
    assert found.chosen is not None
    assert found.chosen.step <= 1.0102 * min(s.step for s in found.table if s.fits)


@pytest.mark.parametrize("prefetch", PREFETCH_DEPTHS)
def test_a_prefetch_that_gains_nothing_is_kept(prefetch: int) -> None:
    """All depths take the same step where workers part and share memory: what is set stays."""
    machine = host(memory_bandwidth=6e8, unified=True)
    job = {"batch_cpu": 0.37, "compute": 0.055, "output_bytes": 1e5, "machine": machine}
    found = advised(workers=1, prefetch=prefetch, **job)
    assert found.chosen is not None
    assert (found.chosen.workers, found.chosen.prefetch) == (7, prefetch)


def test_no_number_of_workers_is_enough_for_too_few_cores() -> None:
    """Two cores make a batch in 0.05 s, whatever number of workers shares them."""
    found = advised(machine=host(gpus=1, cores=2.0))
    assert found.chosen is None
    assert found.best is not None
    assert found.best.step == pytest.approx(0.05, rel=0.02)
    assert found.best.workers == 2


def test_settings_that_do_not_fit_are_no_answer() -> None:
    """With RAM for few workers only, none that starves the device less is offered."""
    need = advised().chosen
    assert need is not None
    base = advised().base
    machine = host(gpus=1, ram=(base.ram + need.ram) / 2.0)
    found = advised(machine=machine, worker_memory=1e9)
    assert found.chosen is None
    assert all(setting.stall > 0.01 for setting in found.table if setting.fits)


def test_the_table_shows_neighbours_and_depths_with_their_ram() -> None:
    """Settings beside the chosen one, each once, with RAM that grows with workers and prefetch."""
    found = advised(output_bytes=1e6)
    assert found.chosen is not None
    keys = [(setting.workers, setting.prefetch) for setting in found.table]
    assert keys == sorted(set(keys))
    assert {(4, 2), (5, 2), (6, 2), *((5, depth) for depth in PREFETCH_DEPTHS)} <= set(keys)
    ram = [setting.ram for setting in found.table if setting.workers == 5]
    assert ram == sorted(ram)
    assert ram[0] < ram[-1]


def test_progress_goes_up_to_the_whole() -> None:
    """Each prediction moves it on, never beyond the end."""
    told: list[float] = []
    advised(progress=told.append)
    assert told == sorted(told)
    assert 0.0 < told[0] < told[-1] <= 1.0


def test_workers_elsewhere_are_not_ours_to_count() -> None:
    """Where remote machines make all batches, local workers are not what to set."""
    with pytest.raises(NotModelled, match=r"remote\.workers"):
        advise_input(reader("remote-workers-mnist"), 0.01)
