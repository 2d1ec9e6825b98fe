"""Times of one micro-batch on a stage of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from simulator.physics import kernels, launch
from simulator.physics.description import Description
from simulator.physics.kernels import NOTHING, Both, Terms
from simulator.physics.layer import Gathering, LayerTimes
from simulator.schema.workload.kernels import Kernels
from simulator.units import Real, Seconds, at_least, where

_ROUNDING: Final = 1e-9
"""Share of the exchange below which a rest is not hidden exchange but rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A micro-batch on one stage [s]: computing, waiting for exchange, and exchange hidden.

    Where the host is the slower one, its time counts as computing. Of `forward` and `backward`
    `ends_forward` and `ends_backward` are embedding, head and loss, the rest its `layers`.
    """

    layers: Real
    ends_forward: Seconds | Real
    ends_backward: Seconds | Real
    forward: Seconds | Real
    backward: Seconds | Real
    exposed: Seconds | Real
    hidden: Seconds | Real

    @property
    def length(self) -> Seconds | Real:
        """From its first kernel to its last, without the pipeline's sends."""
        return self.forward + self.backward + self.exposed


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a stage does beside its layers [s]: on the device and on the host."""

    device: Both = NOTHING
    host: Both = NOTHING


def outside(d: Description, k: Kernels, times: LayerTimes) -> tuple[Outside, Outside]:
    """Embedding and head on the first stage (both where there is one stage), and on the last."""
    one = where(d.layout.pipeline == 1, 1.0, 0.0)
    lost = kernels.loss(d, k)
    head = (times.head + Both(lost, lost)).times(d.shape.scored)
    looked_up, factor = kernels.embedding(d, k), k.launch.factor
    half = 0.5 * k.launch.head * factor
    first = Outside(
        device=Both(looked_up, d.work.learned * looked_up) + head.times(one),
        host=Both(k.launch.embedding * factor + half * one, half * one),
    )
    return first, Outside(device=head, host=Both(half, half))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPass:
    """A micro-batch on one layer [s]: `alone`, `waiting` for exchange, and all `exchanged`."""

    alone: Terms
    waiting: Both
    exchanged: Seconds | Real
    gathered: Gathering


def layer_pass(d: Description, k: Kernels, times: LayerTimes, gathered: Gathering) -> LayerPass:
    """A layer on the timelines of device and host."""
    waiting = times.device.seconds + times.exposed
    return LayerPass(
        alone=_of_layer(d, k, times, times.device),
        waiting=_of_layer(d, k, times, waiting).seconds,
        exchanged=times.exchanged.forward + times.exchanged.backward,
        gathered=gathered,
    )


def _of_layer(d: Description, k: Kernels, times: LayerTimes, device: Terms | Both) -> Terms:
    host, routing = times.host, times.routing
    return Terms(
        launch.layer_beside(d, k, device.forward, host.forward, routing),
        launch.layer_beside(d, k, device.backward, host.backward, routing),
    )


def stage_pass(
    d: Description, k: Kernels, one: LayerPass, *, layers: Real, beside: Outside
) -> Pass:
    """A micro-batch on a stage of `layers` layers with `beside` before or after them."""
    rest = Both(
        launch.beside(k, beside.device.forward, beside.host.forward).value,
        launch.beside(k, beside.device.backward, beside.host.backward).value,
    )
    gathered = one.gathered
    alone = one.alone.seconds.times(layers) + rest
    overlapped, waiting = d.layout.overlapped_gradients, one.waiting.times(layers) + rest
    ends = _gathered(gathered, layers, waiting, overlapped)
    exposed = ends.forward + ends.backward - alone.forward - alone.backward
    sharded = gathered.gather + gathered.again + gathered.scatter
    whole = layers * (one.exchanged + sharded)
    return Pass(
        layers=layers,
        ends_forward=rest.forward,
        ends_backward=rest.backward,
        forward=alone.forward,
        backward=alone.backward,
        exposed=exposed,
        hidden=where(whole - exposed > _ROUNDING * whole, whole - exposed, 0.0),
    )


def _gathered(z: Gathering, layers: Real, alone: Both, overlapped: Real) -> Both:
    """Passes with parameters gathered beside them: the first gather, or the last scatter, shows.

    Where nothing runs beside them, all gathers and scatters show, and slow down nothing.
    """
    there, back = layers * z.gather, layers * (z.again + z.scatter)
    forward = _with(alone.forward, there, z.tax, overlapped) + z.gather
    backward = _with(alone.backward, back, z.tax, overlapped) + z.scatter
    return Both(forward, backward)


def _with(
    compute: Seconds | Real, exchange: Seconds | Real, tax: Real, overlapped: Real
) -> Seconds | Real:
    """A pass and its exchange, side by side or in turn [s]."""
    return where(overlapped > 0, at_least(compute + tax * exchange, exchange), compute + exchange)


def chosen(which: tuple[Real, Real], first: Pass, middle: Pass, last: Pass) -> Pass:
    """The pass of one of three stages: `which` holds where it is the first, and the middle."""
    if not any(isinstance(one, np.ndarray) for one in which):
        return first if which[0] else middle if which[1] else last
    return Pass(
        **{
            item.name: where(
                which[0],
                getattr(first, item.name),
                where(which[1], getattr(middle, item.name), getattr(last, item.name)),
            )
            for item in fields(Pass)
        }
    )
