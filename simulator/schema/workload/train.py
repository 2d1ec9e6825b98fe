"""How the model is trained: batch, precision, optimizer, length, checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import (
    DEPENDS,
    DERIVED,
    ByteField,
    ByteRateField,
    Choice,
    CountField,
    Number,
    NumberField,
    NumberOrZeroField,
    PositiveShareField,
    Section,
    TimeOrZeroField,
)
from simulator.schema.precision import Precision, PrecisionField
from simulator.schema.workload.distribution import CONSTANT, Spread


class Mode(StrEnum):
    """What a job does."""

    TRAIN = "train"
    INFER = "infer"
    PREPARE = "prepare"
    ROLLOUT = "rollout"

    @property
    def learns(self) -> bool:
        """Whether a model is trained, with or without actors: such jobs take steps."""
        return self in {Mode.TRAIN, Mode.ROLLOUT}


class Optimizer(StrEnum):
    """Named for its state: `state_bytes` in `equations.memory` says what each one keeps."""

    NONE = "none"
    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAM = "adam"
    ADAM_8BIT = "adam-8bit"
    ADAFACTOR = "adafactor"


_SAME_STATE: Final = (
    ("adamw", "adam"),
    ("lamb", "adam"),
    ("adamw-8bit", "adam-8bit"),
    ("nesterov", "momentum"),
)
"""Optimizers that keep as much for each parameter as another one does."""
OptimizerField = Annotated[Optimizer, Choice(Optimizer, also=_SAME_STATE)]


class Recompute(StrEnum):
    """Which activations are computed again in the backward pass instead of kept."""

    NONE = "none"
    SELECTIVE = "selective"
    """Attention's scores and what follows from them."""
    OPERATORS = "operators"
    """Every second matrix product and all that is not one."""
    MODULES = "modules"
    """Small modules: norms, activation functions, projections up."""
    FULL = "full"


class Trained(StrEnum):
    """Which parameters learn; the others are frozen."""

    ALL = "all"
    LORA = "lora"
    """Low-rank adapters of frozen products [1]_.

    References
    ----------
    .. [1] Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
           https://arxiv.org/abs/2106.09685
    """
    HEAD = "head"
    """The last layer, which gives scores, behind a frozen rest."""


class Targets(StrEnum):
    """Products of a layer that have an adapter."""

    QUERIES_VALUES = "queries-values"
    QUERIES_KEYS_VALUES = "queries-keys-values"
    ATTENTION = "attention"
    """Those and attention's output."""
    LINEAR = "linear"
    """Those and the products of the MLP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Low-rank adapters: a product of `rank` columns and one of `rank` rows beside each target.

    `joined`: queries, keys and values have one adapter, and so have the two halves of a gated MLP,
    since the framework computes them as one product.
    """

    rank: float
    targets: Targets
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A forward-only pass between epochs."""

    samples: Annotated[float, Number(low=1.0, whole=True)]
    """Samples evaluated, over all machines."""
    every_epochs: NumberField = 1.0
    """Epochs between two passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Train(Section):
    """How the model is trained."""

    batch_size: Annotated[float, Number(low=1.0, high=1e8, whole=True)]
    """Samples each data-parallel rank takes per forward pass."""
    mode: Annotated[Mode, Choice(Mode)] = Mode.TRAIN
    """What the job does: train; infer and rollout (a policy that acts) only run the forward pass;
    prepare reads, works and writes output_bytes_per_sample, without a model."""
    copies: Annotated[int, Number(low=1.0, high=1e4, whole=True)] = 1
    """Equal, independent jobs side by side; each has an equal part of the accelerators."""
    global_batch_size: CountField | None = None
    """Samples of a step over all ranks: batch_size x accumulation x ranks."""
    accumulation: Annotated[int, Number(low=1.0, high=1e6, whole=True)] = field(
        default=1, metadata=DEPENDS
    )
    """Forward and backward passes per optimizer step; by default as many as global_batch_size asks
    for, else 1."""
    epochs: Annotated[float, Number(high=1e6, above=True)] = 1.0
    """Passes over the data; may be a fraction."""
    precision: PrecisionField = field(default=Precision.FP32, metadata=DEPENDS)
    """Number format of the bulk of the arithmetic; required with a model or an accelerator."""
    gradient_precision: PrecisionField | None = None
    """What gradients are exchanged in; by default fp32 where weights are kept so, else 16 bit."""
    accumulation_precision: PrecisionField | None = None
    """What gradients of several batches are added up in; by default as they are exchanged."""
    trained: Annotated[Trained, Choice(Trained)] = Trained.ALL
    """Trainable parameters: all of them, adapters of frozen ones (LoRA), or the last layer."""
    lora_rank: CountField | None = None
    """Rank of those adapters; 16 by default."""
    lora_targets: Annotated[Targets, Choice(Targets)] | None = None
    """Products of a layer that have an adapter; linear (all but those of experts) by default."""
    frozen_precision: PrecisionField | None = None
    """What weights of frozen layers are stored in, such as fp4 for QLoRA; by default as they
    compute. Narrower ones are brought to that for each pass."""
    optimizer: OptimizerField = field(default=Optimizer.MOMENTUM, metadata=DEPENDS)
    """Optimizer, for the memory of its state; momentum by default, none outside training."""
    mixed_precision: bool = False
    """Whether weights are kept in fp32 in addition to the compute precision; false by default."""
    recompute: Annotated[Recompute, Choice(Recompute)] = Recompute.NONE
    """Which activations are computed again in the backward pass."""
    recompute_share: PositiveShareField = 1.0
    """Share of the layers in which they are, such as 0.5 for every second one; the others keep
    all."""
    sync_every_step: bool = False
    """Whether the program waits for the device after each step, to read the loss."""
    straggling: NumberOrZeroField = 0.0
    """Mean random delay of a rank's step as a share of its compute time; all wait for the slowest,
    so it costs the more the more ranks there are."""
    device_spread: Spread = CONSTANT
    """Time of one device's compute over the mean device's, the same in all steps; all wait for the
    slowest device."""
    step_jitter: Spread = CONSTANT
    """Time of a device's compute in one step over its mean; all wait for the slowest device."""
    step_overhead: TimeOrZeroField = 0.0
    """Time in each step that the device waits for the program: logging, statistics, callbacks."""
    host_threads: NumberOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Hardware threads that each training process keeps busy while its device works: it launches
    kernels and waits in a loop. 1 by default; none where input.cost_basis is vcpu, as the cost was
    then measured with everything running."""
    exchange_delay: TimeOrZeroField = 0.0
    """Time in each step in which several ranks agree on what to exchange, pack and unpack it."""
    exchange_contention: NumberOrZeroField = 0.0
    """Longer compute, as a share of the gradients' exchange that overlaps it."""
    overlap_communication: bool = field(default=True, metadata=DEPENDS)
    """Whether gradients are exchanged while the backward pass goes on; as the framework does by
    default."""
    bucket_size: ByteField = field(default=0.0, metadata=DEPENDS)
    """Size of a gradient bucket; 25 MiB by default."""
    evaluation: Evaluation | None = None
    """Evaluation passes; none by default."""
    checkpoint_every_steps: Annotated[float, Number(low=1.0, whole=True)] | None = None
    """Steps between two checkpoints; none are written by default."""
    checkpoint_process_rate: ByteRateField = field(default=math.inf, metadata=DEPENDS)
    """Fastest that one process serialises its part of a checkpoint; 0.6 GB/s by default, that of
    torch.save (a writer that copies tensors straight to files reaches 1.4)."""
    start_up: TimeOrZeroField = 0.0
    """Billed time from the start of the job to its first step."""
    shut_down: TimeOrZeroField = 0.0
    """Billed time after its last step."""
    adapters: Adapters | None = field(default=None, metadata=DERIVED)
    """Low-rank adapters; where there are any only they learn."""

    @property
    def head_only(self) -> bool:
        """Whether all but the last layer is frozen."""
        return self.trained is Trained.HEAD

    @property
    def freezes(self) -> bool:
        """Whether a part of the model does not learn."""
        return self.adapters is not None or self.head_only
