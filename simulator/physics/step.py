"""A training step: passes on the stages of the pipeline, gradients, update."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simulator.equations.pipeline import pipeline_bubble, slowest_stage, stage_time
from simulator.equations.step import waited_exchange
from simulator.physics import kernels
from simulator.physics.adapters import learned_parameters
from simulator.physics.description import Description
from simulator.physics.exchange import all_reduce, ring, send
from simulator.physics.layer import gathering, layer_times
from simulator.physics.offload import ON_DEVICE, HostUpdate, host_update
from simulator.physics.passes import Outside, chosen, layer_pass, outside, stage_pass
from simulator.physics.shapes import stage_layers
from simulator.physics.traffic import Summed, activation_bytes, summed, tied_bytes
from simulator.schema.workload.kernels import Kernels
from simulator.terms import Term, product_of, term
from simulator.units import Real, Seconds, at_least, plain, where

_LONGER: Final = 1.1
"""How much longer small kernels are made to see what a step gains by it."""
_SLOWER: Final = 4.5
"""How much slower gathers are made: a tenth of those that nobody measured are slower still."""
_BEHIND: Final = 0.5
"""Share of a stage's last micro-batch, its backward pass, that gradients can hide behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """A forward and a backward pass, as values of the equations that gave them."""

    terms: Mapping[str, Term]

    @property
    def forward(self) -> Seconds | Real:
        """The forward pass [s]."""
        return self.terms["forward"].value

    @property
    def backward(self) -> Seconds | Real:
        """The backward pass [s]."""
        return self.terms["backward"].value


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep(Passes):
    """One optimizer step [s].

    `forward`, `backward` and `exchange` (waiting for it) are of one micro-batch on the slowest
    stage, of which there are `micro_batches`; `bubble`, `gradients` (waiting for their exchange),
    `update` and `launches` are once a step. `hidden` is exchange that compute hides, in a step;
    `hidden_gradients` is the part of it that comes once.
    `stages` are a micro-batch's lengths on the first, middle and last stage, sends included; `host`
    is what the step waits for an optimizer there.
    """

    micro_batches: Real
    hidden: Seconds | Real
    hidden_gradients: Seconds | Real
    stages: tuple[Seconds | Real, Seconds | Real, Seconds | Real]
    host: HostUpdate = ON_DEVICE

    @property
    def exchange(self) -> Seconds | Real:
        """Waiting for the exchange of one micro-batch there [s]."""
        return self.terms["exchange"].value

    @property
    def bubble(self) -> Seconds | Real:
        """Waiting for the other stages, once a step [s]."""
        return self.terms["bubble"].value

    @property
    def gradients(self) -> Seconds | Real:
        """Waiting for the exchange of gradients, once a step [s]."""
        return self.terms["gradients"].value

    @property
    def update(self) -> Seconds | Real:
        """The update on the device, once a step [s]."""
        return self.terms["update"].value

    @property
    def launches(self) -> Seconds | Real:
        """The host's launches once a step [s]."""
        return self.terms["launches"].value

    @property
    def total(self) -> Seconds | Real:
        """The whole step."""
        passes = self.micro_batches * (self.forward + self.backward + self.exchange)
        once = self.bubble + self.gradients + self.update + self.launches
        return passes + once + self.host.total

    @property
    def hidden_exchange(self) -> Seconds | Real:
        """Exchange of one micro-batch that compute hides [s]."""
        return (self.hidden - self.hidden_gradients) / self.micro_batches


def training_step(d: Description, k: Kernels) -> TrainingStep:
    """Time of one optimizer step.

    Parameters
    ----------
    d : Description
        What one device computes and sends; numbers, or arrays of candidates.
    k : Kernels
        What kernels, launches and links reach.

    Returns
    -------
    TrainingStep
        Floats, or arrays of one entry a candidate.
    """
    times, layout = layer_times(d, k), d.layout
    one = layer_pass(d, k, times, gathering(d, k))
    dealt = stage_layers(d)
    front, back = outside(d, k, times)
    first = stage_pass(d, k, one, layers=dealt.first, beside=front)
    middle = stage_pass(d, k, one, layers=dealt.middle, beside=Outside())
    last = stage_pass(d, k, one, layers=dealt.last, beside=back)
    sent = _sent(d, k)
    lengths = (first.length + sent, middle.length + sent, last.length + sent)
    slow = slowest_stage(*lengths, layout.pipeline)
    own = chosen((lengths[0] == slow, lengths[1] == slow), first, middle, last)
    most = slowest_stage(dealt.first, dealt.middle, dealt.last, layout.pipeline)
    held, _ = learned_parameters(d)
    wait, hidden = _gradients(d, k, most, _BEHIND * middle.length)
    late = k.slowness
    idle = term(
        pipeline_bubble,
        first=lengths[0],
        middle=lengths[1],
        last=lengths[2],
        stages=layout.pipeline,
        chunks=layout.chunks,
    )
    terms = {
        "forward": _computed(own.layers, one.alone.forward, own.ends_forward, late),
        "backward": _computed(own.layers, one.alone.backward, own.ends_backward, late),
        "exchange": term(waited_exchange, exposed=own.exposed, sent=sent, slowness=late),
        "bubble": product_of(idle=idle, slowness=late),
        "gradients": product_of(wait=wait, slowness=late),
        "update": product_of(update=kernels.update(d, k, most, held), slowness=late),
        "launches": product_of(launches=k.launch.step * k.launch.factor, slowness=late),
    }
    return TrainingStep(
        micro_batches=layout.micro_batches,
        terms=terms,
        hidden=layout.micro_batches * own.hidden + hidden,
        hidden_gradients=hidden,
        stages=(lengths[0] * late, lengths[1] * late, lengths[2] * late),
        host=host_update(d, k, most, own.backward),
    )


def _computed(layers: Real, layer: Term, ends: Seconds | Real, slowness: Real) -> Term:
    """One pass of a micro-batch over a stage, as much slower as its machines are."""
    whole = term(stage_time, layers=layers, layer=layer, ends=ends)
    return product_of(stage=whole, slowness=slowness)


def _sent(d: Description, k: Kernels) -> Seconds | Real:
    """Sends of an activation and of its gradient, for each chunk of layers, as far as seen."""
    layout = d.layout
    seen = where(layout.async_sends > 0, k.exchange.unhidden_sends, 1.0)
    return 2.0 * send(activation_bytes(d), d, k) * layout.chunks * seen


def _gradients(
    d: Description, k: Kernels, layers: Real, behind: Seconds | Real
) -> tuple[Seconds | Real, Seconds | Real]:
    """Exchange of gradients and updated parameters that is waited for, and what is hidden.

    What overlaps hides behind the backward pass of one micro-batch. Copies of the table of tokens
    on the first and last stage add up their gradients.
    """
    whole: Seconds | Real = 0.0
    for one in summed(d, layers):
        whole = whole + one.share * _sum_time(d, k, one, layers)
    left = at_least(whole * k.exchange.unhidden_gradients, whole - behind)
    seen = where(d.layout.overlapped_gradients > 0, left, whole)
    tied = tied_bytes(d)
    copies = where(tied > 0.0, ring(tied, 2.0, d, k), 0.0)
    return seen + copies, whole - seen


def _sum_time(d: Description, k: Kernels, one: Summed, messages: Real) -> Seconds | Real:
    """A sum of gradients over the ranks that hold copies [s], a message for each layer.

    Where each rank updates its part, gradients are scattered, or summed whole, and updated
    parameters gathered.
    """
    whole = all_reduce(one.there, one.ranks, d, k, apart=one.apart, messages=messages)
    there = ring(one.there, one.ranks, d, k, apart=one.apart, messages=messages)
    back = ring(one.back, one.ranks, d, k, apart=one.apart, messages=messages)
    return where(one.scattered > 0, there, whole) + where(one.gathered > 0, back, 0.0)


def small_kernels_share(d: Description, k: Kernels) -> Real:
    """How much longer a step gets the longer norms and activations take, 0 to 1.

    Parameters
    ----------
    d : Description
        What one device computes and sends.
    k : Kernels
        What kernels, launches and links reach.

    Returns
    -------
    float or array
        Relative change of the step over that of its small kernels.
    """
    own = k.kernel
    longer = replace(own, gated=_LONGER * own.gated, plain=_LONGER * own.plain)
    share: Real = (_times_as_long(d, k, replace(k, kernel=longer)) - 1.0) / (_LONGER - 1.0)
    return share


def network_share(d: Description, k: Kernels) -> Real:
    """How much longer a step gets the slower gathers and scatters are between machines, 0 to 1.

    Parameters
    ----------
    d : Description
        What one device computes and sends.
    k : Kernels
        What kernels, launches and links reach.

    Returns
    -------
    float or array
        Logarithm of how much longer the step is where they take 4.5 times as long, over that of
        4.5.
    """
    own = k.exchange
    slower = replace(own, network_gradients=own.network_gradients / _SLOWER)
    ratio = _times_as_long(d, k, replace(k, exchange=slower))
    share: Real = plain(np.log(ratio)) / math.log(_SLOWER)
    return share


def launch_share(d: Description, k: Kernels) -> Real:
    """How much longer a step gets the longer the host takes to launch its kernels, 0 to 1.

    Parameters
    ----------
    d : Description
        What one device computes and sends.
    k : Kernels
        What kernels, launches and links reach.

    Returns
    -------
    float or array
        Logarithm of how much longer the step is where launches take twice as long, over that of 2.
    """
    slower = replace(k.launch, factor=2.0 * k.launch.factor)
    share: Real = plain(np.log2(_times_as_long(d, k, replace(k, launch=slower))))
    return share


def _times_as_long(d: Description, own: Kernels, other: Kernels) -> Real:
    """How many times as long a step is with other figures."""
    ratio: Real = training_step(d, other).total / training_step(d, own).total
    return ratio
