"""Shares of the peak that timed matrix products reach."""

from __future__ import annotations

import pandas as pd
import pytest

from fitting.products import LARGE, _rewritten, _shipped, large_shares
from simulator.files.catalogue import Catalogue
from simulator.scenario.precision import Precision

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
