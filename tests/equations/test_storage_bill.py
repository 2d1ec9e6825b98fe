"""What a store is paid for beside the rent of what lies there."""

from __future__ import annotations

import pytest

from simulator.equations.storage_bill import provisioned_price


def test_what_the_rent_has_in_it_is_free() -> None:
    """Nothing is paid below the free rate, and only what is above it beyond."""
    assert provisioned_price(3000.0, 3000.0, 2.0) == 0.0
    assert provisioned_price(100.0, 3000.0, 2.0) == 0.0
    assert provisioned_price(3001.5, 3000.0, 2.0) == pytest.approx(3.0)
