"""From which use on machines that are bought are cheaper than those that are rented."""

from __future__ import annotations

import math

from simulator.studies.purchase import RentOrBuy
from simulator.units import HOUR, MONTH


def even_text(even: RentOrBuy) -> str:
    """The break-even in words."""
    if even.utilization > 1.0:
        return "renting is cheaper, however much the owned machines work"
    hours = even.utilization * MONTH / HOUR
    paid = (
        "never pays its price back"
        if math.isinf(even.payback)
        else f"has paid its price back after {even.payback / MONTH:.2g} months"
    )
    return (
        f"buying is cheaper if the machines work more than {even.utilization:.0%} of their life, "
        f"{hours:.0f} h a month; working {even.planned:.0%} of it (owned.utilization), it {paid}"
    )
