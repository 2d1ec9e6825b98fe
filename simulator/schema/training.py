"""Training of a model: batch, precision, optimizer, length, checkpoints, parallelism.

A *replica* is one copy of the model: ``tensor x pipeline x context`` devices that together take one
micro-batch at a time. Replicas work on different samples and add up their gradients. Experts and
sharded state are spread over the replicas' devices and need no devices of their own. Degrees are
named as in Megatron-LM and PyTorch; see Narayanan et al., "Efficient Large-Scale Language Model
Training on GPU Clusters Using Megatron-LM", https://arxiv.org/abs/2104.04473.
"""

from __future__ import annotations

import math
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Final

from simulator.records import dataclass
from simulator.schema.accelerators import Precision, PrecisionField
from simulator.schema.fields import (
    CONSTANT,
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
    Spread,
    TimeOrZeroField,
)
from simulator.units import in_common


class ServiceMode(StrEnum):
    """Kind of a file that states a ``mode``."""

    SERVE = "serve"


class Mode(StrEnum):
    """Kind of a job."""

    TRAIN = "train"
    INFER = "infer"
    PREPARE = "prepare"
    ROLLOUT = "rollout"

    @property
    def learns(self) -> bool:
        """True if a model is trained, with or without actors: such jobs have optimizer steps."""
        return self in {Mode.TRAIN, Mode.ROLLOUT}


class Optimizer(StrEnum):
    """Optimizers, by their state: `state_bytes` in `equations.memory` has the size of each."""

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
"""Optimizers with the same state per parameter as another one."""
OptimizerField = Annotated[Optimizer, Choice(Optimizer, also=_SAME_STATE)]


class Recompute(StrEnum):
    """Activations that are recomputed in the backward pass instead of stored."""

    NONE = "none"
    SELECTIVE = "selective"
    """Attention scores and the tensors computed from them."""
    OPERATORS = "operators"
    """Every second matrix product and all other operators."""
    MODULES = "modules"
    """Small modules: norms, activation functions, projections up."""
    FULL = "full"


class Trained(StrEnum):
    """Trainable parameters; the others are frozen."""

    ALL = "all"
    LORA = "lora"
    """Low-rank adapters of frozen products [1]_.

    References
    ----------
    .. [1] Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
           https://arxiv.org/abs/2106.09685
    """
    HEAD = "head"
    """The output head only; the rest is frozen."""


class Targets(StrEnum):
    """Products of a layer that have an adapter."""

    QUERIES_VALUES = "queries-values"
    QUERIES_KEYS_VALUES = "queries-keys-values"
    ATTENTION = "attention"
    """Queries, keys, values and the output of attention."""
    LINEAR = "linear"
    """Products of attention and of the MLP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Low-rank adapters: products of `rank` columns and `rank` rows parallel to each target.

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
    """Number of epochs between two passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Train(Section):
    """Training settings of a job."""

    batch_size: Annotated[float, Number(low=1.0, high=1e8, whole=True)]
    """Samples each data-parallel rank takes per forward pass."""
    mode: Annotated[Mode, Choice(Mode)] = Mode.TRAIN
    """Kind of the job: train; infer and rollout (a policy that acts) only run the forward pass;
    prepare reads, works and writes output_bytes_per_sample, without a model."""
    copies: Annotated[int, Number(low=1.0, high=1e4, whole=True)] = 1
    """Equal, independent jobs side by side; each has an equal part of the accelerators."""
    global_batch_size: CountField | None = None
    """Samples of a step over all ranks: batch_size x accumulation x ranks."""
    accumulation: Annotated[int, Number(low=1.0, high=1e6, whole=True)] = field(
        default=1, metadata=DEPENDS
    )
    """Forward and backward passes per optimizer step; by default from global_batch_size, else 1."""
    epochs: Annotated[float, Number(high=1e6, above=True)] = 1.0
    """Passes over the data; may be a fraction."""
    precision: PrecisionField = field(default=Precision.FP32, metadata=DEPENDS)
    """Number format of the bulk of the arithmetic; required with a model or an accelerator."""
    gradient_precision: PrecisionField | None = None
    """Number format of exchanged gradients; by default fp32 if weights are stored so, but fp16 with
    megatron-lm in fp16, else 16 bit."""
    accumulation_precision: PrecisionField | None = None
    """Number format in which gradients of several batches are added up; by default as exchanged."""
    trained: Annotated[Trained, Choice(Trained)] = Trained.ALL
    """Trainable parameters: all, adapters of frozen layers (LoRA), or the last layer."""
    lora_rank: CountField | None = None
    """Rank of the adapters; 16 by default."""
    lora_targets: Annotated[Targets, Choice(Targets)] | None = None
    """Products of a layer that have an adapter; linear (all but those of experts) by default."""
    frozen_precision: PrecisionField | None = None
    """Number format of stored frozen weights, such as fp4 for QLoRA; by default that of the
    computation. Narrower weights are converted to it for each pass."""
    optimizer: OptimizerField = field(default=Optimizer.MOMENTUM, metadata=DEPENDS)
    """Optimizer, which determines the memory of its state; momentum by default, none outside
    training."""
    mixed_precision: bool = field(default=False, metadata=DEPENDS)
    """Whether fp32 weights are stored in addition to the compute precision; by default only with
    transformers, huggingface and deepspeed, when all parameters are trained in 16 bit."""
    recompute: Annotated[Recompute, Choice(Recompute)] = Recompute.NONE
    """Activations that are recomputed in the backward pass."""
    recompute_share: PositiveShareField = 1.0
    """Share of the layers with recomputation, such as 0.5 for every second one; the others store
    all activations."""
    sync_every_step: bool = False
    """Whether the program waits for the device after each step, to read the loss."""
    straggling: NumberOrZeroField = 0.0
    """Mean random delay of a rank's step as a share of its compute time; all ranks wait for the
    slowest, so it costs more with more ranks."""
    device_spread: Spread = CONSTANT
    """Variation of compute time among devices, constant over steps; all wait for the slowest
    device."""
    step_jitter: Spread = CONSTANT
    """Variation of a device's compute time among steps; all wait for the slowest device."""
    step_overhead: TimeOrZeroField = 0.0
    """Time in each step that the device waits for the program: logging, statistics, callbacks."""
    launch_time: TimeOrZeroField | None = None
    """Time in which the main thread launches the work of a batch on the device; without workers
    (input.workers = 0) it prepares no batch meanwhile. Unknown by default: at most as long as the
    device computes."""
    host_threads: NumberOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Hardware threads that each training process occupies while its device works: it launches
    kernels and polls. 1 by default; 0 if input.cost_basis is vcpu, as the cost was then measured
    with everything running."""
    exchange_delay: TimeOrZeroField = 0.0
    """Time in each step in which ranks negotiate, pack and unpack the exchange."""
    exchange_contention: NumberOrZeroField = 0.0
    """Additional compute time, as a share of the gradients' exchange that overlaps it."""
    overlap_communication: bool = field(default=True, metadata=DEPENDS)
    """Whether gradients are exchanged during the backward pass; by default as in the framework."""
    bucket_size: ByteField = field(default=0.0, metadata=DEPENDS)
    """Size of a gradient bucket; 25 MiB by default."""
    evaluation: Evaluation | None = None
    """Evaluation passes; none by default."""
    checkpoint_every_steps: Annotated[float, Number(low=1.0, whole=True)] | None = None
    """Steps between two checkpoints; none are written by default."""
    checkpoint_process_rate: ByteRateField = field(default=math.inf, metadata=DEPENDS)
    """Highest rate at which one process writes its part of a checkpoint; by default 0.6 GB/s, that
    of torch.save (a writer that copies tensors straight to files reaches 1.4), and to an object
    store 0.18 GB/s, the median of published writers."""
    start_up: TimeOrZeroField = 0.0
    """Billed time from the start of the job to its first step."""
    shut_down: TimeOrZeroField = 0.0
    """Billed time after its last step."""
    adapters: Adapters | None = field(default=None, metadata=DERIVED)
    """Low-rank adapters; if any, they are the only trainable parameters."""

    @property
    def head_only(self) -> bool:
        """True if all layers but the last are frozen."""
        return self.trained is Trained.HEAD

    @property
    def freezes(self) -> bool:
        """True if a part of the model is frozen."""
        return self.adapters is not None or self.head_only


class Sharding(StrEnum):
    """Training state that is sharded over replicas (ZeRO's stages)."""

    NONE = "none"
    OPTIMIZER = "optimizer"
    """ZeRO-1, Megatron's distributed optimizer."""
    GRADIENTS = "gradients"
    """ZeRO-2, FSDP's SHARD_GRAD_OP."""
    PARAMETERS = "parameters"
    """ZeRO-3, FSDP's FULL_SHARD: parameters are gathered layer by layer as they are needed."""


class Schedule(StrEnum):
    """Order of the forward and backward passes of a pipeline stage."""

    ALL_FORWARD = "all-forward"
    """GPipe: all forward passes, then all backward passes."""
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    """1F1B; interleaved if a device holds several chunks of layers."""
    ZERO_BUBBLE = "zero-bubble"
    """1F1B with weight gradients computed where a device would wait (ZB-H1)."""


class Partition(StrEnum):
    """Distribution of layers over the stages of a pipeline."""

    UNIFORM = "uniform"
    """Equal numbers of layers; if they don't divide evenly, the first and last stage get fewer."""
    COMPUTE = "compute"
    """By compute, with the head's product counted: the last stage gets fewer."""


class ContextExchange(StrEnum):
    """Exchange of keys and values between context-parallel ranks."""

    RING = "ring"
    """Each rank sends a chunk to the next one while attention computes on the last one."""
    ALL_GATHER = "all-gather"
    """Each rank gathers the chunks of all ranks; gradients go around a ring in fp32."""


DegreeField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
ImbalanceField = Annotated[float, Number(low=1.0, high=1e3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism(Section):
    """Degrees of parallelism of one model; the remaining devices are data-parallel."""

    tensor: DegreeField = 1
    """Devices that share each layer's matrices."""
    pipeline: DegreeField = 1
    """Stages of consecutive layers, each on devices of its own."""
    interleave: DegreeField = 1
    """Chunks of layers (virtual stages) that one device holds."""
    context: DegreeField = 1
    """Devices that share each sequence."""
    expert: DegreeField = 1
    """Ranks that the experts of a layer are spread over."""
    expert_tensor: DegreeField = 1
    """Devices that share each expert's matrices. Recipes of Megatron-Core set 1; its own default is
    the degree of tensor parallelism."""
    sequence: bool = False
    """Whether norms and dropout, which tensor parallelism leaves whole, are split along the
    sequence."""
    async_tensor: bool = False
    """Whether the collectives of tensor parallelism overlap the matrix products they feed."""
    schedule: Annotated[Schedule, Choice(Schedule)] = Schedule.ONE_FORWARD_ONE_BACKWARD
    """Order of forward and backward passes in a pipeline."""
    sharding: Annotated[Sharding, Choice(Sharding)] = Sharding.NONE
    """Training state that is spread over the replicas: ZeRO's stages 0 to 3, or FSDP."""
    shard_group: DegreeField | None = None
    """Number of replicas that state is spread over; all by default. With fewer, groups are copies
    of one another (hybrid sharding, HSDP), whose gradients are added up between groups once per
    step."""
    expert_imbalance: ImbalanceField = 1.0
    """Load of the busiest expert rank over the mean load."""
    offload_optimizer: bool = False
    """Whether the optimizer's state and update are in host memory."""
    scattered_sends: bool = False
    """Whether each tensor-parallel rank sends a part to the next stage, where the parts are
    gathered."""
    async_sends: bool = False
    """Whether sends between stages overlap compute."""
    overlap_experts: bool = False
    """Whether the exchange between experts overlaps compute."""
    deduplicated_dispatch: bool = False
    """Whether a token is sent once to a rank or machine, for all of its experts there."""
    padded_experts: bool = False
    """Whether experts compute for a fixed number of tokens, as graphs of a whole step need."""
    balanced_context: bool = True
    """Whether sequences are divided so that all context-parallel ranks have equal work."""
    context_exchange: Annotated[ContextExchange, Choice(ContextExchange)] = field(
        default=ContextExchange.RING, metadata=DEPENDS
    )
    """Exchange of keys and values between context-parallel ranks; by default as in the
    framework."""
    reshard: bool | None = None
    """Whether sharded parameters are gathered again for the backward pass; by default they are,
    except in a pipeline."""
    gather_precision: PrecisionField | None = None
    """Number format in which sharded parameters are gathered; by default that of the computation,
    but at least 16 bit."""
    partition: Annotated[Partition, Choice(Partition)] = field(
        default=Partition.UNIFORM, metadata=DEPENDS
    )
    """Distribution of layers over stages: uniform, or by compute with the head counted; by default
    as in the framework."""
    reduce_scatter: bool = field(default=True, metadata=DEPENDS)
    """Whether each replica receives only its part of the summed gradients if the optimizer is
    sharded; by default as in the framework."""

    @property
    def devices(self) -> int:
        """Number of devices of one replica."""
        return self.tensor * self.pipeline * self.context

    @property
    def shares_state(self) -> bool:
        """True if several replicas share one copy of the state."""
        return self.sharding is not Sharding.NONE and self.shard_group != 1

    @property
    def splits_model(self) -> bool:
        """True if a device holds only a part of a replica, or of its state."""
        elsewhere = self.shares_state or self.offload_optimizer
        return bool(in_common(self.devices > 1)) or self.expert > 1 or elsewhere


ONE_DEVICE = Parallelism()
"""Parallelism without any splitting: every device holds the whole model."""
