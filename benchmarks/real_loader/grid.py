"""The grid: every configuration several times, in shuffled order, on a quiet machine."""

from __future__ import annotations

import csv
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from bench import NOISY, run, wait_for_quiet

WINDOW_S = 3.2
FEWEST = 24
ROUGH_SAMPLE_S = 0.0032
SEED = 20240

Cell = tuple[int, int, int, float]
COLUMNS = ("workers", "batch_samples", "prefetch_batches", "consumer_sleep_s")


def configurations() -> list[Cell]:
    """Workers, batch size, batches prefetched by each worker, and the consumer's sleep [s]."""
    batches, sleeps = (8, 32, 64), (0.005, 0.02, 0.05, 0.1)
    cells = [(w, b, 2, s) for w in (1, 2, 4) for b in batches for s in sleeps]
    cells += [(0, b, 0, s) for b in batches for s in (0.005, 0.05)]
    cells += [(w, 32, 4, s) for w in (1, 2, 4) for s in (0.02, 0.05)]
    return [*cells, (4, 8, 4, 0.005), (2, 64, 4, 0.1)]


def measure(folder: Path, path: Path, repeats: int, patience_s: float) -> None:
    """Go on with the table at `path` until each configuration has `repeats` quiet runs.

    Runs during which others kept more than `NOISY` cores busy are written down, but done again.
    Gives up after `patience_s`.
    """
    rows = read_rows(path) if path.exists() else []
    number, end = len(rows), time.monotonic() + patience_s
    quiet = Counter(cell_of(row) for row in rows if is_quiet(row))
    while time.monotonic() < end:
        wanting = [cell for cell in configurations() if quiet[cell] < repeats]
        if not wanting:
            break
        random.Random(SEED + number).shuffle(wanting)  # noqa: S311 - an order
        for cell in wanting:
            wait_for_quiet(end)
            row = one_row(folder, cell, number)
            quiet[cell] += is_quiet(row)
            append(path, row)
            number += 1


def is_quiet(row: dict[str, str]) -> bool:
    """Whether a run counts."""
    return float(row["other_load_cores"]) <= NOISY


def cell_of(row: dict[str, str]) -> Cell:
    """The configuration of a run."""
    workers, batch, prefetch = (int(row[name]) for name in COLUMNS[:3])
    return workers, batch, prefetch, float(row[COLUMNS[3]])


def timed_batches(cell: Cell) -> int:
    """How many steps fill the window: whole rounds of the workers."""
    workers, batch, _, step_s = cell
    rough = batch * ROUGH_SAMPLE_S / max(1, min(workers, os.cpu_count() or 1))
    rough = max(rough, step_s) if workers else rough + step_s
    steps, unit = max(FEWEST, round(WINDOW_S / rough)), 2 * max(1, workers)
    return -(-steps // unit) * unit


def one_row(folder: Path, cell: Cell, number: int) -> dict[str, str]:
    """Run one configuration once."""
    workers, batch, prefetch, step_s = cell
    job = {"workers": workers, "batch": batch, "prefetch": prefetch, "step_s": step_s}
    started = datetime.now(UTC).isoformat("T", "seconds")
    found = run("loader", folder, job | {"timed": timed_batches(cell), "seed": 1000 + number})
    print(number, cell, f"{found['mean_step_s']:.4f} s, others {found['other_load_cores']:.3f}")
    row = dict(zip(COLUMNS, cell, strict=True)) | {"order": number, "started": started} | found
    return {key: str(value) for key, value in row.items()}


def read_rows(path: Path) -> list[dict[str, str]]:
    """All runs measured so far."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def append(path: Path, row: dict[str, str]) -> None:
    """Add a run to the table, and the head to an empty one."""
    new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
