"""Sections of a scenario about what is paid beside rent, as a file writes them."""

from __future__ import annotations

from typing import Annotated

from simulator.files.document import FileModel
from simulator.files.quantity import Number, TextField

PueField = Annotated[float, Number(low=1.0, high=10.0)]


class EnergySection(FileModel):
    """Where the electricity comes from; with it, plan tells energy and emissions of the run."""

    pue: PueField | None = None
    """Power of the building over that of its machines (power usage effectiveness); 1.54 by default,
    the average of a survey of data centres of 2025."""
    grid: TextField | None = None
    """What is emitted to make the electricity: an amount such as 400 g/kWh, or a region of a cloud
    such as gcp/us-central1. Emissions are unknown without it."""
    tariff: TextField | None = None
    """Price of electricity: $0.08/kWh, or a place such as us/iowa/industrial. Rent includes it: it
    is on the bill of owned machines only."""
