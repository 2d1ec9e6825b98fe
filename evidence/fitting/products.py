"""Shares of the data sheet that measured matrix products reach, from a table of timed products.

The table has a row for each product of a framework on a device: sides m, n and k, the data type and
the latency in ms. Three things come out of it:

- ``[product_share]`` of the devices' profiles: the median share of the peak over products so large
  that tiles and launches no longer matter;
- ``memory_share``: the median share of the memory's bandwidth over products of so few rows that
  reading their weights, more than any cache holds, is all they do;
- what ``figures.toml`` expects of kernel figures, printed only: the model's own product time fitted
  to all devices at once, with the share of the peak in 16 and in 8 bit, the share of the memory's
  bandwidth and the time of a kernel's start by device, and what tiles cost for all together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from fitting.part import Outcome, Say
from fitting.tables import KERNELS
from simulator.equations.roofline import (
    PARTIAL_BYTES,
    SPLIT_FROM,
    memory_time,
    occupied_flops,
    product_traffic,
)
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.accelerators import Precision

Vector = NDArray[np.float64]

TABLE: Final = Path(KERNELS) / "gemm_sample_by_gpu.csv"
DEVICES: Final = {
    "a100_sxm": "gpu/a100-sxm4-80gb",
    "h100_sxm": "gpu/h100-sxm5-80gb",
    "h200_sxm": "gpu/h200-sxm-141gb",
    "b200_sxm": "gpu/b200-sxm-180gb",
    "b300_sxm": "gpu/b300-sxm-288gb",
    "gb200": "gpu/gb200-186gb",
    "gb300": "gpu/gb300-288gb",
    "l40s": "gpu/l40s",
    "rtx_pro_6000_server": "gpu/rtx-pro-6000-server",
}
"""Profiles of the table's devices."""
KINDS: Final = {"bfloat16": Precision.BF16, "fp8": Precision.FP8, "nvfp4": Precision.FP4}
"""Number formats, as the table names them."""
_EXPECTED: Final = (Precision.BF16, Precision.FP8)
"""Those that the model's product time is fitted in."""
_UNLIKE: Final = ("rtx_pro_6000_server",)
"""Devices left out of that: no kernel figure is that of a card for graphics."""
TRAINED: Final = 256
"""Rows of a product from which on it is like those of training."""
LARGE: Final = 4096
"""Rows and columns of a large product."""
DEEP: Final = 2048
"""Its inner dimension, at least."""
FEW: Final = 64
"""Rows of a product that only reads, at most."""
READ: Final = 300e6
"""Bytes of its weights, at least: three times the largest cache [B]."""
SOURCE: Final = "AIC-gemm"
"""Key of the table in ``hardware_profiles/sources.toml``."""
PROFILES: Final = Path(__file__).resolve().parents[2] / "hardware_profiles"
_SECTION: Final = "[product_share]"
_MEMORY: Final = "memory_share"
_SPLITS: Final = (1.0, 4.0)
_SHARED: Final = {
    "tile_half": (40.0, 0.0, 64.0),
    "wave": (0.7, 0.0, 1.0),
    "fill": (100.0, 0.0, 400.0),
}
"""Figures of all devices: where the fit starts, and its bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """Timed products: one entry of each array a row of the table."""

    m: Vector
    n: Vector
    k: Vector
    width: Vector
    peak: Vector
    bandwidth: Vector
    units: Vector
    seconds: Vector
    group: NDArray[np.int64]
    device: NDArray[np.int64]
    names: Sequence[str]
    devices: Sequence[str]


def read(path: Path) -> Products:
    """The products of training size on devices of the catalogue."""
    table = pd.read_csv(path)
    table = table[table.gpu.isin(list(DEVICES)) & ~table.gpu.isin(_UNLIKE)]
    table = table[table.gemm_dtype.map(KINDS).isin(_EXPECTED)]
    table = table[table.m.ge(TRAINED) & table.n.ge(TRAINED) & table.k.ge(TRAINED)]
    catalogue = Catalogue.default(())
    gpus = {name: catalogue.gpu(profile) for name, profile in DEVICES.items()}
    kinds = [KINDS[kind] for kind in table.gemm_dtype]
    groups = [f"{gpu} {kind}" for gpu, kind in zip(table.gpu, kinds, strict=True)]
    names, devices = sorted(set(groups)), sorted(set(table.gpu))
    return Products(
        m=table.m.to_numpy(float),
        n=table.n.to_numpy(float),
        k=table.k.to_numpy(float),
        width=np.array([kind.bytes_per_element for kind in kinds], dtype=float),
        peak=np.array([gpus[g].peak[kind] for g, kind in zip(table.gpu, kinds, strict=True)]),
        bandwidth=np.array([gpus[g].memory_bandwidth for g in table.gpu]),
        units=np.array([float(gpus[g].multiprocessors or 1) for g in table.gpu]),
        seconds=table.latency.to_numpy(float) / 1e3,
        group=np.array([names.index(group) for group in groups]),
        device=np.array([devices.index(gpu) for gpu in table.gpu]),
        names=names,
        devices=devices,
    )


def predicted(found: Products, x: Vector) -> Vector:
    """Seconds of each product at figures in the order of `_start`."""
    half, wave, fill = x[:3]
    count, devices = len(found.names), len(found.devices)
    share, memory = x[3 : 3 + count][found.group], x[3 + count : 3 + count + devices][found.device]
    bandwidth = found.bandwidth * memory
    best = np.full(found.m.shape, np.inf)
    for parts in _SPLITS:
        steps = found.k / parts + fill
        time = occupied_flops(found.m, found.n, steps, parts, found.units, half, wave) / found.peak
        time = time / share
        if parts > 1.0:
            extra = memory_time(PARTIAL_BYTES * parts * found.m * found.n, bandwidth)
            time = np.where(found.k >= SPLIT_FROM * parts, time + extra, np.inf)
        best = np.minimum(best, time)
    moved = product_traffic(found.m, found.n, found.k, found.width, 2.0)
    longest: Vector = np.maximum(best, memory_time(moved, bandwidth)) + x[-devices:][found.device]
    return longest


def fitted(found: Products) -> Mapping[str, float]:
    """Figures by name: `tile_half`, `share h100_sxm bf16`, `memory h100_sxm`, `start h100_sxm`."""
    names = [
        *_SHARED,
        *(f"share {name}" for name in found.names),
        *(f"memory {device}" for device in found.devices),
        *(f"start {device}" for device in found.devices),
    ]
    kinds = {"share": (0.7, 0.3, 1.0), "memory": (0.8, 0.4, 1.0), "start": (4e-6, 0.0, 2e-5)}
    table = np.array([_SHARED.get(name) or kinds[name.split()[0]] for name in names])

    def residuals(x: Vector) -> Vector:
        return np.asarray(np.log(predicted(found, x) / found.seconds))

    scale = np.maximum(table[:, 0], 1e-9)
    best = least_squares(
        residuals,
        table[:, 0],
        bounds=(table[:, 1], table[:, 2]),
        x_scale=scale,
        loss="soft_l1",
        f_scale=0.1,
        diff_step=1e-4,
    )
    return dict(zip(names, map(float, best.x), strict=True))


def lines(path: Path) -> Iterator[str]:
    """What timed products say of the figures that ``figures.toml`` expects."""
    for name, value in fitted(read(path)).items():
        yield f"{name} {value:.4g}"


def large_shares(table: pd.DataFrame) -> dict[tuple[str, Precision], tuple[float, int]]:
    """Median share of the peak of large products, and their number, by profile and format."""
    catalogue, found = Catalogue.default(()), {}
    large = table[table.m.ge(LARGE) & table.n.ge(LARGE) & table.k.ge(DEEP)]
    for (device, spelt), own in large.groupby(["gpu", "gemm_dtype"]):
        profile, kind = DEVICES.get(str(device)), KINDS.get(str(spelt))
        peak = None if profile is None or kind is None else catalogue.gpu(profile).peak.get(kind)
        if profile is None or kind is None or peak is None:
            continue
        rates = 2.0 * own.m * own.n * own.k / (own.latency / 1e3)
        found[profile, kind] = float((rates / peak).median()), len(own)
    return found


def memory_shares(table: pd.DataFrame) -> dict[str, tuple[float, int]]:
    """Median share of the bandwidth of 16-bit products that only read, and their number."""
    catalogue, found = Catalogue.default(()), {}
    width = Precision.BF16.bytes_per_element
    reads = table.m.le(FEW) & (width * table.n * table.k).ge(READ)
    own = table[reads & table.gemm_dtype.map(KINDS).eq(Precision.BF16) & table.gpu.isin(DEVICES)]
    for device, rows in own.groupby("gpu"):
        profile = DEVICES[str(device)]
        moved = width * (rows.n * rows.k + rows.m * rows.k + rows.m * rows.n)
        rates = moved / (rows.latency / 1e3)
        bandwidth = catalogue.gpu(profile).memory_bandwidth
        found[profile] = float((rates / bandwidth).median()), len(rows)
    return found


def _with_memory(text: str, share: float, rows: int) -> str:
    """A profile with this share of its memory's bandwidth, on a line after that."""
    kept = [line for line in text.splitlines() if not line.startswith(_MEMORY)]
    at = next(i for i, line in enumerate(kept) if line.startswith("memory_bandwidth"))
    said = (
        f'{_MEMORY}     = {{ value = {share:.3f}, source = "{SOURCE}", date = "undated", '
        f'note = "median of {rows} products of at most {FEW} rows that read {READ / 1e6:.0f} MB '
        'and more" }'
    )
    return "\n".join([*kept[: at + 1], said, *kept[at + 1 :], ""])


def _rewritten(text: str, own: Mapping[Precision, tuple[float, int]]) -> str:
    """A profile with these shares instead of those it had; they stand last."""
    head = text.partition(_SECTION)[0].rstrip()
    lines = [
        f'{kind} = {{ value = {value:.3f}, source = "{SOURCE}", date = "undated", '
        f'note = "median of {rows} products of {LARGE} rows and columns and more" }}'
        for kind, (value, rows) in own.items()
    ]
    return "\n".join([head, "", _SECTION, *lines, ""])


def _shipped(text: str) -> dict[str, float]:
    found = re.findall(r"^(\w+) = \{ value = ([0-9.]+)", text.partition(_SECTION)[2], re.MULTILINE)
    return {kind: float(value) for kind, value in found}


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``; without a folder of tables there is nothing to fit to."""
    if tables is None or not (tables / TABLE).exists():
        say(f"no {TABLE} is given (--tables): profiles keep their shares")
        return Outcome(figures={}, shipped={})
    timed = pd.read_csv(tables / TABLE)
    found, streams = large_shares(timed), memory_shares(timed)
    figures, shipped, files = {}, {}, {}
    for profile in dict.fromkeys(profile for profile, _ in found):
        own = {kind: share for (name, kind), share in found.items() if name == profile}
        path = PROFILES / f"{profile}.toml"
        text = path.read_text(encoding="utf-8")
        files[str(path)] = _with_memory(_rewritten(text, own), *streams[profile])
        figures[f"{profile}, memory"] = float(f"{streams[profile][0]:.3f}")
        shipped[f"{profile}, memory"] = Catalogue.default(()).gpu(profile).memory_share or np.nan
        known = _shipped(text)
        for kind, (value, _) in own.items():
            figures[f"{profile}, {kind}"] = float(f"{value:.3f}")
            shipped[f"{profile}, {kind}"] = known.get(str(kind), float("nan"))
    return Outcome(
        figures=figures, shipped=shipped, files=files, lines=tuple(lines(tables / TABLE))
    )
