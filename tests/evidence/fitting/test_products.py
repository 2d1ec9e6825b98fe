"""Shares of the peak that timed matrix products reach."""

from __future__ import annotations

import pandas as pd
import pytest

from fitting.products import (
    LARGE,
    _rewritten,
    _shipped,
    _with_memory,
    large_shares,
    memory_shares,
)
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.accelerators import Precision

PROFILE = "gpu/a100-sxm4-80gb"


def _products(sides: list[int], share: float) -> pd.DataFrame:
    """Square products in bf16 on an A100 at a share of its peak."""
    peak = Catalogue.default(()).gpu(PROFILE).peak[Precision.BF16]
    milliseconds = [2e3 * side**3 / (share * peak) for side in sides]
    columns = {"m": sides, "n": sides, "k": sides, "latency": milliseconds}
    return pd.DataFrame({**columns, "gpu": "a100_sxm", "gemm_dtype": "bfloat16"})


def test_only_large_products_count() -> None:
    """Small products, which tiles and launches slow down, leave the share as it is."""
    table = pd.concat([_products([LARGE, 2 * LARGE], 0.8), _products([256, 512], 0.2)])
    (value, rows) = large_shares(table)[PROFILE, Precision.BF16]
    assert value == pytest.approx(0.8)
    assert rows == 2


def test_a_profile_keeps_all_but_its_shares() -> None:
    """What stands above the shares stays, and the new ones are read back."""
    text = 'name = "x"\n\n[product_share]\nbf16 = { value = 0.1, source = "old" }\n'
    found = _rewritten(text, {Precision.BF16: (0.75, 3)})
    assert found.startswith('name = "x"\n\n[product_share]\n')
    assert _shipped(found) == {"bf16": 0.75}


def test_only_products_that_read_tell_of_memory() -> None:
    """Two of eight rows with 537 MB of weights; not one of many rows, nor one that caches hold."""
    bandwidth = Catalogue.default(()).gpu(PROFILE).memory_bandwidth
    rows = [(8, 16384, 16384, 0.7), (8, 16384, 16384, 0.9), (8192, 16384, 16384, 0.1)]
    rows += [(8, 1024, 1024, 0.1)]
    table = pd.DataFrame(
        [
            {
                "m": m,
                "n": n,
                "k": k,
                "gpu": "a100_sxm",
                "gemm_dtype": "bfloat16",
                "latency": 2e3 * (n * k + m * k + m * n) / (share * bandwidth),
            }
            for m, n, k, share in rows
        ]
    )
    assert memory_shares(table)[PROFILE] == (pytest.approx(0.8), 2)


def test_a_profile_has_one_share_of_its_memory() -> None:
    """It stands after the bandwidth; a second run replaces it."""
    text = 'memory_bandwidth = { value = "1 TB/s" }\npower = 1\n'
    once = _with_memory(text, 0.8, 3)
    assert once.splitlines()[1].startswith("memory_share     = { value = 0.800,")
    assert _with_memory(_with_memory(text, 0.7, 3), 0.8, 3) == once
