"""RAM is shared by the system, workers, batches in flight and the page cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
from coupling.build import with_job
from coupling.on_memory import crowded

from simulator.physics.footprint import Verdict, host_ram, page_cache_bytes
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.input import hit_ratio
from simulator.predict import predict


def test_the_cache_is_what_the_processes_leave() -> None:
    """64 GB less 2 + 2 + 16 x 2 GB and 33 batches of 128 MB leave 23.776 GB."""
    assert page_cache_bytes(crowded(workers=16)) == pytest.approx(23.776e9)


def test_pinned_copies_take_from_the_cache_too() -> None:
    """A pinned batch of 128 MB is a block of 2**27 B: 33 of them are 4.43 GB."""
    base = crowded(workers=16)
    pinned = with_job(base, input=replace(base.job.input, pin_memory=True))
    assert page_cache_bytes(base) - page_cache_bytes(pinned) == pytest.approx(33 * 2**27)


def test_more_workers_hit_less_and_read_more() -> None:
    """Four workers leave room for all data, 8 for most of them, 24 for hardly any."""
    hits = [float(hit_ratio(crowded(workers), Phase.WARM)) for workers in (4, 8, 16, 24)]
    assert hits[0] == 1.0
    assert hits == sorted(hits, reverse=True)
    assert hits[-1] < 0.02


def test_a_deeper_prefetch_hits_less() -> None:
    """Batches made ahead are in RAM as well: 16 x 8 instead of 16 x 2 take 12.3 GB more."""
    shallow, deep = crowded(workers=16), crowded(workers=16, prefetch=8)
    taken = page_cache_bytes(shallow) - page_cache_bytes(deep)
    assert taken == pytest.approx(6 * 16 * 128e6)
    assert hit_ratio(deep, Phase.WARM) < hit_ratio(shallow, Phase.WARM)


def test_more_workers_make_longer_steps_where_they_evict_the_cache() -> None:
    """Eight workers are enough; sixteen and twenty-four make each step longer."""
    steps = [predict(crowded(workers)).timing.step_time.mean for workers in (8, 16, 24)]
    assert steps[0] < 0.8 * steps[1] < 0.8 * steps[2]


def test_overcommitted_ram_does_not_fit() -> None:
    """32 workers of 2 GB and their batches need 76.4 GB of 64 GB: no, and nothing is cached."""
    job = crowded(workers=32)
    ram = host_ram(job)
    assert ram.total == pytest.approx(2e9 + 2e9 + 64e9 + 65 * 128e6)
    assert ram.verdict is Verdict.NO
    assert page_cache_bytes(job) == 0.0
    assert any("host RAM is short" in warning for warning in predict(job).warnings)
