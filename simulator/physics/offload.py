"""The optimizer on the host: gradients go down, the processors update, parameters come up.

As ZeRO-Offload does it [1]_ without its delayed update: each device sends its part of the gradients
beside every backward pass, the host updates what all devices of the machine have sent, and sends
parameters back while it updates the next ones. What the update reaches of host memory's bandwidth
was fitted to one row; links are those of datasheets.

References
----------
.. [1] Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021,
       https://arxiv.org/abs/2101.06840
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.equations.step import host_update_bytes, late_copies
from simulator.physics.adapters import learned_parameters, learned_table
from simulator.physics.description import Description
from simulator.physics.shapes import updated_parameters
from simulator.schema.workload.kernels import Kernels
from simulator.terms import Term, product_of, stated, term
from simulator.units import Bytes, BytesPerSecond, Real, Seconds, anywhere, where

_NOTHING: Final = stated(nothing=0.0)
_HALF: Final = 2.0
"""Bytes of a parameter that comes back [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUpdate:
    """What a step waits for where the optimizer runs on the host [s]; nothing where it does not.

    `update` is the processors', `rate` how fast it moves through the memory of a machine what it
    moves [B/s]; `sending`, `fetching` and `moving` are the equations of the rest.
    """

    sending: Term = _NOTHING
    update: Seconds | Real = 0.0
    fetching: Term = _NOTHING
    moving: Term = _NOTHING
    rate: BytesPerSecond | Real = np.inf

    @property
    def sent(self) -> Seconds | Real:
        """Gradients on their way down that no backward pass hides [s]."""
        return self.sending.value

    @property
    def fetched(self) -> Seconds | Real:
        """Parameters on their way up that the update does not hide [s]."""
        return self.fetching.value

    @property
    def moved(self) -> Bytes | Real:
        """What the update moves through the memory of a machine [B]."""
        return self.moving.value

    @property
    def total(self) -> Seconds | Real:
        """All of it, once a step."""
        return self.sent + self.update + self.fetched


ON_DEVICE: Final = HostUpdate()
"""Nothing: the device updates its parameters itself."""


def host_update(d: Description, k: Kernels, layers: Real, behind: Seconds | Real) -> HostUpdate:
    """What a step waits for the host.

    Parameters
    ----------
    d : Description
        The step; its numbers may be arrays of candidates.
    k : Kernels
        What an update reaches of host memory's bandwidth.
    layers : float or array
        Layers of the stage that has most.
    behind : float or array
        Backward pass of a micro-batch [s].
    """
    if not anywhere(d.layout.offloaded > 0):
        return ON_DEVICE
    on = where(d.layout.offloaded > 0, 1.0, 0.0)
    held, shared = learned_parameters(d)
    whole = shared * layers + learned_table(d)
    own = on * updated_parameters(d, whole, (held - shared) * layers)
    down = own * d.work.gradient_bytes / d.device.host_link
    up = own * _HALF / d.device.host_link
    moving = term(host_update_bytes, parameters=own * d.layout.domain, state=d.work.optimizer_bytes)
    rate = d.device.host_memory * k.update.host
    update = moving.value / rate
    late = term(late_copies, copies=down, behind=behind, parts=layers)
    return HostUpdate(
        sending=product_of(late=late, micro_batches=d.layout.micro_batches),
        update=update,
        fetching=term(late_copies, copies=up, behind=update, parts=layers),
        moving=moving,
        rate=rate,
    )
