"""Convolutional networks: a list of layers counted from a published shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from simulator.errors import NotModelled
from simulator.memo import cached
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Forward, Operator, StepTimes
from simulator.schema.workload.models.layer import Layer, activation_element, merge
from simulator.schema.workload.train import Recompute
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Real, Seconds


@cached(most=64)
def _parameters(layers: tuple[Layer, ...]) -> float:
    return sum(layer.parameters for layer in layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvNet:
    """A convolutional network as a list of layers; those of one name are of one shape.

    `transposes` are the passes that bring tensors from channels-first to channels-last order and
    back for matrix units, which compute channels-last alone. They are counted where tensors lie
    channels-first, and always for TF32, which frameworks run on fp32 tensors as they lie. Batch
    normalisation of channels-first tensors gives each channel one block of threads (cuDNN's
    ``bn_fw_tr_1C11_kernel_NCHW``), channels-last many.
    """

    name: str
    layers: tuple[Layer, ...]
    transposes: tuple[Layer, ...] = ()
    channels_last: bool = True
    input_bytes: Bytes = 0.0
    output_bytes: Bytes = 0.0
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Trainable parameters."""
        return _parameters(self.layers)

    @property
    def dense_parameters(self) -> float:
        """All of them."""
        return self.parameters

    @property
    def head_parameters(self) -> float:
        """Those of the classifier; 0 where there is none."""
        return sum(layer.parameters for layer in self.layers if layer.head)

    @property
    def cpu_seconds(self) -> Seconds:
        """None: a device does the work [s]."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """The forward pass over `samples` images, layers of one shape together."""
        as_they_lie = self.channels_last and precision is not Precision.TF32
        on_vector_units = precision in (Precision.FP32, Precision.FP64)
        transposes = () if as_they_lie or on_vector_units else self.transposes
        merged = merge((*self.layers, *transposes))
        own = (layer.operator(samples, precision) for layer in merged)
        return tuple(replace(op, blocks=np.inf) if self.channels_last else op for op in own)

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Bytes kept for the backward pass of `samples` images [B].

        Raises
        ------
        NotModelled
            For any recomputation: what it saves depends on where the network is cut.
        """
        if recompute is not Recompute.NONE:
            msg = f"recomputing activations of the convolutional network '{self.name}'"
            raise NotModelled(msg)
        kept = sum(layer.kept for layer in self.layers)
        fixed = sum(layer.kept_bytes for layer in self.layers)
        return (kept * activation_element(precision) + fixed) * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """The layer with the largest tensors, beside those that a later one joins."""
        live = max((layer.live for layer in self.layers), default=0.0)
        return Forward(live=live * activation_element(precision) * samples)
