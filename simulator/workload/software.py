"""The software a job runs on, and what it is known to be worth."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.calibration import PERFECT, Efficiency, Factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """Framework, version and switches; `factors` hold only what a source states.

    A factor's value multiplies the compute speed; where no source covers the accelerator the
    factor is 1.0 and says so. `efficiency` is what kernels of this software reach.
    """

    framework: str = "pytorch"
    version: str = ""
    compiled: bool = False
    fused_attention: bool = False
    factors: tuple[Factor, ...] = ()
    efficiency: Efficiency = PERFECT
