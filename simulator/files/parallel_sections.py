"""The section of a scenario file on how one model is spread over devices."""

from __future__ import annotations

from typing import Annotated

from simulator.files.document import FileModel
from simulator.files.quantity import Choice, Number
from simulator.scenario.precision import Precision
from simulator.scenario.workload.parallelism import Schedule, Sharding

DegreeField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
ImbalanceField = Annotated[float, Number(low=1.0, high=1e3)]


class ParallelismSection(FileModel):
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
    """Whether norms and dropout are split along the sequence beside tensor parallelism."""
    async_tensor: bool = False
    """Whether the collectives of tensor parallelism run beside the products they feed."""
    schedule: Annotated[Schedule, Choice(Schedule)] = Schedule.ONE_FORWARD_ONE_BACKWARD
    """Order of forward and backward passes in a pipeline."""
    sharding: Annotated[Sharding, Choice(Sharding)] = Sharding.NONE
    """What of the training state is spread over the replicas: ZeRO's stages 0 to 3, or FSDP."""
    shard_group: DegreeField | None = None
    """Replicas that state is spread over; all of them by default, fewer for hybrid sharding."""
    expert_imbalance: ImbalanceField = 1.0
    """Load of the busiest expert rank over the mean one."""
    offload_optimizer: bool = False
    """Whether the optimizer's state and update live on the host."""
    scattered_sends: bool = False
    """Whether tensor-parallel ranks each send a part to the next stage, gathered there."""
    async_sends: bool = False
    """Whether sends between stages run beside compute."""
    overlap_experts: bool = False
    """Whether the exchange between experts runs beside compute."""
    deduplicated_dispatch: bool = False
    """Whether a token is sent once to a rank or machine, however many of its experts are there."""
    padded_experts: bool = False
    """Whether experts compute for a fixed number of tokens, as graphs of a whole step need."""
    balanced_context: bool = True
    """Whether parts of a sequence are dealt so that all context-parallel ranks have equal work."""
    reshard: bool | None = None
    """Whether sharded parameters are gathered again for the backward pass; by default they are,
    except in a pipeline."""
    gather_precision: Annotated[Precision, Choice(Precision)] | None = None
    """What sharded parameters are gathered in; as computed by default, 16 bit at least."""
