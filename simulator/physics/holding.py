"""What of a model lies on one device: layers with their parameters, and what passes keep.

A transformer is a stack of layers, counted from its shape and from how it is split over devices.
Any other model is known as a whole: one layer that keeps what the model says.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.physics.activations import along, kept_bytes, logits_bytes, working_bytes
from simulator.physics.adapters import learned_parameters, learned_table
from simulator.physics.description import Description
from simulator.physics.shapes import (
    attention_parameters,
    layer_parameters,
    table_parameters,
    tokens,
)
from simulator.schema.workload.kernels import MemoryFigures
from simulator.schema.workload.models import Model
from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.train import Recompute, Train
from simulator.units import Bytes, Real, at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A model by what memory has to know of it, per device.

    There are `layers` alike of `unit` parameters, of which `shared` are held by all replicas
    (experts are not), and tables of `table` parameters at both ends, one alone where they are
    `tied`. `looked_up` parameters have no dense gradient. A layer keeps `kept` of a micro-batch for
    its backward pass, which needs `working` beside; a normed embedding keeps `ends`, the loss
    needs `logits` [B].

    Of a layer's parameters `learned` have a gradient, `learned_shared` of those that all replicas
    hold, and of the tables `learned_table`. No product of a layer has more than `largest`, 0 where
    the model does not say.
    """

    layers: Real
    unit: Real
    shared: Real
    learned: Real
    learned_shared: Real
    learned_table: Real = 0.0
    table: Real = 0.0
    tied: Real = 1.0
    looked_up: Real = 0.0
    kept: Bytes | Real = 0.0
    ends: Bytes | Real = 0.0
    working: Bytes | Real = 0.0
    logits: Bytes | Real = 0.0
    largest: Real = 0.0


def of_layers(d: Description, f: MemoryFigures, model: Transformer) -> Holding:
    """A transformer's layers as they are split over devices.

    Norms, biases and positions, which no matrix product reads, are shared out to the layers.
    """
    unit, shared = layer_parameters(d)
    rest = _small_parameters(d, model) / d.shape.layers
    learned, learned_shared = learned_parameters(d)
    return Holding(
        layers=d.shape.layers,
        unit=unit + rest,
        shared=shared + rest,
        learned=learned + d.work.learned * rest,
        learned_shared=learned_shared + d.work.learned * rest,
        learned_table=learned_table(d),
        table=table_parameters(d),
        tied=d.shape.tied,
        kept=kept_bytes(d, f),
        ends=_ends(d, model),
        working=working_bytes(d, f),
        logits=logits_bytes(d, f),
        largest=at_least(d.shape.hidden * d.shape.ffn / d.layout.tensor, attention_parameters(d)),
    )


def _small_parameters(d: Description, model: Transformer) -> Real:
    """Parameters beside those of products and tables, on one device."""
    shape, layout = d.shape, d.layout
    unit, shared = layer_parameters(d)
    of_experts = (unit - shared) * at_least(1.0, layout.expert)
    in_layers = shape.layers * (shared * layout.tensor + of_experts)
    in_tables = shape.vocabulary * shape.hidden * (2.0 - shape.tied)
    return at_least(0.0, model.parameters - in_layers - in_tables)


def _ends(d: Description, model: Transformer) -> Bytes | Real:
    """What a normed embedding keeps of a micro-batch, with its dropout's mask [B]."""
    kept = float(model.embedding.normalized) * (d.work.element + d.shape.dropout)
    return tokens(d) * d.shape.hidden * kept / along(d)


def of_whole(model: Model, train: Train) -> Holding:
    """A model that is known as a whole, on every device.

    Raises
    ------
    NotModelled
        Where the model does not say what some recomputation saves.
    """
    looked_up = model.parameters - model.dense_parameters
    plain, redone = (
        model.activation_bytes(train.batch_size, train.precision, recompute)
        for recompute in (Recompute.NONE, train.recompute)
    )
    kept = plain + train.recompute_share * (redone - plain)
    return Holding(
        layers=1.0,
        unit=model.parameters,
        shared=model.parameters,
        learned=model.parameters,
        learned_shared=model.parameters,
        looked_up=looked_up,
        kept=kept,
    )


def behind_frozen(model: ConvNet | Transformer, train: Train) -> Holding:
    """A model whose head alone learns: the rest is passed forward and keeps nothing."""
    frozen = model.parameters - model.head_parameters
    held = model.forward_memory(train.batch_size, train.precision)
    return Holding(
        layers=1.0,
        unit=frozen,
        shared=frozen,
        learned=model.head_parameters,
        learned_shared=model.head_parameters,
        kept=held.live,
    )
