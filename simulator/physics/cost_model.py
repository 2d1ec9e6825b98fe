"""The cost model of a job's work on one device: asked once, it answers time and memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from simulator.physics.describe import describe
from simulator.physics.device_memory import device_memory
from simulator.physics.device_time import DeviceTime, Evidence, device_time, evidence_of
from simulator.physics.memory import DeviceMemory
from simulator.physics.traffic import Traffic, traffic
from simulator.schema.scenario import Scenario


@dataclass(frozen=True, kw_only=True, eq=False)
class CostModel:
    """What one device of a scenario's job takes; each answer is worked out when first asked for.

    Both follow from the same operators, layout and precision, whatever is sharded: plain data
    parallelism is the case in which nothing is.
    """

    scenario: Scenario

    @cached_property
    def evidence(self) -> Evidence:
        """What the time rests on."""
        return evidence_of(self.scenario)

    @cached_property
    def time(self) -> DeviceTime | None:
        """Time of a batch; None where no device computes."""
        return device_time(self.scenario)

    @cached_property
    def traffic(self) -> Traffic | None:
        """What a device sends; None where no exchange is known with its time."""
        counted = self.evidence is Evidence.KERNELS
        return traffic(describe(self.scenario)) if counted else None

    @cached_property
    def memory(self) -> DeviceMemory | None:
        """What the device holds at its fullest, by item; None without a model on it."""
        return device_memory(self.scenario)


def cost_model(scenario: Scenario) -> CostModel:
    """The cost model of a scenario: the same object has the same one."""
    known = next((model for model in tuple(_RECENT) if model.scenario is scenario), None)
    if known is None:
        known = CostModel(scenario=scenario)
        _RECENT.append(known)
    return known


_RECENT: Final[deque[CostModel]] = deque(maxlen=8)
"""Of the last scenarios asked about: many stages ask about the same one, and counting a model's
operators takes a while. Scenarios never change."""
