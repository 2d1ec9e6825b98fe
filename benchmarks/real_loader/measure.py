"""Measure the pieces, then the grid.  See README.md."""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import images

HERE = Path(__file__).parent
RESULTS = HERE / "results"
WINDOW_S = 3.2
FEW = 24
ROUGH_SAMPLE_S = 0.0032
NOISY = 0.05
SPIN = "while True: pass"


def configurations() -> list[dict]:
    """Name the grid."""
    grid = [
        (w, b, 2, s)
        for w in (1, 2, 4)
        for b in (8, 32, 64)
        for s in (0.005, 0.02, 0.05, 0.1)
    ]
    grid += [(0, b, 2, s) for b in (8, 32, 64) for s in (0.005, 0.05)]
    grid += [(w, 32, 4, s) for w in (1, 2, 4) for s in (0.02, 0.05)]
    grid += [(4, 8, 4, 0.005), (2, 64, 4, 0.1)]
    names = ("workers", "batch", "prefetch", "step_s")
    return [dict(zip(names, row, strict=True)) for row in grid]


def busy_s() -> tuple[float, float]:
    """Busy and stolen CPU seconds of the whole machine since it started."""
    fields = [int(x) for x in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _idle, _io, irq, soft, steal = fields[:8]
    return (user + nice + system + irq + soft) / tick, steal / tick


def own_s() -> float:
    """CPU seconds of this process and of its finished children."""
    return sum(
        u.ru_utime + u.ru_stime
        for u in map(
            resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
    )


def call(job: dict) -> dict:
    """Do one job in a fresh process; add the load that others put on the machine."""
    busy, steal = busy_s()
    own, start = own_s(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / "one_run.py"), json.dumps(job)],
        check=True,
        capture_output=True,
        text=True,
    )
    took = time.perf_counter() - start
    busy2, steal2 = busy_s()
    result = json.loads(done.stdout.strip().splitlines()[-1])
    result["other_load_cores"] = max(0.0, (busy2 - busy - (own_s() - own)) / took)
    result["stolen_cores"] = (steal2 - steal) / took
    result["process_s"] = took
    return result


def timed_batches(c: dict) -> int:
    """Choose how many steps fill the window; a multiple of the workers."""
    cores = os.cpu_count() or 1
    rough = c["batch"] * ROUGH_SAMPLE_S / max(1, min(c["workers"], cores))
    rough = rough + c["step_s"] if c["workers"] == 0 else max(rough, c["step_s"])
    steps = max(FEW, round(WINDOW_S / rough))
    unit = 2 * max(1, c["workers"])
    return -(-steps // unit) * unit


def grid(folder: Path, repeats: int, results: Path, patience_s: float) -> None:
    """Measure every configuration in shuffled order until it has `repeats` quiet runs.

    Runs beside which others kept more than `NOISY` cores busy are written down too, but done
    again; for at most `patience_s`.
    """
    path, configs = results / "grid.csv", configurations()
    rows = read_rows(path) if path.exists() else []
    number, end = len(rows), time.monotonic() + patience_s
    while time.monotonic() < end:
        done = Counter(key_of(row) for row in rows if float(row["other_load_cores"]) <= NOISY)
        least = [c for c in configs if done[key_of(as_columns(c))] < repeats]
        if not least:
            break
        random.Random(20240 + number).shuffle(least)
        for c in least:
            wait_for_quiet(end)
            row = one_row(folder, c, number)
            rows.append(row)
            append(path, row)
            number += 1


def as_columns(c: dict) -> dict:
    """Name a configuration as the columns of the table do."""
    return {
        "workers": c["workers"],
        "batch_samples": c["batch"],
        "prefetch_batches": c["prefetch"] if c["workers"] else 0,
        "consumer_sleep_s": c["step_s"],
    }


def key_of(row: dict) -> tuple[float, ...]:
    """Tell configurations apart."""
    names = ("workers", "batch_samples", "prefetch_batches", "consumer_sleep_s")
    return tuple(float(row[name]) for name in names)


def read_rows(path: Path) -> list[dict]:
    """Read all runs measured so far."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def append(path: Path, row: dict) -> None:
    """Add a run to the table, and its head if there is none."""
    new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def one_row(folder: Path, c: dict, number: int) -> dict:
    """Measure one configuration once."""
    job = {"kind": "loader", "folder": str(folder), **c}
    job |= {"timed": timed_batches(c), "seed": 1000 + number}
    started = datetime.datetime.now(datetime.UTC).isoformat("T", "seconds")
    result = call(job)
    print(number, as_columns(c), f"{result['mean_step_s']:.4f}", f"{result['other_load_cores']:.3f}", flush=True)
    return as_columns(c) | {"repeat": 0, "order": number, "started": started} | result


def wait_for_quiet(end: float) -> None:
    """Wait until the machine has been idle for a second, or until `end`."""
    while time.monotonic() < end:
        before, _ = busy_s()
        time.sleep(1.0)
        if busy_s()[0] - before < NOISY:
            return
        time.sleep(1.0)


class Spinners:
    """`count` processes that only compute, for the time of a `with`."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        self.running = [
            subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(self.count)
        ]

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.kill()
            process.wait()


def together(jobs: list[dict]) -> list[dict]:
    """Do several jobs at the same time."""
    running = [
        subprocess.Popen(
            [sys.executable, str(HERE / "one_run.py"), json.dumps(job)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for job in jobs
    ]
    return [json.loads(p.communicate()[0].strip().splitlines()[-1]) for p in running]


def loader_job(folder: Path, seed: int, workers: int, batch: int, **more: float) -> dict:
    """Describe a loader with a consumer that takes batches as fast as it can."""
    job = {"kind": "loader", "folder": str(folder), "seed": seed, "workers": workers}
    return job | {"batch": batch, "prefetch": 2, "step_s": 0.0, "timed": 24} | more


def pieces_once(folder: Path, seed: int) -> dict[str, float]:
    """Measure every piece once; names are flat."""
    out: dict[str, float] = {}

    def keep(name: str, result: dict) -> None:
        out.update({f"{name}.{key}": value for key, value in result.items()})

    keep("hot_loop", call({"kind": "hot_loop", "folder": str(folder), "samples": 400}))
    for step, count in ((0.005, 100), (0.02, 40), (0.05, 20), (0.1, 10)):
        job = {"kind": "naps", "step_s": step, "count": count}
        keep(f"sleep_{step * 1e3:.0f}ms", call(job))
    for batch, timed in ((8, 100), (32, 30), (64, 16)):
        keep(f"workers_0.batch_{batch}", call(loader_job(folder, seed, 0, batch, timed=timed)))
        keep(f"workers_1.batch_{batch}", call(loader_job(folder, seed, 1, batch, timed=timed)))
        slow = {"step_s": 0.02 + batch * 0.005, "timed": 16 if batch > 8 else 40}
        keep(f"ready_1.batch_{batch}", call(loader_job(folder, seed, 1, batch, **slow)))
        if batch == 32:
            continue
        with Spinners(2):
            keep(f"ready_1_busy.batch_{batch}", call(loader_job(folder, seed, 1, batch, **slow | {"timed": 12})))
    for batch in (8, 64):
        slow = {"step_s": 0.02 + batch * 0.002, "timed": 12}
        keep(f"ready_3.batch_{batch}", call(loader_job(folder, seed, 3, batch, **slow)))
    pair = together([loader_job(folder, seed + i, 0, 32, timed=32) for i in range(2)])
    out["pair.mean_step_s"] = statistics.fmean(p["mean_step_s"] for p in pair)
    keep("workers_2.batch_32", call(loader_job(folder, seed, 2, 32, timed=40)))
    return out


def pieces(folder: Path, repeats: int, results: Path) -> None:
    """Write medians and every repeat of every piece."""
    rows = [pieces_once(folder, 7000 + 100 * r) for r in range(repeats)]
    (results / "pieces_raw.json").write_text(json.dumps(rows, indent=0))
    lines = [f"# medians of {repeats} repeats; SI units", "[about]"]
    lines += [f"{k} = {json.dumps(v)}" for k, v in about().items()]
    tables: dict[str, list[str]] = {}
    for name in rows[0]:
        table, key = name.rsplit(".", 1)
        values = sorted(row[name] for row in rows)
        tables.setdefault(table, []).append(
            f"{key} = {{ median = {statistics.median(values):.6g}, "
            f"low = {values[0]:.6g}, high = {values[-1]:.6g} }}"
        )
    for table, entries in tables.items():
        lines += ["", f"[{table}]", *entries]
    (results / "pieces.toml").write_text("\n".join(lines) + "\n")


def about() -> dict[str, object]:
    """Say where, when and with what."""
    cpu = Path("/proc/cpuinfo").read_text()
    model = [x.split(":")[1].strip() for x in cpu.splitlines() if "model name" in x][0]
    names = ("torch", "pillow", "numpy", "psutil")
    return {
        "date": datetime.date.today().isoformat(),
        "cpu_model": model,
        "logical_cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def prepare(folder: Path, count: int, seed: int) -> Path:
    """Make the files unless they are there; read them once so they are cached."""
    if len(list(folder.glob("*.jpg"))) != count:
        images.write_images(folder, count, seed)
    sizes = [len(path.read_bytes()) for path in folder.glob("*.jpg")]
    print(folder, count, "files of", statistics.fmean(sizes), "bytes on average")
    return folder


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pieces", "grid", "all"])
    default = Path(tempfile.gettempdir()) / "real_loader"
    parser.add_argument("--folder", type=Path, default=default)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--patience", type=float, default=1800.0)
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    if given.what in {"pieces", "all"}:
        folder = prepare(given.folder / "probe", 500, 2)
        pieces(folder, given.repeats, given.results)
    if given.what in {"grid", "all"}:
        folder = prepare(given.folder / "grid", 2000, 1)
        grid(folder, given.repeats, given.results, given.patience)


if __name__ == "__main__":
    main()
