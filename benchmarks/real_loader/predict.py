"""Predict the grid from the pieces and compare it with what was measured.  See README.md.

Writes a measurement set: `bases/real-loader.toml` (the scenario), `real_loader.csv` (its rows).
What a row overrides comes from the configuration and the pieces; nothing measured on the grid
goes in.
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
from typing import TypeAlias

import numpy as np

from simulator.equations.memory import batches_in_flight
from simulator.predict import predict
from simulator.reading.scenario import load_scenario

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SHIPPED = HERE.parents[1] / "simulator" / "data" / "measured"
QUIET = 0.05
"""Cores that others may keep busy during a run that counts."""
SAMPLE_BYTES = 3 * 224 * 224 * 4
COLUMNS = ("workers", "batch_samples", "prefetch_batches", "consumer_sleep_s")
STEP, RAM = "step_time_s.mean", "host_ram_bytes.total"

LEFT_OUT = {
    "a core for every process": (
        "hardware.cores=64",
        "hardware.vcpus=64",
        "hardware.contention=0",
    ),
    "busy cores do not slow each other": ("hardware.contention=0",),
    "taking a batch over costs nothing": ("input.receive_per_batch=0 s",),
}
"""What the model would say without one of its parts."""

Cell: TypeAlias = tuple[int, int, int, float]
Table: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What was measured by itself: tables of figures, medians over repeats, SI units."""

    tables: Mapping[str, Table]

    def get(self, table: str, key: str) -> float:
        """One figure."""
        return self.tables[table][key]["median"]

    def at(self, probe: str, key: str, batch: float) -> float:
        """A figure of a probe, between the batch sizes it was measured at."""
        names = [name for name in self.tables if name.startswith(f"{probe}.batch_")]
        points = sorted((float(name.rsplit("_", 1)[1]), self.get(name, key)) for name in names)
        return float(np.interp(batch, *zip(*points, strict=True)))

    @property
    def contention(self) -> float:
        """How much longer work takes on two busy cores than on one, as the scenario states it.

        The model's slow-down of n busy cores is ``1 + contention * (n - 1) / cores``.
        """
        alone = self.get("workers_0.batch_32", "mean_step_s")
        return max(0.0, 2.0 * (self.get("pair", "mean_step_s") / alone - 1.0))

    def sleep(self, asked: float) -> float:
        """How long `time.sleep` takes [s]."""
        names = [name for name in self.tables if name.startswith("sleep_")]
        points = sorted((float(name[6:-2]) / 1e3, self.get(name, "mean_s")) for name in names)
        return asked + float(np.interp(asked, *zip(*points, strict=True)))

    def batch_cost(self, workers: int, batch: int) -> float:
        """CPU time of a batch: inside a loader of one worker, or without workers [s]."""
        return self.at(f"workers_{min(1, workers)}", "mean_step_s", batch)

    def receive_cost(self, workers: int, batch: int) -> float:
        """CPU time of the main process to take a ready batch [s]; none without workers."""
        return self.at("ready_1", "mean_wait_s", batch) if workers else 0.0

    def worker_memory(self, batch: int) -> float:
        """What a further worker adds to the PSS of all [B]."""
        three, one = (self.at(f"memory_{n}", "pss_bytes", batch) for n in (3, 1))
        return (three - one) / 2.0

    def application_memory(self, workers: int, batch: int) -> float:
        """PSS of all processes less what the workers add [B]."""
        if not workers:
            return self.at("memory_0", "pss_bytes", batch)
        return self.at("memory_1", "pss_bytes", batch) - self.worker_memory(batch)


def read_pieces(folder: Path) -> Pieces:
    """The tables that `measure.py` wrote, by dotted name."""
    tables: dict[str, Table] = {}
    for name in ("pieces.toml", "memory.toml"):
        for table, content in tomllib.loads((folder / name).read_text()).items():
            for key, inner in content.items() if table != "about" else ():
                if key.startswith("batch_"):
                    tables[f"{table}.{key}"] = inner
                else:
                    tables.setdefault(table, content)
    return Pieces(tables=tables)


def scenario_text(pieces: Pieces) -> str:
    """The scenario that the rows vary."""
    return f"""\
# A torch DataLoader over 2,000 JPEG files of 93 kB in the page cache, on a virtual machine with two
# cores, and a consumer that sleeps. Every cost is a piece measured by itself; what a worker takes
# for a batch was measured whole, inside a loader of one worker, so reading is part of it.
# Batches in shared memory that nobody has mapped are in no PSS: output_bytes_per_sample is 0.
schema = 1
name = "real-loader"
title = "How fast does a loader on two cores feed a consumer that sleeps?"

[hardware]
machine = "node/benchmark-client"
emulated = 1
storage = "storage/nvme-gen4"
storage_bandwidth = "1000 TB/s"  # nothing is read from it: all lies in the page cache
storage_operations = "1000000000000 IOPS"
vcpus = 2
cores = 2
ram = "25.28 GB"
contention = {pieces.contention:.4f}

[data]
samples = 200000
bytes_per_sample = "93 kB"
cache = "ideal"
read_time = "1 ns"

[input]
loader = "pytorch"
worker_start = "0 s"
receive_per_sample = "0 s"
output_bytes_per_sample = "0 B"

[model]
step_times = [{{ batch_size = 8, time = "5 ms" }}]

[train]
mode = "infer"
batch_size = 8
precision = "fp32"
sync_every_step = true

[memory]
operating_system = "0 B"
"""


def overrides(cell: Cell, pieces: Pieces) -> dict[str, str]:
    """The keys that make the scenario this configuration."""
    workers, batch, prefetch, sleep = cell
    own = f"{pieces.worker_memory(batch):.4g} B" if workers else ""
    return {
        "input.workers": f"{workers}",
        "input.prefetch": f"{prefetch}" if workers else "",
        "train.batch_size": f"{batch}",
        "model.step_times": f'[{{batch_size = {batch}, time = "{pieces.sleep(sleep):.6g} s"}}]',
        "input.per_batch": f"{pieces.batch_cost(workers, batch):.5g} s",
        "input.receive_per_batch": f"{pieces.receive_cost(workers, batch):.5g} s",
        "input.worker_memory": own,
        "memory.application": f"{pieces.application_memory(workers, batch):.4g} B",
    }


def by_cell(runs: Sequence[Mapping[str, str]]) -> dict[Cell, list[Mapping[str, str]]]:
    """The quiet runs of each configuration."""
    found: dict[Cell, list[Mapping[str, str]]] = defaultdict(list)
    for run in runs:
        if float(run["other_load_cores"]) <= QUIET:
            workers, batch, prefetch = (int(run[name]) for name in COLUMNS[:3])
            found[workers, batch, prefetch, float(run[COLUMNS[3]])].append(run)
    return dict(sorted(found.items()))


def rows(runs: Sequence[Mapping[str, str]], pieces: Pieces) -> Iterator[dict[str, str]]:
    """The measurement set, one row a configuration; medians, and range over median as spread."""
    for cell, repeats in by_cell(runs).items():
        workers, batch, prefetch, sleep = cell
        steps = [float(run["mean_step_s"]) for run in repeats]
        pss = [float(run["pss_bytes"]) for run in repeats]
        shared = statistics.median(float(run["shm_files_bytes"]) for run in repeats)
        rss = statistics.median(float(run["rss_bytes"]) for run in repeats)
        yield {
            "id": f"workers-{workers}-batch-{batch}-prefetch-{prefetch}-sleep-{sleep * 1e3:g}ms",
            **overrides(cell, pieces),
            f"measured.{STEP}": f"{statistics.median(steps):.5g}",
            f"spread.{STEP}": f"{spread(steps):.3g}",
            f"measured.{RAM}": f"{statistics.median(pss):.4g}",
            f"spread.{RAM}": f"{spread(pss):.3g}",
            "rss_bytes": f"{rss:.4g}",
            "shared_memory_bytes": f"{shared:.4g}",
            "repeats": f"{len(repeats)}",
        }


def spread(values: Sequence[float]) -> float:
    """Range of repeats over their median."""
    return (max(values) - min(values)) / statistics.median(values)


def base_of(folder: Path) -> Path:
    """The scenario that the rows of a set in `folder` change."""
    return folder / "bases" / "real-loader.toml"


def write_set(results: Path, folder: Path) -> list[dict[str, str]]:
    """Write scenario and rows into `folder`; return the rows."""
    pieces = read_pieces(results)
    base_of(folder).parent.mkdir(parents=True, exist_ok=True)
    base_of(folder).write_text(scenario_text(pieces))
    with (results / "grid.csv").open(newline="") as stream:
        found = list(rows(list(csv.DictReader(stream)), pieces))
    with (folder / "real_loader.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    return found


def errors(
    found: Sequence[Mapping[str, str]], base: Path, more: Sequence[str] = ()
) -> dict[str, list[float]]:
    """Signed relative errors of the predictions, by metric, row by row; `more` overrides last."""
    wrong: dict[str, list[float]] = {STEP: [], RAM: []}
    for row in found:
        keys = [f"{key}={text}" for key, text in row.items() if is_override(key) and text]
        result = predict(load_scenario(str(base), overrides=[*keys, *more]))
        ours = {STEP: result.timing.step_time.mean, RAM: result.host_ram.total}
        for metric, value in ours.items():
            wrong[metric].append(value / float(row[f"measured.{metric}"]) - 1.0)
    return wrong


def is_override(column: str) -> bool:
    """Whether a column of the set is a key of the scenario."""
    return "." in column and column.partition(".")[0] not in {"measured", "spread"}


def in_flight_error(found: Sequence[Mapping[str, str]]) -> list[float]:
    """Error of the most batches in flight, for rows whose consumer is the slower side."""
    wrong = []
    for row in found:
        workers, batch = int(row["input.workers"]), int(row["train.batch_size"])
        asleep = float(row["id"].rpartition("-")[2][:-2]) / 1e3
        cost = float(row["input.per_batch"].split()[0])
        if workers and cost / min(workers, 2) < 0.9 * asleep:
            most = batches_in_flight(int(row["input.prefetch"]), workers) * batch * SAMPLE_BYTES
            wrong.append(most / float(row["shared_memory_bytes"]) - 1.0)
    return wrong


def summary(values: Sequence[float]) -> str:
    """Mean, median, 90th percentile and largest absolute error, and the mean signed one."""
    size = np.abs(values)
    figures = (size.mean(), np.median(size), np.quantile(size, 0.9), size.max(), np.mean(values))
    return " | ".join((f"{len(values)}", *(f"{figure:.1%}" for figure in figures)))


def main() -> None:
    """Write the set, predict it, print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--set", type=Path, default=SHIPPED, help="folder of the set to write")
    parser.add_argument("--rows", action="store_true", help="print every row")
    given = parser.parse_args()
    found, base = write_set(given.results, given.set), base_of(given.set)
    wrong = errors(found, base)
    for index, row in enumerate(found if given.rows else ()):
        figures = ", ".join(f"{metric} {values[index]:+.1%}" for metric, values in wrong.items())
        print(f"{row['id']}: {figures}")
    print("| metric | rows | configurations | mean | median | p90 | largest | bias |")
    print("|---|---|---|---|---|---|---|---|")
    for metric, values in wrong.items():
        print(f"| {metric} | all | {summary(values)} |")
        for workers in (0, 1, 2, 4):
            some = [
                value
                for value, row in zip(values, found, strict=True)
                if row["input.workers"] == str(workers)
            ]
            print(f"| {metric} | {workers} workers | {summary(some)} |")
    for name, more in LEFT_OUT.items():
        print(f"| {STEP} | all, {name} | {summary(errors(found, base, more)[STEP])} |")
    print(f"| batches in shared memory | consumer slower | {summary(in_flight_error(found))} |")


if __name__ == "__main__":
    main()
