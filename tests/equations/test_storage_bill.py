"""What a store is paid for beside the rent of what lies there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations.storage_bill import (
    egress_cost,
    provisioned_price,
    rent,
    requests_cost,
    upload_requests,
)


def test_what_the_rent_has_in_it_is_free() -> None:
    """Nothing is paid below the free rate, and only what is above it beyond."""
    assert provisioned_price(3000.0, 3000.0, 2.0) == 0.0
    assert provisioned_price(100.0, 3000.0, 2.0) == 0.0
    assert provisioned_price(3001.5, 3000.0, 2.0) == pytest.approx(3.0)


def test_keeping_data_costs_size_times_time() -> None:
    """A gigabyte at 1e-14 $ a byte and second costs a dollar in 1e5 seconds."""
    assert rent(1e9, 1e-14, np.array([1e5, 2e5])) == pytest.approx([1.0, 2.0])


def test_requests_are_paid_by_kind() -> None:
    """A million reads at 40 cents, a thousand writes at half a cent."""
    assert requests_cost(1e6, 4e-7, 1e3, 5e-6) == pytest.approx(0.405)


def test_an_upload_in_parts_is_begun_and_completed() -> None:
    """One request for what fits a part, n + 2 for n parts, one without a limit."""
    assert upload_requests(16e6, 16e6) == 1.0
    assert upload_requests(16e6 + 1.0, 16e6) == 4.0
    assert upload_requests(5e12, math.inf) == 1.0
    assert upload_requests(0.0, 16e6) == 1.0


def test_each_tier_counts_for_what_lies_in_it() -> None:
    """60 TB in a month at 0.09 to 10 TB, 0.085 to 50 TB and 0.07 above: 900 + 3,400 + 700 $."""
    ends, prices = (10e12, 50e12), (9e-11, 8.5e-11, 7e-11)
    assert egress_cost(60e12, 1.0, ends, prices) == pytest.approx(5000.0)
    # Half as much in each of two months, and all of it in a month that is not over.
    assert egress_cost(60e12, 2.0, ends, prices) == pytest.approx(2 * (900.0 + 1700.0))
    assert egress_cost(60e12, 0.1, ends, prices) == egress_cost(60e12, 1.0, ends, prices)


def test_beyond_the_last_end_the_last_price_holds() -> None:
    """What no tier is stated for is paid as in the last one, an upper bound where prices fall."""
    assert egress_cost(30e12, 1.0, (10e12, 20e12), (9e-11, 8e-11)) == pytest.approx(2500.0)
