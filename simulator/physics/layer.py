"""Times of one layer, and of the head: device, exchange, host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.physics import experts, kernels, launch
from simulator.physics.adapters import adapter_products, learned_parameters
from simulator.physics.description import Description
from simulator.physics.exchange import channels, ring, tensor_all_reduce
from simulator.physics.kernels import Both, Parts, Terms, bandwidth
from simulator.physics.products import Array, product_times
from simulator.physics.shapes import (
    attention_products,
    between_copies,
    expert_copies,
    expert_products,
    head_product,
    layer_parameters,
    mlp_products,
    score_products,
    tokens,
)
from simulator.physics.traffic import tensor_reduces
from simulator.schema.workload.kernels import Kernels
from simulator.schema.workload.models import Product
from simulator.units import Bytes, Real, Seconds, anywhere, at_most, where


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTimes:
    """One layer on one device, on average over the layers, and the head's product [s].

    `device` is the device's own work, as terms of its kernels, `exposed` the exchange it waits for,
    `exchanged` all exchange, hidden or not. `host` are launches, `routing` those of experts.
    """

    device: Terms
    exposed: Both
    exchanged: Both
    host: Both
    routing: Seconds | Real
    head: Both


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """What sharded parameters cost a layer [s]: gathers, and the scatter of gradients.

    `gather` is once in the forward pass, `again` in the backward pass. `tax` is the share of a
    collective that slows down the compute it runs beside.
    """

    gather: Seconds | Real = 0.0
    again: Seconds | Real = 0.0
    scatter: Seconds | Real = 0.0
    tax: Real = 0.0


def layer_times(d: Description, k: Kernels) -> LayerTimes:
    """What one layer takes.

    Parameters
    ----------
    d : Description
        The step; its numbers may be arrays of candidates.
    k : Kernels
        What kernels and links reach.
    """
    products, scores, head = _products(d, k)
    attention = _attention(d, k, scores)
    routed = bool(anywhere(d.shape.experts > 0))
    if routed:
        products = products + experts.passes(d, k)
    own = Parts(
        products=products,
        attention=attention,
        passes=kernels.passes(d, k),
        starts=kernels.starts(d, k),
        host=launch.layer(d, k),
    )
    held, _ = learned_parameters(d)
    added = held * k.update.accumulated / bandwidth(d, k)
    exposed, exchanged = _exchange(d, k, routed=routed)
    return LayerTimes(
        device=kernels.device_terms(own, k.product.throttle, d.work.redone, added),
        exposed=exposed,
        exchanged=exchanged,
        host=kernels.launched(own.host, d.work.redone),
        routing=launch.experts(d, k) if routed else 0.0,
        head=head,
    )


def _products(d: Description, k: Kernels) -> tuple[Both, Both, Both]:
    """Products of the layer, of unfused attention, and of the head."""
    linear = attention_products(d) + mlp_products(d)
    if anywhere(d.shape.experts > 0):
        linear += expert_products(d, k)
    linear = [*(_of_frozen(one, d) for one in linear), *adapter_products(d)]
    scores: list[Product] = score_products(d) if anywhere(d.work.fused_attention < 1) else []
    forward, backward = product_times([*linear, *scores, _of_frozen(head_product(d, k), d)], d, k)
    first, last = len(linear), len(linear) + len(scores)

    def together(start: int, end: int) -> Both:
        return Both(_sum(forward[start:end], d), _sum(backward[start:end], d))

    return together(0, first), together(first, last), together(last, last + 1)


def _of_frozen(product: Product, d: Description) -> Product:
    """A product with weights of the model, which may be frozen."""
    return product._replace(learned=d.work.learned)


def _sum(times: Array, d: Description) -> Real:
    """Sum over products; a plain number where the description has no arrays."""
    total = times.sum(axis=0)
    plainly = total.size == 1 and not isinstance(d.layout.micro_batch, np.ndarray)
    return float(total[0]) if plainly else total


def _attention(d: Description, k: Kernels, scores: Both) -> Both:
    fused = kernels.fused_attention(d, k)
    if not anywhere(d.work.fused_attention < 1):
        return fused
    plain, one = scores + kernels.score_traffic(d, k), d.work.fused_attention > 0
    return Both(
        where(one, fused.forward, plain.forward), where(one, fused.backward, plain.backward)
    )


def _exchange(d: Description, k: Kernels, *, routed: bool) -> tuple[Both, Both]:
    """Exchange of a layer that the device waits for, and all of it."""
    layout, s = d.layout, d.shape
    local, between = tensor_all_reduce(tokens(d) * s.hidden * d.work.element, d, k)
    # pieces of a product go on beside transfers inside of a machine only
    shown = local * (1.0 - layout.async_tensor * k.exchange.hidden_tensor) + between
    forward, backward = tensor_reduces(d)
    number = Both(forward, backward)
    seen_tensor, tensor = number.times(shown), number.times(local + between)
    if not routed:
        return seen_tensor, tensor
    sent = experts.exchange(d, k)
    seen = sent * (1.0 - layout.overlapped_experts * k.exchange.hidden_experts)
    return seen_tensor + Both(seen, seen), tensor + Both(sent, sent)


def gathering(d: Description, k: Kernels) -> Gathering:
    """Collectives of a layer whose parameters are sharded."""
    layout = d.layout
    if not anywhere(layout.sharded > 0):
        return Gathering()
    on = where(layout.sharded > 0, 1.0, 0.0)
    ranks = at_most(layout.replicas, layout.shard_group)
    gather = on * _passed_round(d, k, ranks, layer_parameters(d), d.work.gather_bytes)
    learned = learned_parameters(d)
    return Gathering(
        gather=gather,
        again=gather * layout.again,
        scatter=on * _passed_round(d, k, ranks, learned, d.work.gradient_bytes),
        tax=on * k.exchange.tax * channels(_shared_bytes(d), ranks, d, k),
    )


def _shared_bytes(d: Description) -> Bytes | Real:
    """A layer's parameters that all ranks share, as they are gathered [B]."""
    _, shared = layer_parameters(d)
    return shared * d.work.gather_bytes


def _passed_round(
    d: Description, k: Kernels, ranks: Real, parameters: tuple[Real, Real], width: Bytes | Real
) -> Seconds | Real:
    """Gather or scatter of a layer's parameters, all of them and those that are no experts'.

    Over all ranks; experts over those that have the same ones.
    """
    held, shared = parameters
    of_all = ring(shared * width, ranks, d, k)
    if not anywhere(d.shape.experts):
        return of_all
    size, copies = (held - shared) * width, expert_copies(d)
    of_experts = ring(size, copies, d, k, apart=between_copies(d))
    return of_all + where(d.shape.experts > 0, of_experts, 0.0)
