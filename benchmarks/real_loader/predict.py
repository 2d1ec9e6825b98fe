"""Predict the grid from the pieces and set it beside what was measured.  See README.md.

Nothing here reads a measured step or memory of the grid before the prediction is made.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.files.scenario import load_scenario
from simulator.predict import predict

HERE = Path(__file__).parent
RESULTS = HERE / "results"
QUIET = 0.05
"""Cores that others may keep busy beside a run that counts."""

KEYS = ("workers", "batch_samples", "prefetch_batches", "consumer_sleep_s")
Cell = tuple[float, float, float, float]
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What was measured by itself: medians over repeats, SI units."""

    tables: Mapping[str, Mapping[str, Mapping[str, float]]]

    def get(self, table: str, key: str) -> float:
        """One figure."""
        return self.tables[table][key]["median"]

    def at(self, loader: str, key: str, batch: float) -> float:
        """A figure of the loader probe `loader`, between the batch sizes it was measured at."""
        names = [n for n in self.tables if n.startswith(f"{loader}.batch_")]
        points = sorted((float(n.rsplit("_", 1)[1]), self.get(n, key)) for n in names)
        return float(np.interp(batch, *zip(*points, strict=True)))

    @property
    def contention(self) -> float:
        """Slow-down of two busy cores, in the model's unit: of all cores busy, less 1, by share."""
        alone = self.get("workers_0.batch_32", "mean_step_s")
        return max(0.0, 2.0 * (self.get("pair", "mean_step_s") / alone - 1.0))

    def sleep(self, asked: float) -> float:
        """How long `time.sleep` takes [s]."""
        names = [n for n in self.tables if n.startswith("sleep_")]
        points = sorted((float(n[6:-2]) / 1e3, self.get(n, "mean_s")) for n in names)
        return asked + float(np.interp(asked, *zip(*points, strict=True)))

    def worker_memory(self, batch: float) -> float:
        """What a further worker adds to the PSS [B]."""
        three, one = (self.at(f"ready_{n}", "pss_bytes", batch) for n in (3, 1))
        return (three - one) / 2.0

    def application_memory(self, workers: float, batch: float) -> float:
        """PSS of the tree less what workers add [B]."""
        if workers == 0:
            return self.at("workers_0", "pss_bytes", batch)
        return self.at("ready_1", "pss_bytes", batch) - self.worker_memory(batch)

    def batch_cost(self, workers: float, batch: float) -> float:
        """CPU time to make a batch inside a loader [s]."""
        return self.at("workers_1" if workers else "workers_0", "mean_step_s", batch)

    def receive_cost(self, workers: float, batch: float) -> float:
        """CPU time of the main process to take a ready batch [s]; none without workers."""
        return self.at("ready_1", "mean_wait_s", batch) if workers else 0.0


def overrides(cell: Cell, pieces: Pieces) -> dict[str, str]:
    """The keys of the scenario that make it this configuration."""
    workers, batch, prefetch, sleep = cell
    keys = {
        "input.workers": f"{workers:.0f}",
        "train.batch_size": f"{batch:.0f}",
        "model.step_times": f'[{{batch_size = {batch:.0f}, time = "{pieces.sleep(sleep):.9f} s"}}]',
        "input.per_batch": f"{pieces.batch_cost(workers, batch):.9f} s",
        "input.receive_per_batch": f"{pieces.receive_cost(workers, batch):.9f} s",
        "memory.application": f"{pieces.application_memory(workers, batch):.0f} B",
        "input.worker_memory": f"{pieces.worker_memory(batch):.0f} B",
    }
    if prefetch:
        keys["input.prefetch"] = f"{prefetch:.0f}"
    return keys


def scenario_text(pieces: Pieces) -> str:
    """The scenario that the grid varies."""
    return f"""# Written by predict.py from pieces.toml.
schema = 1
name = "real-loader"
title = "A torch DataLoader over JPEG files on two cores, with a consumer that sleeps"

[hardware]
machine = "node/two-cores"
storage = "storage/ebs-gp3"
contention = {pieces.contention:.4f}

[data]
name = "2,000 JPEG files"
samples = 200000
bytes_per_sample = "92.7 kB"
cache = "ideal"
read_time = "1 ns"  # part of per_batch, which was measured inside a loader

[input]
loader = "pytorch"
workers = 0
receive_per_sample = "0 s"
worker_start = "0 s"
output_bytes_per_sample = "602112 B"

[train]
batch_size = 8
precision = "fp32"
sync_every_step = true

[memory]
operating_system = "0 B"
"""


def measured(rows: Sequence[Row], key: str) -> dict[Cell, list[float]]:
    """Quiet repeats of a column, by configuration."""
    found: dict[Cell, list[float]] = defaultdict(list)
    for row in rows:
        if float(row["other_load_cores"]) <= QUIET:
            workers, batch, prefetch, sleep = (float(row[name]) for name in KEYS)
            found[workers, batch, prefetch, sleep].append(float(row[key]))
    return found


def spread(values: Sequence[float]) -> float:
    """Range of repeats over their median."""
    return (max(values) - min(values)) / statistics.median(values)


def compared(rows: Sequence[Row], pieces: Pieces, base: Path) -> Iterator[dict[str, object]]:
    """Each configuration: what was measured, and what is predicted."""
    steps, memories = measured(rows, "mean_step_s"), measured(rows, "pss_bytes")
    shm = measured(rows, "shm_files_bytes")
    for cell in sorted(steps):
        keys = overrides(cell, pieces)
        asked = load_scenario(
            str(base),
            overrides=[f"{key}={value}" for key, value in keys.items()],
            profiles=[HERE / "profiles"],
        )
        found = predict(asked)
        items = found.host_ram.items
        step, pss = statistics.median(steps[cell]), statistics.median(memories[cell])
        ours = items["application"] + items["workers"]
        yield dict(zip(KEYS, cell, strict=True)) | {
            "repeats": len(steps[cell]),
            "step_s": step,
            "step_spread": spread(steps[cell]),
            "predicted_step_s": found.timing.step_time.mean,
            "step_error": found.timing.step_time.mean / step - 1.0,
            "pss_bytes": pss,
            "pss_spread": spread(memories[cell]),
            "predicted_pss_bytes": ours,
            "pss_error": ours / pss - 1.0,
            "shm_bytes": statistics.median(shm[cell]),
            "predicted_shm_bytes": items["batches_in_flight"],
        }


def summary(found: Sequence[Mapping[str, object]], key: str) -> str:
    """Mean, median, 90th percentile and largest absolute error."""
    errors = np.abs([float(str(row[key])) for row in found])
    figures = (errors.mean(), np.median(errors), np.quantile(errors, 0.9), errors.max())
    text = ", ".join(f"{n} {v:.1%}" for n, v in zip(("mean", "median", "p90", "max"), figures))
    return f"{key}: {text} ({len(errors)} configurations)"


def main() -> None:
    """Write the scenario and the table, print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    folder = parser.parse_args().results
    pieces = Pieces(tables=flat(tomllib.loads((folder / "pieces.toml").read_text())))
    base = folder / "scenario.toml"
    base.write_text(scenario_text(pieces))
    with (folder / "grid.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = list(compared(rows, pieces, base))
    with (folder / "predictions.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    for row in found:
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    for key in ("step_error", "pss_error"):
        print(summary(found, key))


def flat(tables: Mapping[str, dict]) -> dict[str, dict]:
    """The tables by dotted name."""
    out: dict[str, dict] = {}
    for name, table in tables.items():
        nested = {k: v for k, v in table.items() if k.startswith("batch_")}
        out |= {f"{name}.{k}": v for k, v in nested.items()} or {name: table}
    return out


if __name__ == "__main__":
    main()
