"""How the model is trained: batch, precision, optimizer, length, checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import Choice
from simulator.schema.precision import Precision
from simulator.schema.workload.distribution import CONSTANT, Spread
from simulator.units import BytesPerSecond, Seconds


class Mode(StrEnum):
    """What a job does."""

    TRAIN = "train"
    INFER = "infer"
    PREPARE = "prepare"
    ROLLOUT = "rollout"

    @property
    def learns(self) -> bool:
        """Whether a model is trained, by itself or beside actors: such jobs take steps."""
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
    """Low-rank adapters beside frozen products [1]_.

    References
    ----------
    .. [1] Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
           https://arxiv.org/abs/2106.09685
    """
    HEAD = "head"
    """The last layer, which gives scores, behind a frozen rest."""


class Targets(StrEnum):
    """Products of a layer that have an adapter beside them."""

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
    """A forward-only pass over `samples` after every `every_epochs` epochs."""

    samples: float
    every_epochs: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """Model and optimizer are written every `every_steps` steps while training waits."""

    every_steps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """One optimizer step takes `batch_size` x `accumulation` samples of every data-parallel rank.

    `epochs` may be a fraction. `sync_every_step`: the program waits for the device at the end
    of each step (it reads the loss), so the next batch is asked for only then.
    `mixed`: weights are kept in fp32 beside the compute precision. `bucket_bytes` is the size of
    a gradient bucket whose all-reduce may start while the backward pass goes on. `straggling` is
    the mean of the random delay of a rank's step as a share of its compute time, `device_spread`
    how the time of one device's compute differs from another's over the whole run, `step_jitter`
    how that of a device differs from step to step. `step_overhead` is
    what the program does in a step while the device waits, `host_threads` how many hardware threads
    of the machine it keeps busy while the device works. `gradient_precision` is what gradients
    are exchanged in (None: fp32 where weights are, else 16 bit), `accumulation_precision` what
    those of several batches are added up in (None: as they are exchanged). `exchange_delay` is the
    time of a step of several ranks in which they agree on what to exchange, pack and unpack it,
    `exchange_contention` the share of the communication beside compute that compute takes longer.
    `checkpoint_process_rate` is the fastest that the process of one device serialises its part of a
    checkpoint, whatever store is below it. Where there are `adapters`, only they learn, and all
    other parameters are frozen, as they are but for the last layer where `head_only`;
    `frozen_precision` is what the weights of frozen layers are stored
    in (None: as they compute). `recompute` holds in `recompute_share` of the layers.
    """

    batch_size: float
    precision: Precision
    gradient_precision: Precision | None = None
    accumulation_precision: Precision | None = None
    adapters: Adapters | None = None
    head_only: bool = False
    frozen_precision: Precision | None = None
    accumulation: int = 1
    epochs: float = 1.0
    optimizer: Optimizer = Optimizer.MOMENTUM
    mixed: bool = False
    recompute: Recompute = Recompute.NONE
    recompute_share: float = 1.0
    sync_every_step: bool = False
    straggling: float = 0.0
    device_spread: Spread = CONSTANT
    step_jitter: Spread = CONSTANT
    step_overhead: Seconds = 0.0
    host_threads: float = 0.0
    exchange_delay: Seconds = 0.0
    exchange_contention: float = 0.0
    overlap_communication: bool = True
    bucket_bytes: float = 0.0
    evaluation: Evaluation | None = None
    checkpointing: Checkpointing | None = None
    checkpoint_process_rate: BytesPerSecond = math.inf
    start_up: Seconds = 0.0
    shut_down: Seconds = 0.0

    @property
    def freezes(self) -> bool:
        """Whether a part of the model does not learn."""
        return self.adapters is not None or self.head_only
