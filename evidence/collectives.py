"""Fit how long collectives take inside a machine, by message size and number of ranks.

    python evidence/collectives.py TABLES [--write]

`TABLES` is a folder with ``kernels/nccl_by_gpu.csv``: latencies of NCCL collectives over 2, 4 and 8
GPUs of one machine. A curve of a link, an operation and a number of ranks is the best of
`REGIMES` protocols at each size, each with what an empty message takes and the bus bandwidth it
nears; these are found by least squares on the logarithm of the median time at each size. Published
bus bandwidths of one large message (`LARGE`) are points of their curve like the others. Prints how
far the curves are from the medians; ``--write`` puts them into ``hardware_profiles/link``.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simulator.equations.collectives import ring_wire_bytes, shard_bytes

Vector = NDArray[np.float64]

PROFILES: Final = Path(__file__).parents[1] / "hardware_profiles" / "link"
REGIMES: Final = 2
"""A protocol for small messages and one for large ones; a third is not determined by the data."""
STARTS: Final = 24
SEED: Final = 1
SOURCE: Final = "AIC-nccl"
DATE: Final = "undated"
_ELEMENT: Final = 2.0
"""Bytes of an element; the table counts messages in elements of fp16 [B]."""
_MILLI: Final = 1e-3

GPUS: Final = {
    "nvlink3": ("a100_sxm",),
    "nvlink4": ("h100_sxm", "h200_sxm"),
    "nvlink5": ("b200_sxm", "b300_sxm", "gb200", "gb300"),
    "pcie-gen5-x16": ("rtx_pro_6000_server",),
}
"""Which GPUs of the table speak for a link. Its L40S (PCIe 4) speak for their own box alone: 20, 5
and 1.4 GB/s over 2, 4 and 8 GPUs, since its processors forward what passes between sockets."""
OPERATIONS: Final = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
_GIB: Final = 2.0**30
LARGE: Final = {
    # stas00/ml-engineering@744d01e network/README.md L82, L923-976: bytes, bus bandwidth [GB/s]
    ("nvlink3", "all-reduce", 8): (8.0 * _GIB, 235.0),
    ("nvlink4", "all-reduce", 8): (8.0 * _GIB, 473.1),
    ("nvlink4", "all-gather", 8): (16.0 * _GIB, 361.4),
    ("nvlink4", "reduce-scatter", 8): (16.0 * _GIB, 362.9),
    ("nvlink5", "all-reduce", 8): (8.0 * _GIB, 838.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A fitted curve: latencies [s] and bus bandwidths [B/s] of its regimes, and what it missed."""

    link: str
    operation: str
    ranks: int
    latencies: Vector
    bandwidths: Vector
    devices: tuple[str, ...]
    medians: int
    misses: Vector

    def text(self) -> str:
        """The curve as a table of a link's profile."""
        regimes = "".join(
            f'  {{ latency = "{1e6 * latency:.4g} us", bandwidth = "{1e-9 * rate:.4g} GB/s" }},\n'
            for latency, rate in zip(self.latencies, self.bandwidths, strict=True)
        )
        off, most = 100.0 * np.median(self.misses), 100.0 * np.quantile(self.misses, 0.9)
        return (
            "[[collective]]\n"
            f'operation = "{self.operation}"\n'
            f"ranks     = {self.ranks}\n"
            "machines  = 1\n"
            f"regimes   = [\n{regimes}]\n"
            f'source    = "{SOURCE}"\n'
            f'date      = "{DATE}"\n'
            f'note      = "fitted by evidence/collectives.py to {self.medians} sizes on'
            f" {', '.join(self.devices)}: median deviation {off:.1f} %, nine in ten within"
            f' {most:.0f} %"\n'
        )


def curves(table: pd.DataFrame) -> Iterator[Curve]:
    """A curve for every link, operation and number of ranks that the table has."""
    table = table[table.nccl_dtype == "half"]
    for link, gpus in GPUS.items():
        for spelt, operation in OPERATIONS.items():
            own = table[table.gpu.isin(gpus) & (table.op_name == spelt)]
            for ranks, rows in own.groupby("num_gpus"):
                yield fitted(link, operation, int(str(ranks)), rows)


def fitted(link: str, operation: str, ranks: int, rows: pd.DataFrame) -> Curve:
    """Return the curve of one operation over a number of ranks."""
    medians = rows.groupby("message_size").latency.median()
    sizes = medians.index.to_numpy(dtype=float) * _ELEMENT
    times = medians.to_numpy(dtype=float) * _MILLI
    large = LARGE.get((link, operation, ranks))
    if large is not None:
        size, rate = large
        sizes = np.append(sizes, size)
        times = np.append(times, wire(operation, size, ranks) / (rate * 1e9))
    moved = np.array([wire(operation, size, ranks) for size in sizes])
    latencies, bandwidths = fit(moved, times)
    misses = np.abs(best(latencies, bandwidths, moved) / times - 1.0)
    return Curve(
        link=link,
        operation=operation,
        ranks=ranks,
        latencies=latencies,
        bandwidths=bandwidths,
        devices=tuple(sorted(set(rows.device.dropna()))),
        medians=len(sizes),
        misses=misses,
    )


def wire(operation: str, size: float, ranks: int) -> float:
    """Bytes each rank has to send [B], over which bus bandwidth is counted."""
    own = ring_wire_bytes if operation == "all-reduce" else shard_bytes
    return float(own(size, ranks))


def best(latencies: Vector, bandwidths: Vector, moved: Vector) -> Vector:
    """Time of the fastest regime for each amount [s]."""
    times: Vector = np.min(latencies[:, None] + moved / bandwidths[:, None], axis=0)
    return times


def fit(moved: Vector, times: Vector) -> tuple[Vector, Vector]:
    """Latencies [s] and bus bandwidths [B/s] of the regimes, by rising latency."""
    generator = np.random.default_rng(SEED)
    rates = moved / times
    low = np.log([times.min() * 0.5, rates.max() * 1e-3])
    high = np.log([times.max(), rates.max() * 1.25])
    solutions = []
    for _ in range(STARTS):
        start = np.concatenate(
            [
                generator.uniform(low[0], low[0] + 4.0, REGIMES),
                generator.uniform(low[1], high[1], REGIMES),
            ]
        )
        bounds = (np.repeat(low, REGIMES), np.repeat(high, REGIMES))
        solution = least_squares(
            lambda p: np.log(best(np.exp(p[:REGIMES]), np.exp(p[REGIMES:]), moved) / times),
            np.clip(start, bounds[0] + 1e-9, bounds[1] - 1e-9),
            bounds=bounds,
            loss="soft_l1",
            f_scale=0.1,
        )
        solutions.append(solution)
    values = np.exp(min(solutions, key=lambda solution: solution.cost).x)
    order = np.argsort(values[:REGIMES])
    return values[:REGIMES][order], values[REGIMES:][order]


def written(profile: str, own: list[Curve]) -> str:
    """A link's profile with these curves instead of those inside a machine that it had.

    Curves over several machines, and curves of other operations or numbers of ranks, stay.
    """
    head, *tables = profile.split("[[collective]]\n")
    known = {(curve.operation, curve.ranks) for curve in own}
    kept = [table for table in tables if not _replaced(table, known)]
    texts = [curve.text() for curve in own] + ["[[collective]]\n" + table for table in kept]
    return head.rstrip() + "\n\n" + "\n".join(text.rstrip() + "\n" for text in texts)


def _replaced(table: str, known: set[tuple[str, int]]) -> bool:
    found = tomllib.loads(table)
    helped = bool(found.get("in_switch"))
    operations = {operation for operation, _ in known}
    own = (found["operation"], found["ranks"]) in known
    return found["machines"] == 1 and (own or (helped and found["operation"] in operations))


def main() -> int:
    """Fit all curves, print them, and write them where asked to."""
    parser = argparse.ArgumentParser(description="fit how long collectives take in a machine")
    parser.add_argument("tables", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = list(curves(pd.read_csv(args.tables / "kernels" / "nccl_by_gpu.csv")))
    for curve in found:
        regimes = ", ".join(
            f"{1e6 * a:6.1f} us + n / {1e-9 * b:6.1f} GB/s"
            for a, b in zip(curve.latencies, curve.bandwidths, strict=True)
        )
        off, most = np.median(curve.misses), np.quantile(curve.misses, 0.9)
        sys.stdout.write(
            f"{curve.link:14s} {curve.operation:15s} {curve.ranks:2d}  {regimes}"
            f"  median {100 * off:4.1f}%  p90 {100 * most:4.1f}%\n"
        )
    for link in GPUS if args.write else ():
        path = PROFILES / f"{link}.toml"
        own = [curve for curve in found if curve.link == link]
        path.write_text(written(path.read_text(encoding="utf-8"), own), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
