"""Equal ranks folded into few: the answer of all of them, at the price of few."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from simpy import Environment
from support.scenarios import host, question, scenario, simulate, store

from simulator.engine import folding
from simulator.engine.barrier import Barrier, expected_maximum
from simulator.engine.folding import fold
from simulator.engine.run import Options, solve
from simulator.hardware.gpu import EMULATED
from simulator.hardware.host import Host
from simulator.results import Timing
from simulator.scenario import Scenario
from simulator.workload.dataset import CachePolicy
from simulator.workload.loader import LoaderKind, Straggler
from simulator.workload.spread import Shape, Spread


def played(ranks: int, cores: float = 16.0) -> Host:
    """A machine whose accelerators are emulated: none has a link of its own."""
    node = host(gpus=ranks, cores=cores, nvlink=None)
    return replace(node, gpu=EMULATED, host_link=None, gpu_count=ranks)


def shared(ranks: int, rate: float = 1e9, **changes: object) -> Scenario:
    """Ranks with four workers each that read 32 x 1 MB a batch from one store."""
    common: dict[str, object] = {
        "machine": played(ranks),
        "storage": store(rate=rate),
        "sample_bytes": 1e6,
        "cache": CachePolicy.NONE,
        "workers": 4,
        "batch_cpu": 0.02,
        "compute": 0.1,
        "receive_per_batch": 0.002,
    }
    return scenario(**(common | changes))  # type: ignore[arg-type] # arguments by name


def unfolded(job: Scenario, monkeypatch: pytest.MonkeyPatch) -> Timing:
    """The same with every rank simulated."""
    with monkeypatch.context() as patch:
        patch.setattr(folding, "SAMPLED", 10_000)
        return solve(question(job), Options(most_steps=600))


@pytest.mark.parametrize("kind", [LoaderKind.PYTORCH, LoaderKind.DALI])
@pytest.mark.parametrize("rate", [1e9, 4e9, 1e12])
def test_one_of_many_equal_ranks_says_what_all_say(
    rate: float, kind: LoaderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without randomness the folded run is the whole run: step, epoch, stall, every utilization."""
    job = shared(20, rate=rate, kind=kind)
    one, all_of_them = simulate(job), unfolded(job, monkeypatch)
    assert fold(job, question(job).plant).ranks == 1
    assert one.step_time.mean == pytest.approx(all_of_them.step_time.mean, rel=1e-9)
    assert one.first_step == pytest.approx(all_of_them.first_step, rel=1e-9)
    assert one.epoch_time == pytest.approx(all_of_them.epoch_time, rel=1e-9)
    assert one.split.data_stall == pytest.approx(all_of_them.split.data_stall, abs=1e-9)
    assert one.throughput == pytest.approx(all_of_them.throughput, rel=1e-9)
    for name, usage in all_of_them.usage.items():
        assert one.usage[name].mean == pytest.approx(usage.mean, rel=1e-6), name
        assert one.usage[name].units == usage.units


def test_eight_random_ranks_stand_for_forty(monkeypatch: pytest.MonkeyPatch) -> None:
    """With samples that differ, the folded epoch is within 2% of all ranks simulated."""
    spread = Spread(shape=Shape.GAMMA, relative_deviation=1.0)
    job = shared(40, rate=40 * 32e6 / 0.098, size_spread=spread)
    few, all_of_them = simulate(job), unfolded(job, monkeypatch)
    assert fold(job, question(job).plant).ranks == folding.SAMPLED
    assert few.epoch_time == pytest.approx(all_of_them.epoch_time, rel=0.02)


def test_cost_does_not_grow_with_equal_ranks() -> None:
    """Two thousand ranks take no more than three times as long to simulate as forty."""
    times = []
    for ranks in (40, 2000):
        asked = question(shared(ranks, rate=ranks * 1e8))
        started = process_time()
        solve(asked, Options())
        times.append(process_time() - started)
    assert times[1] < 3.0 * times[0] + 0.05


@pytest.mark.parametrize(
    "job",
    [
        shared(20, stragglers=(Straggler(factor=2.0, rank=3),)),
        scenario(machine=host(gpus=20), workers=2),
        shared(8),
    ],
    ids=["one rank is slow", "links of their own", "few"],
)
def test_ranks_that_differ_are_all_simulated(job: Scenario) -> None:
    """A slow rank, a link to each accelerator, or few ranks: nothing is folded."""
    ranks = question(job).plant.ranks
    assert fold(job, question(job).plant).ranks == ranks


def test_a_barrier_waits_for_those_it_stands_for() -> None:
    """Eight draws, taken for a thousand, open the barrier as late as the latest of a thousand."""
    drawn = np.random.default_rng(3).normal(10.0, 1.0, (2000, 8))
    opened = [_opening(row, 1000) for row in drawn]
    assert np.mean(opened) == pytest.approx(10.0 + expected_maximum(1000), abs=0.1)


def test_a_barrier_for_its_own_parties_opens_with_the_latest() -> None:
    """Nobody else is waited for."""
    assert _opening(np.array([1.0, 3.0, 2.0]), 3) == 3.0


def _opening(arrivals: np.ndarray[tuple[int], np.dtype[np.float64]], standing_for: int) -> float:
    env = Environment()
    barrier = Barrier(env, len(arrivals), standing_for)
    opened: list[float] = []

    def party(when: float) -> object:
        yield env.timeout(when)
        yield barrier.wait()
        opened.append(env.now)

    for when in arrivals:
        env.process(party(float(when)))  # type: ignore[arg-type] # a generator
    env.run()
    assert len(set(opened)) == 1
    return opened[0]
