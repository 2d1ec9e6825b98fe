"""Score `plan` on published values of projects that no figure was fitted to.

    python evidence/foreign.py TABLES [--family WORD] [--as-written]

`TABLES` is a folder with ``foreign_runs.csv`` (one published value a row: `metric`, `published`,
`scale` from samples per second to the published unit) and ``foreign_runs/<id>.toml``, the scenario
written from the publication alone. What the publication states and had no key when that was
written is added: its framework (`framework_named`) where there are kernels of it, and the order of
images that the name of the source's file has (``nhwc``, ``nchw``). With ``--as-written`` scenarios
are taken as they are. Prints, by family, the median and the 90th percentile of the relative error
and the share of values inside the 80% interval, the error of ratios between accelerators, the
values outside of their interval that no warning tells of (one in five may be), then the worst
misses.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tomllib
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from simulator.errors import BrokenInvariant, PlanError
from simulator.predict import predict
from simulator.reading.fitted.kernels import frameworks
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction

_NOT_ALLOCATED = ("context", "collective_buffers", "workspace")
"""Items of device memory that a framework's own allocator does not see."""
_NO_GPU_RATES = ("mem_gb", "MB_s")
_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One published value and its prediction, with the 80% interval where there is one."""

    name: str
    family: str
    metric: str
    published: float
    predicted: float
    low: float | None
    high: float | None
    warned: bool
    problem: str = ""

    @property
    def error(self) -> float:
        """Relative error, positive where the prediction is too high."""
        return self.predicted / self.published - 1.0

    def error_ratio(self, other: Scored) -> float:
        """Relative error of the ratio of this one to another."""
        return (1.0 + self.error) / (1.0 + other.error) - 1.0

    @property
    def covered(self) -> bool | None:
        """Return whether the interval holds the published value; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.published <= self.high


def stated(row: dict[str, str]) -> tuple[str, ...]:
    """Return facts of a row's publication that its scenario lacks, as overrides.

    Examples
    --------
    >>> stated({"framework_named": "nanotron", "where": ""})
    ('software.framework=nanotron',)
    >>> stated({"framework_named": "", "where": "benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv"})
    ('software.memory_format=channels-last',)
    """
    framework = row["framework_named"].lower()
    known = framework in frameworks(compiled=False)
    said = [order for word, order in _ORDERS.items() if f"-{word}-" in row["where"]]
    return (
        *((f"software.framework={framework}",) if known else ()),
        *(f"software.memory_format={order}" for order in said),
    )


_ORDERS: Final = {"nhwc": "channels-last", "nchw": "channels-first"}


def score(row: dict[str, str], scenarios: Path, *, as_written: bool = False) -> Scored:
    """Predict one row's scenario and compare it with the published value."""
    overrides = () if as_written else stated(row)
    published, scale = float(row["published"]), float(row["scale"] or 1.0)
    predicted, low, high, warned, problem = np.nan, None, None, False, ""
    try:
        found = predict(load_scenario(str(scenarios / f"{row['id']}.toml"), overrides=overrides))
        predicted, low, high = _figure(found, row["metric"], scale)
        warned = any("outside" in warning for warning in found.warnings)
    except (BrokenInvariant, PlanError) as refused:
        problem = str(refused).splitlines()[0]
    return Scored(
        name=row["id"],
        family=row["family"],
        metric=row["metric"],
        published=published,
        predicted=predicted,
        low=low,
        high=high,
        warned=warned,
        problem=problem,
    )


def _figure(
    found: Prediction, metric: str, scale: float
) -> tuple[float, float | None, float | None]:
    if metric == "mem_gb":
        if found.memory is None:
            return np.nan, None, None
        items = found.memory.items.items()
        held = sum(size for name, size in items if name not in _NOT_ALLOCATED) / _GB
        band = found.interval.get("gpu_memory_bytes.total")
        if band is None:
            return held, None, None
        whole = sum(size for _, size in items)
        return held, held * band["p10"] / whole, held * band["p90"] / whole
    rate, band = found.timing.throughput * scale, found.interval.get("throughput_samples_per_s")
    if band is None:
        return rate, None, None
    return rate, band["p10"] * scale, band["p90"] * scale


def table(rows: list[Scored]) -> str:
    """Errors and coverage by family, and of all but memory together."""
    names = sorted({row.family for row in rows})
    lines = [f"{'family':28s} {'n':>4s} {'median':>7s} {'p90':>7s} {'in 80%':>7s} {'refused':>7s}"]
    groups = [(name, [row for row in rows if row.family == name]) for name in names]
    groups.append(("all but memory", [row for row in rows if row.metric != "mem_gb"]))
    for name, own in groups:
        errors = [100.0 * abs(row.error) for row in own if np.isfinite(row.error)]
        held = [row.covered for row in own if row.covered is not None]
        median, p90 = np.percentile(errors, [50, 90]) if errors else (np.nan, np.nan)
        share = f"{100.0 * np.mean(held):6.0f}%" if held else "      -"
        lines.append(
            f"{name:28s} {len(own):4d} {median:7.1f} {p90:7.1f} {share:>7s}"
            f" {sum(bool(row.problem) for row in own):7d}"
        )
    return "\n".join(lines)


def speedups(rows: list[dict[str, str]], found: list[Scored], scenarios: Path) -> list[float]:
    """Errors of predicted ratios between accelerators, of runs that differ in nothing else.

    Batches may differ as well, since suites fill the memory of each.
    """
    alike: dict[tuple[str, ...], list[Scored]] = defaultdict(list)
    for row, one in zip(rows, found, strict=True):
        if row["gpu"] and row["metric"] not in _NO_GPU_RATES and np.isfinite(one.predicted):
            document = tomllib.loads((scenarios / f"{row['id']}.toml").read_text(encoding="utf-8"))
            job = {key: document[key] for key in document.keys() - {"hardware", "name", "title"}}
            train = {key: value for key, value in job["train"].items() if key != "batch_size"}
            data = {key: value for key, value in job["data"].items() if key != "samples"}
            said = json.dumps({**job, "train": train, "data": data}, sort_keys=True)
            alike[row["source"], row["n"], row["metric"], said].append(one)
    pairs = (pair for runs in alike.values() for pair in combinations(runs, 2))
    slow_fast = (sorted(pair, key=lambda one: one.published) for pair in pairs)
    return [fast.error_ratio(slow) for slow, fast in slow_fast]


def untold(rows: list[Scored]) -> list[str]:
    """Values outside of their interval of which no warning tells that they may be."""
    return [f"{row.name} {row.metric}" for row in rows if row.covered is False and not row.warned]


def main() -> int:
    """Read the table, predict every row, print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--family", default="", help="only families that hold this word")
    parser.add_argument("--as-written", action="store_true", help="the scenarios' own framework")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worst", type=int, default=15)
    args = parser.parse_args()
    with (args.tables / "foreign_runs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if args.family in row["family"]]
    with ProcessPoolExecutor(args.jobs) as pool:
        one = partial(score, scenarios=args.tables / "foreign_runs", as_written=args.as_written)
        found = list(pool.map(one, rows))
    sys.stdout.write(table(found) + "\n\n")
    ratios = np.abs(speedups(rows, found, args.tables / "foreign_runs"))
    if ratios.size:
        median, p90 = 100.0 * np.percentile(ratios, [50, 90])
        sys.stdout.write(
            f"from one accelerator to a faster one: {ratios.size} pairs, error of the ratio"
            f" {median:.1f} (p90 {p90:.1f})\n\n"
        )
    silent = untold(found)
    quiet = sum(row.covered is not None and not row.warned for row in found)
    told = f": {', '.join(silent)}" if silent else ""
    sys.stdout.write(f"outside, of {quiet} without a warning: {len(silent)}{told}\n\n")
    for row in sorted(found, key=lambda r: -abs(r.error) if r.error == r.error else 0.0)[
        : args.worst
    ]:
        sys.stdout.write(
            f"{row.name:32s} {row.metric:10s} published {row.published:9.4g} predicted"
            f" {row.predicted:9.4g} ({100 * row.error:+.0f}%)"
            f"{'' if row.covered is None else ' inside' if row.covered else ' OUTSIDE'}"
            f"{' warned' if row.warned else ''} {row.problem}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
