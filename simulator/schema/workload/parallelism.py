"""How one model is spread over devices: tensor, pipeline, context, expert and sharded data.

A *replica* is one copy of the model: ``tensor x pipeline x context`` devices that together take
one micro-batch at a time. Replicas work on different samples and add up their gradients. Experts
and sharded state are spread over the replicas' devices, so they add none of their own.

Named as in Megatron-LM and PyTorch; see Narayanan et al., "Efficient Large-Scale Language Model
Training on GPU Clusters Using Megatron-LM", https://arxiv.org/abs/2104.04473.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import DEPENDS, Choice, Number, Section
from simulator.schema.precision import PrecisionField
from simulator.units import in_common


class Sharding(StrEnum):
    """What of the training state each replica keeps only its part of (ZeRO's stages)."""

    NONE = "none"
    OPTIMIZER = "optimizer"
    """ZeRO-1, Megatron's distributed optimizer."""
    GRADIENTS = "gradients"
    """ZeRO-2, FSDP's SHARD_GRAD_OP."""
    PARAMETERS = "parameters"
    """ZeRO-3, FSDP's FULL_SHARD: parameters are gathered layer by layer as they are needed."""


class Schedule(StrEnum):
    """The order in which a pipeline stage does its forward and backward passes."""

    ALL_FORWARD = "all-forward"
    """GPipe: all forward passes, then all backward passes."""
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    """1F1B; interleaved where a device holds several chunks of layers."""
    ZERO_BUBBLE = "zero-bubble"
    """1F1B with weight gradients computed where a device would wait (ZB-H1)."""


class Partition(StrEnum):
    """How layers are dealt to the stages of a pipeline."""

    UNIFORM = "uniform"
    """As many to each; the ends get fewer where that does not come out even."""
    COMPUTE = "compute"
    """By what they compute, the head's product counted: the last stage gets fewer."""


DegreeField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
ImbalanceField = Annotated[float, Number(low=1.0, high=1e3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism(Section):
    """How one model is spread over devices; what is left over is data parallelism."""

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
    sequence: bool = False
    """Whether norms and dropout, which tensor parallelism leaves whole, are split along the
    sequence."""
    async_tensor: bool = False
    """Whether the collectives of tensor parallelism overlap the matrix products they feed."""
    schedule: Annotated[Schedule, Choice(Schedule)] = Schedule.ONE_FORWARD_ONE_BACKWARD
    """Order of forward and backward passes in a pipeline."""
    sharding: Annotated[Sharding, Choice(Sharding)] = Sharding.NONE
    """What of the training state is spread over the replicas: ZeRO's stages 0 to 3, or FSDP."""
    shard_group: DegreeField | None = None
    """Replicas that state is spread over; all of them by default. With fewer, groups are copies of
    one another (hybrid sharding, HSDP), whose gradients are added up between groups once a step."""
    expert_imbalance: ImbalanceField = 1.0
    """Load of the busiest expert rank over the mean one."""
    offload_optimizer: bool = False
    """Whether the optimizer's state and update are in host memory."""
    scattered_sends: bool = False
    """Whether tensor-parallel ranks each send a part to the next stage, gathered there."""
    async_sends: bool = False
    """Whether sends between stages overlap compute."""
    overlap_experts: bool = False
    """Whether the exchange between experts overlaps compute."""
    deduplicated_dispatch: bool = False
    """Whether a token is sent once to a rank or machine, however many of its experts are there."""
    padded_experts: bool = False
    """Whether experts compute for a fixed number of tokens, as graphs of a whole step need."""
    balanced_context: bool = True
    """Whether parts of a sequence are dealt so that all context-parallel ranks have equal work."""
    reshard: bool | None = None
    """Whether sharded parameters are gathered again for the backward pass; by default they are,
    except in a pipeline."""
    gather_precision: PrecisionField | None = None
    """Number format in which sharded parameters are gathered; as computed by default, 16 bit at
    least."""
    partition: Annotated[Partition, Choice(Partition)] = field(
        default=Partition.UNIFORM, metadata=DEPENDS
    )
    """How layers are dealt to stages: uniform, or by what they compute with the head counted; as
    the framework does by default."""
    reduce_scatter: bool = field(default=True, metadata=DEPENDS)
    """Whether each replica gets only its part of the summed gradients where the optimizer is
    sharded; as the framework does by default."""

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return self.tensor * self.pipeline * self.context

    @property
    def shares_state(self) -> bool:
        """Whether several replicas share one copy of state; not where each is a group."""
        return self.sharding is not Sharding.NONE and self.shard_group != 1

    @property
    def splits_model(self) -> bool:
        """Whether a device holds a part of a replica, or of its state."""
        elsewhere = self.shares_state or self.offload_optimizer
        return bool(in_common(self.devices > 1)) or self.expert > 1 or elsewhere


ONE_DEVICE = Parallelism()
"""Every device holds the whole model."""
