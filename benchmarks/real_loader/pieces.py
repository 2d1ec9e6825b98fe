"""The pieces: what a sample, a batch, a hand-over and a worker cost, each measured by itself."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import Spinners, about, finish, loader_job, run, start

Figures = dict[str, float]
NAPS = {0.005: 100, 0.02: 40, 0.05: 20, 0.1: 10}
BATCHES = {8: 100, 32: 30, 64: 16}
"""Batch sizes, and how many batches are timed."""
MEMORY_BATCHES = {8: 40, 32: 20, 64: 12}
"""Batch sizes, and how many batches each worker has made before memory is looked at."""


def time_pieces(folder: Path, seed: int) -> dict[str, Figures]:
    """Every piece of time once."""
    found = {"hot_loop": run("hot_loop", folder, {"samples": 400})}
    for step_s, count in NAPS.items():
        job = {"step_s": step_s, "count": count}
        found[f"sleep_{step_s * 1e3:.0f}ms"] = run("naps", folder, job)
    for batch, timed in BATCHES.items():
        found |= dict(_of_batch(folder, seed, batch, timed))
    running = [start("loader", folder, loader_job(seed + i, 0, 32, timed=32)) for i in range(2)]
    steps = [finish(process)["mean_step_s"] for process in running]
    found["pair"] = {"mean_step_s": statistics.fmean(steps)}
    found["workers_2.batch_32"] = run("loader", folder, loader_job(seed, 2, 32, timed=40))
    return {name: _only(figures, memory=False) for name, figures in found.items()}


def _only(figures: Figures, *, memory: bool) -> Figures:
    """The figures of memory, or all others."""
    return {k: v for k, v in figures.items() if k.endswith("_bytes") is memory}


def _of_batch(folder: Path, seed: int, batch: int, timed: int) -> Iterator[tuple[str, Figures]]:
    """One batch size: made inline, made by a worker, taken when ready, taken on busy cores."""
    for workers in (0, 1):
        job = loader_job(seed, workers, batch, timed=timed)
        yield f"workers_{workers}.batch_{batch}", run("loader", folder, job)
    slow = {"step_s": 0.02 + batch * 0.005, "timed": min(40, max(16, 320 // batch))}
    yield f"ready_1.batch_{batch}", run("loader", folder, loader_job(seed, 1, batch, **slow))
    with Spinners(2):
        busy = run("loader", folder, loader_job(seed, 1, batch, **slow | {"timed": 12}))
    yield f"ready_1_busy.batch_{batch}", busy


def memory_pieces(folder: Path, seed: int) -> dict[str, Figures]:
    """Memory with no, one and three workers, once; a busy machine does not matter for it."""
    found = {}
    for batch, each in MEMORY_BATCHES.items():
        for workers in (0, 1, 3):
            job = loader_job(seed, workers, batch, timed=each * max(1, workers))
            figures = _only(run("loader", folder, job), memory=True)
            found[f"memory_{workers}.batch_{batch}"] = figures
    return found


def write(path: Path, repeats: Sequence[dict[str, Figures]]) -> None:
    """Median, lowest and highest of the repeats of every figure, as TOML."""
    lines = [f"# Medians of {len(repeats)} repeats, SI units.  Written by measure.py.", "[about]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in about().items()]
    for name, figures in repeats[0].items():
        lines += ["", f"[{name}]"]
        for key in figures:
            values = sorted(repeat[name][key] for repeat in repeats)
            middle, low, high = statistics.median(values), values[0], values[-1]
            lines.append(f"{key} = {{ median = {middle:.6g}, low = {low:.6g}, high = {high:.6g} }}")
    path.write_text("\n".join(lines) + "\n")
