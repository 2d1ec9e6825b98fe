"""Levers: all changes that a study can propose, and keys that several of them set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from simulator.schema.goal import Plain

Settings: TypeAlias = Mapping[str, Plain]
"""Dotted keys of a scenario with their values."""
MACHINE, COUNT, STORE = "hardware.machine", "hardware.count", "hardware.storage"
PLACEMENT, PURCHASE = "data.placement", "cost.purchase"
BATCH, ACCUMULATION, WORKERS = "train.batch_size", "train.accumulation", "input.workers"
GLOBAL_BATCH = "train.global_batch_size"
MEASURED_ON = "input.measured_on"
GPU_KEY = "hardware.gpu"
"""Pinned, this is the accelerator a machine comes with; it is never put into another machine."""
