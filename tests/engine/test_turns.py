"""Workers that go through a batch in turns of reading and computing, as the trace shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.scenarios import inputs_of, scenario, store

from simulator.engine.run import Options, solve
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Slice
from simulator.schema.data_loading import CachePolicy
from simulator.schema.scenario import Scenario

READ, DECODE = 0.1, 0.3


def shared_store(workers: int = 1, cpu: float = DECODE, *, in_step: bool = False) -> Scenario:
    """Batches of 32 samples that take 0.1 s to read by one worker alone, and `cpu` to decode."""
    return scenario(
        batches=12,
        workers=workers,
        prefetch=1,
        batch_cpu=cpu,
        compute=0.001,
        storage=store(rate=32 * 1e5 / READ),
        cache=CachePolicy.NONE,
        in_step=in_step,
    )


def bars(job: Scenario) -> list[Slice]:
    """What the first worker does, in order."""
    trace = solve(inputs_of(job), Options(replay=True, trace=True)).trace
    assert trace is not None
    found = [s for s in trace.slices if "worker 0" in s.track and s.name in ("read", "decode")]
    return sorted(found, key=lambda bar: bar.start)


def test_a_batch_is_read_and_decoded_in_turns_that_add_up() -> None:
    """Two workers in step read a quarter at half the rate and decode it, four times a batch."""
    found = bars(shared_store(workers=2, in_step=True))[:8]
    assert [bar.name for bar in found] == ["read", "decode"] * 4
    assert [bar.length for bar in found] == pytest.approx([2 * READ / 4, DECODE / 4] * 4)


def test_a_worker_that_shares_nothing_has_no_turns() -> None:
    """A batch takes the plain sum, in two pieces."""
    found = bars(shared_store())[:2]
    assert [bar.length for bar in found] == pytest.approx([READ, DECODE])


def test_batches_of_few_samples_are_read_in_one_piece() -> None:
    """Seven samples have too few in a quarter for turns to be what happens."""
    job = shared_store(workers=2)
    train = replace(job.job.train, batch_size=7)
    few = replace(job, jobs=(replace(job.job, train=train),))
    assert [bar.name for bar in bars(few)[:4]] == ["read", "decode"] * 2
    assert bars(few)[0].length == pytest.approx(2 * READ * 7 / 32)


def test_there_are_no_turns_where_reading_is_a_trifle() -> None:
    """A worker that decodes nearly all the time meets no other at the store."""
    found = bars(shared_store(workers=2, cpu=2.0))
    assert found[0].length == pytest.approx(2 * READ)


def test_turns_do_not_change_what_a_store_can_deliver() -> None:
    """Eight workers that ask for more than the store has get what it has, however they read."""
    job = shared_store(workers=8)
    longer = replace(job, jobs=(replace(job.job, dataset=replace(job.job.dataset, samples=9600)),))
    timing = solve(inputs_of(longer), Options(replay=True))
    assert timing.step_time.mean == pytest.approx(READ, rel=0.02)


ELSEWHERE = """
schema = 1
[hardware]
machine = "instance/aws/g6e.2xlarge"
storage = "storage/ebs-gp3"
[data]
samples = 2400
bytes_per_sample = "75 kB"
[input]
loader = "dali"
workers = 4
[model]
step_time = "1 ms"
[train]
batch_size = 100
precision = "fp16"
[remote]
machine = "instance/aws/p3dn.24xlarge"
workers = 2
storage = "storage/ebs-sc1"
"""


def test_batches_made_elsewhere_are_read_there(tmp_path: Path) -> None:
    """A loader that reads ahead at home has workers on other machines that read themselves."""
    path = tmp_path / "elsewhere.toml"
    path.write_text(ELSEWHERE)
    prediction = predict(load_scenario(str(path)), intervals=False)
    assert prediction.timing.total_time > 1.2  # 24 batches that the store gives in 50 ms each
