"""Time of a training step: passes on the pipeline's stages, gradients, update.

An optimizer on the host works as ZeRO-Offload [1]_ without its delayed update: each device sends
its part of the gradients during every backward pass, the host updates what all devices of the
machine have sent, and sends parameters back while it updates the next ones. The share of host
memory's bandwidth that the update reaches was fitted to one row; links are those of datasheets.

References
----------
.. [1] Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021,
       https://arxiv.org/abs/2101.06840
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simulator.equations.pipeline import pipeline_bubble, slowest_stage, stage_time
from simulator.equations.step import host_update_bytes, late_copies, waited_exchange
from simulator.physics.communication import (
    GradientReduction,
    activation_bytes,
    all_gather_time,
    all_reduce_time,
    gradient_reductions,
    send_time,
    tied_bytes,
)
from simulator.physics.kernels import update_time
from simulator.physics.layer_time import (
    embedding_and_head,
    layer_pass,
    slowest_pass,
    stage_pass,
)
from simulator.physics.parameters import (
    learned_parameters,
    learned_table,
    stage_layers,
    updated_parameters,
)
from simulator.physics.transformer import TransformerStep
from simulator.schema.software import Kernels
from simulator.terms import Term, product_of, stated, term
from simulator.units import Bytes, BytesPerSecond, Real, Seconds, anywhere, at_least, plain, where

_NOTHING: Final = stated(nothing=0.0)
_HALF: Final = 2.0
"""Bytes of a parameter that comes back [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUpdate:
    """Exposed times of an optimizer on the host [s]; 0 where it runs on the device.

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
        """Return the exposed time of gradients on their way to the host [s]."""
        return self.sending.value

    @property
    def fetched(self) -> Seconds | Real:
        """Return the exposed time of parameters on their way back [s]."""
        return self.fetching.value

    @property
    def moved(self) -> Bytes | Real:
        """Return the update's traffic in a machine's memory [B]."""
        return self.moving.value

    @property
    def total(self) -> Seconds | Real:
        """Return all exposed time, once a step [s]."""
        return self.sent + self.update + self.fetched


ON_DEVICE: Final = HostUpdate()
"""Nothing: the device updates its parameters itself."""


def host_update(
    step: TransformerStep, kernels: Kernels, layers: Real, behind: Seconds | Real
) -> HostUpdate:
    """Return the exposed times of gradient offload, host update and parameter fetch.

    Parameters
    ----------
    layers : float or array
        Layers of the stage that has most.
    behind : float or array
        Backward pass of a micro-batch [s].
    """
    if not anywhere(step.layout.offloaded > 0):
        return ON_DEVICE
    offloaded = where(step.layout.offloaded > 0, 1.0, 0.0)
    held, shared = learned_parameters(step)
    whole = shared * layers + learned_table(step)
    updated = offloaded * updated_parameters(step, whole, (held - shared) * layers)
    down = updated * step.work.gradient_bytes / step.device.host_link
    up = updated * _HALF / step.device.host_link
    moving = term(
        host_update_bytes, parameters=updated * step.layout.domain, state=step.work.optimizer_bytes
    )
    rate = step.device.host_memory * kernels.update.host
    update = moving.value / rate
    late = term(late_copies, copies=down, behind=behind, parts=layers)
    return HostUpdate(
        sending=product_of(late=late, micro_batches=step.layout.micro_batches),
        update=update,
        fetching=term(late_copies, copies=up, behind=update, parts=layers),
        moving=moving,
        rate=rate,
    )


_LONGER: Final = 1.1
"""How much longer small kernels are made to see what a step gains by it."""
_SLOWER: Final = 4.5
"""How much slower gathers are made: a tenth of unmeasured ones are slower still."""
_BEHIND: Final = 0.5
"""Share of a stage's last micro-batch, its backward pass, that gradients can hide behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """A forward and a backward pass, as recorded equations."""

    terms: Mapping[str, Term]

    @property
    def forward(self) -> Seconds | Real:
        """Return the time of the forward pass [s]."""
        return self.terms["forward"].value

    @property
    def backward(self) -> Seconds | Real:
        """Return the time of the backward pass [s]."""
        return self.terms["backward"].value


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep(Passes):
    """One optimizer step [s].

    `forward`, `backward` and `exchange` (waiting for it) are of one micro-batch on the slowest
    stage, of which there are `micro_batches`; `bubble`, `gradients` (waiting for their exchange),
    `update` and `launches` are once a step. `hidden` is exchange that compute hides, in a step;
    `hidden_gradients` is the part of it that comes once. `stages` are a micro-batch's lengths on
    the first, middle and last stage, sends included; `host` is what the step waits for an optimizer
    there.
    """

    micro_batches: Real
    hidden: Seconds | Real
    hidden_gradients: Seconds | Real
    stages: tuple[Seconds | Real, Seconds | Real, Seconds | Real]
    host: HostUpdate = ON_DEVICE

    @property
    def exchange(self) -> Seconds | Real:
        """Return the exposed exchange of one micro-batch [s]."""
        return self.terms["exchange"].value

    @property
    def bubble(self) -> Seconds | Real:
        """Return the wait for other stages, once a step [s]."""
        return self.terms["bubble"].value

    @property
    def gradients(self) -> Seconds | Real:
        """Return the exposed gradient reduction, once a step [s]."""
        return self.terms["gradients"].value

    @property
    def update(self) -> Seconds | Real:
        """Return the update on the device, once a step [s]."""
        return self.terms["update"].value

    @property
    def launches(self) -> Seconds | Real:
        """Return the host's launches once a step [s]."""
        return self.terms["launches"].value

    @property
    def total(self) -> Seconds | Real:
        """Return the time of the whole step [s]."""
        passes = self.micro_batches * (self.forward + self.backward + self.exchange)
        once = self.bubble + self.gradients + self.update + self.launches
        return passes + once + self.host.total

    @property
    def hidden_exchange(self) -> Seconds | Real:
        """Return the exchange of one micro-batch that compute hides [s]."""
        return (self.hidden - self.hidden_gradients) / self.micro_batches


def training_step(step: TransformerStep, kernels: Kernels) -> TrainingStep:
    """Return the time of one optimizer step; arrays where the step has arrays."""
    layout, layer, dealt = step.layout, layer_pass(step, kernels), stage_layers(step)
    ends = embedding_and_head(step, kernels, layer.head)
    first = stage_pass(step, layer, dealt.first, ends[0])
    middle = stage_pass(step, layer, dealt.middle, ends[1])
    last = stage_pass(step, layer, dealt.last, ends[2])
    sent = _send_times(step, kernels)
    lengths = (first.length + sent, middle.length + sent, last.length + sent)
    slowest_length = slowest_stage(*lengths, layout.pipeline)
    slowest = slowest_pass(
        (lengths[0] == slowest_length, lengths[1] == slowest_length), first, middle, last
    )
    layers = slowest_stage(dealt.first, dealt.middle, dealt.last, layout.pipeline)
    held, _ = learned_parameters(step)
    wait, hidden = _gradient_exchange(step, kernels, layers, _BEHIND * middle.length)
    slowness = kernels.slowness
    bubble = term(
        pipeline_bubble,
        first=lengths[0],
        middle=lengths[1],
        last=lengths[2],
        stages=layout.pipeline,
        chunks=layout.chunks,
    )
    forward, backward = layer.computing
    forward = term(stage_time, layers=slowest.layers, layer=forward, ends=slowest.ends_forward)
    backward = term(stage_time, layers=slowest.layers, layer=backward, ends=slowest.ends_backward)
    terms = {
        "forward": product_of(stage=forward, slowness=slowness),
        "backward": product_of(stage=backward, slowness=slowness),
        "exchange": term(waited_exchange, exposed=slowest.exposed, sent=sent, slowness=slowness),
        "bubble": product_of(idle=bubble, slowness=slowness),
        "gradients": product_of(wait=wait, slowness=slowness),
        "update": product_of(update=update_time(step, kernels, layers, held), slowness=slowness),
        "launches": product_of(
            launches=kernels.launch.step * kernels.launch.factor, slowness=slowness
        ),
    }
    return TrainingStep(
        micro_batches=layout.micro_batches,
        terms=terms,
        hidden=layout.micro_batches * slowest.hidden + hidden,
        hidden_gradients=hidden,
        stages=(lengths[0] * slowness, lengths[1] * slowness, lengths[2] * slowness),
        host=host_update(step, kernels, layers, slowest.backward),
    )


def _send_times(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the exposed sends of an activation and its gradient, for all chunks."""
    layout = step.layout
    seen = where(layout.async_sends > 0, kernels.exchange.unhidden_sends, 1.0)
    return 2.0 * send_time(activation_bytes(step), step, kernels) * layout.chunks * seen


def _gradient_exchange(
    step: TransformerStep, kernels: Kernels, layers: Real, behind: Seconds | Real
) -> tuple[Seconds | Real, Seconds | Real]:
    """Return the exposed and the hidden time of gradient reductions and parameter gathers.

    What overlaps hides behind the backward pass of one micro-batch. Copies of the table of tokens
    on the first and last stage add up their gradients.
    """
    whole: Seconds | Real = 0.0
    for reduction in gradient_reductions(step, layers):
        whole = whole + reduction.share * _reduction_time(step, kernels, reduction, layers)
    left = at_least(whole * kernels.exchange.unhidden_gradients, whole - behind)
    seen = where(step.layout.overlapped_gradients > 0, left, whole)
    tied = tied_bytes(step)
    copies = where(tied > 0.0, all_gather_time(tied, 2.0, step, kernels), 0.0)
    return seen + copies, whole - seen


def _reduction_time(
    step: TransformerStep, kernels: Kernels, reduction: GradientReduction, messages: Real
) -> Seconds | Real:
    """Return the time of a gradient reduction [s], one message for each layer.

    Where each rank updates its part, gradients are scattered, or summed whole, and updated
    parameters gathered.
    """
    whole = all_reduce_time(
        reduction.there, reduction.ranks, step, kernels, apart=reduction.apart, messages=messages
    )
    there = all_gather_time(
        reduction.there, reduction.ranks, step, kernels, apart=reduction.apart, messages=messages
    )
    back = all_gather_time(
        reduction.back, reduction.ranks, step, kernels, apart=reduction.apart, messages=messages
    )
    return where(reduction.scattered > 0, there, whole) + where(reduction.gathered > 0, back, 0.0)


def small_kernels_share(step: TransformerStep, kernels: Kernels) -> Real:
    """Return the elasticity of the step time in the time of norms and activations, 0 to 1.

    Returns
    -------
    float or array
        Relative change of the step over that of its small kernels.
    """
    fitted = kernels.kernel
    longer = replace(fitted, gated=_LONGER * fitted.gated, plain=_LONGER * fitted.plain)
    share: Real = (_times_as_long(step, kernels, replace(kernels, kernel=longer)) - 1.0) / (
        _LONGER - 1.0
    )
    return share


def network_share(step: TransformerStep, kernels: Kernels) -> Real:
    """Return the elasticity of the step time in the time of gathers between machines, 0 to 1.

    Returns
    -------
    float or array
        Logarithm of how much longer the step is where they take 4.5 times as long, over that of
        4.5.
    """
    fitted = kernels.exchange
    slower = replace(fitted, network_gradients=fitted.network_gradients / _SLOWER)
    ratio = _times_as_long(step, kernels, replace(kernels, exchange=slower))
    share: Real = plain(np.log(ratio)) / math.log(_SLOWER)
    return share


def launch_share(step: TransformerStep, kernels: Kernels) -> Real:
    """Return the elasticity of the step time in the launch time of kernels, 0 to 1.

    Returns
    -------
    float or array
        Logarithm of how much longer the step is where launches take twice as long, over that of 2.
    """
    slower = replace(kernels.launch, factor=2.0 * kernels.launch.factor)
    share: Real = plain(np.log2(_times_as_long(step, kernels, replace(kernels, launch=slower))))
    return share


def _times_as_long(step: TransformerStep, fitted: Kernels, changed: Kernels) -> Real:
    ratio: Real = training_step(step, changed).total / training_step(step, fitted).total
    return ratio
