"""Figures of the bill beside machines: what stores cost, and what energy is drawn and emitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from simulator.results.prediction import Prediction
from simulator.units import KILOGRAM, KILOWATT_HOUR, KILOWATT_HOURS, USD, WATT, Unit

Figure: TypeAlias = tuple[str, Callable[[Prediction], float | None], str, Unit]
"""Name, value, meaning and unit of a metric of which less is better."""


def _kilowatt_hours(energy: float | None) -> float | None:
    return None if energy is None else energy / KILOWATT_HOUR


STORES: Final[tuple[Figure, ...]] = (
    (
        "cost.storage.usd",
        lambda p: p.storage.total,
        "Bill of the stores of the whole run; none where a price is not known.",
        USD,
    ),
    (
        "cost.storage.rent_usd",
        lambda p: p.storage.rent,
        "Rent for data and kept checkpoints, as long as they lie there.",
        USD,
    ),
    (
        "cost.storage.provisioned_usd",
        lambda p: p.storage.provisioned,
        "Operations and throughput that stores hold ready.",
        USD,
    ),
    (
        "cost.storage.requests_usd",
        lambda p: p.storage.requests,
        "Requests to object stores, those that read and those that write.",
        USD,
    ),
    (
        "cost.storage.egress_usd",
        lambda p: p.storage.egress,
        "Bytes that leave the region of the store, as store.location or the clouds of both say.",
        USD,
    ),
    (
        "cost.usd_with_storage",
        lambda p: p.in_all,
        "Old name of cost.usd_to_train.",
        USD,
    ),
)
ENERGY: Final[tuple[Figure, ...]] = (
    ("energy.power_w", lambda p: p.energy.power, "Power of all machines in a step.", WATT),
    (
        "energy.machines_kwh",
        lambda p: _kilowatt_hours(p.energy.of_machines),
        "Energy of all machines billed in the whole run, at their plugs.",
        KILOWATT_HOURS,
    ),
    (
        "energy.kwh",
        lambda p: _kilowatt_hours(p.energy.of_building),
        "The same with cooling and losses of the building, where [energy] tells of it.",
        KILOWATT_HOURS,
    ),
    (
        "energy.kg_co2e",
        lambda p: p.energy.emitted,
        "What the grid emitted for it, by location, where energy.grid is known.",
        KILOGRAM,
    ),
    ("energy.usd", lambda p: p.energy.price, "Its price; rent has it included.", USD),
)
