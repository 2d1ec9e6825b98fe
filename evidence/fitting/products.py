"""Shares of the data sheet that measured matrix products reach, from a table of timed products.

The table has a row for each product of a framework on a device: sides m, n and k, the data type and
the latency in ms. It is the model's own product time that is fitted, for all devices at once: share
of the peak in 16 and in 8 bit, share of the memory's bandwidth and the time of a kernel's start by
device, and what tiles cost for all devices together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simulator.equations.gemm import (
    PARTIAL_BYTES,
    SPLIT_FROM,
    memory_time,
    occupied_flops,
    product_traffic,
)
from simulator.files.catalogue import Catalogue
from simulator.scenario.precision import Precision

Vector = NDArray[np.float64]

TABLE: Final = Path("kernels") / "gemm_sample_by_gpu.csv"
DEVICES: Final = {
    "a100_sxm": "gpu/a100-sxm4-80gb",
    "h100_sxm": "gpu/h100-sxm5-80gb",
    "h200_sxm": "gpu/h200-sxm-141gb",
    "b200_sxm": "gpu/b200-sxm-180gb",
    "b300_sxm": "gpu/b300-sxm-288gb",
    "gb200": "gpu/gb200-186gb",
    "gb300": "gpu/gb300-288gb",
    "l40s": "gpu/l40s",
}
"""Profiles of the table's devices."""
KINDS: Final = {"bfloat16": Precision.BF16, "fp8": Precision.FP8}
"""Data types that training computes in, as the table names them."""
TRAINED: Final = 256
"""Rows of a product from which on it is like those of training."""
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
    table = table[table.gpu.isin(list(DEVICES)) & table.gemm_dtype.isin(list(KINDS))]
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
        yield f"timed products: {name} {value:.4g}"
