"""How one model is spread over devices: tensor, pipeline, context, expert and sharded data.

A *replica* is one copy of the model: ``tensor x pipeline x context`` devices that together take
one micro-batch at a time. Replicas work on different samples and add up their gradients. Experts
and sharded state are spread over the replicas' devices, so they add none of their own.

Named as in Megatron-LM and PyTorch; see Narayanan et al., "Efficient Large-Scale Language Model
Training on GPU Clusters Using Megatron-LM", https://arxiv.org/abs/2104.04473.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.schema.precision import Precision
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """Degrees of each kind of parallelism, and how the state is sharded.

    `interleave` is how many chunks of layers (virtual stages) one device holds. `sequence`: what
    tensor parallelism leaves whole (norms, dropout) is split along the sequence. `async_tensor`:
    its collectives run beside the matrix products they feed. `shard_group` is how many replicas
    state is sharded over (None: all of them); with fewer, groups are copies of one another (HSDP),
    whose gradients are added up between groups once a step.
    `expert_imbalance` is the load of the busiest expert rank over the mean one.
    `offload_optimizer`: optimizer state and update live on the host.

    `scattered_sends`: each tensor-parallel rank sends its part of what goes to the next stage, and
    the receivers gather it. `async_sends`: sends between stages run beside compute.
    `overlap_experts`: the exchange of experts runs beside other compute. `deduplicated_dispatch`:
    a token goes once to each rank or machine that holds experts it chose, not once to each expert.
    `padded_experts`: experts compute for a fixed number of tokens, chosen or not.
    `balanced_context`: parts of a sequence are dealt so that all ranks have equal work.
    `reshard`: sharded parameters are dropped after the forward pass and gathered again (None: as
    usual, without a pipeline only). `gather_precision` is what parameters are gathered in (None: as
    computed, 16 bit at least).

    `partition` deals layers to stages. `reduce_scatter`: where the optimizer's state is sharded,
    each replica gets the sum of its part of the gradients alone, not all of it.
    """

    tensor: int = 1
    pipeline: int = 1
    interleave: int = 1
    context: int = 1
    expert: int = 1
    sequence: bool = False
    async_tensor: bool = False
    schedule: Schedule = Schedule.ONE_FORWARD_ONE_BACKWARD
    sharding: Sharding = Sharding.NONE
    shard_group: int | None = None
    expert_imbalance: float = 1.0
    offload_optimizer: bool = False
    scattered_sends: bool = False
    async_sends: bool = False
    overlap_experts: bool = False
    deduplicated_dispatch: bool = False
    padded_experts: bool = False
    balanced_context: bool = True
    reshard: bool | None = None
    gather_precision: Precision | None = None
    partition: Partition = Partition.UNIFORM
    reduce_scatter: bool = True

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
