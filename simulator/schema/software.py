"""Software of a job: its settings, and fitted figures of kernels and of serving engines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Annotated, Final

from simulator.records import dataclass
from simulator.schema.fields import DEPENDS, DERIVED, Choice, Number, Section, TextField
from simulator.schema.provenance import Source
from simulator.units import Bytes, Seconds

SMALL_KERNELS: Final = (22.0, 46.0)
"""Number of small kernels in a transformer layer, forward and backward."""
LAYER_KERNELS: Final = (SMALL_KERNELS[0] + 6.0, SMALL_KERNELS[1] + 12.0)
"""Number of all kernels in a transformer layer: also its six matrix products, and two gradients of
each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFigures:
    """Fitted figures of matrix products.

    `share16` and `share`: fractions of the peak, in 16 bit and at the chosen precision.
    `tile_half`: intensity at which a tile of the output reaches half its best rate. `wave`: cost of
    an unfilled last wave of tiles as a fraction of a full one. `fill`: steps along the inner
    dimension that filling a tile's pipeline takes. `unaligned`: fraction of the rate left with
    unaligned rows. `throttle`: reduction of the clock when only matrix units work.
    """

    share16: float
    share: float
    tile_half: float
    wave: float
    fill: float
    unaligned: float
    throttle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFigures:
    """Fitted figures of all kernels other than matrix products.

    `memory`: fraction of the device memory's bandwidth. `start`: device time of a small kernel in
    addition to its work [s]. `attention` and `attention_backward`: fraction of the 16-bit peak that
    the fused kernel reaches in the forward and backward pass. `gated` and `plain`: traffic of norms
    and activations of a transformer layer over the counted traffic, in training, for gated and
    plain MLPs; `others`: the same for all other kernels that only move memory. `cast`: bytes moved
    per value cast to 8 bit or less. `loss`: bytes moved per logit [B]. `softmax`: 1 if scale, mask
    and softmax of unfused attention are one kernel, for the shapes it supports.
    `unbalanced_context`: exposed fraction of the waiting for the busiest part of a sequence.
    """

    memory: float
    start: Seconds
    attention: float
    attention_backward: float
    gated: float
    plain: float
    cast: Bytes
    loss: Bytes
    softmax: float
    unbalanced_context: float
    others: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFigures:
    """Fitted times of the host to launch kernels, in seconds except for factors.

    `forward` and `backward` are per kernel of each pass; a layer takes more if attention scores are
    not fused (`unfused`) and where a collective is launched (`collective`). `embedding`, `head` and
    `step` are the rest of a micro-batch and of a step. `factor` multiplies all of them. `experts`
    is per layer of experts and pass, `overlapped_experts` the factor on it if their exchange is
    overlapped. `jitter`: variation of a rank's launches, for which ranks of a reduction wait.
    `blend`: sharpness of the maximum of host and device time, 1 if launches block. `source` is
    their evidence.
    """

    forward: Seconds
    backward: Seconds
    unfused: Seconds
    collective: Seconds
    embedding: Seconds
    head: Seconds
    step: Seconds
    experts: Seconds
    overlapped_experts: float
    factor: float
    jitter: float
    blend: float
    source: Source

    @property
    def kernel(self) -> Seconds:
        """Time of the host to launch a kernel, averaged over a transformer layer [s]."""
        both = LAYER_KERNELS[0] * self.forward + LAYER_KERNELS[1] * self.backward
        return both / sum(LAYER_KERNELS) * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFigures:
    """Fitted figures of communication: fractions of link rates, latencies [s], overlap.

    `latency` is the framework's part of a collective inside a machine, in addition to the time of
    NCCL alone; `link` the fraction of NCCL's rate there. `network` is for collectives of tensor
    parallelism between machines, `network_gradients` for those of data parallelism, `network_sends`
    for sends between stages, `network_experts` for experts. `part`: fraction of a machine's network
    rate that a group with some of its devices reaches. `ring`: latency per rank of a ring over all
    ranks. `hidden_*`: fraction that overlaps with compute; `unhidden_*`: fraction that does not.
    """

    latency: Seconds
    network_latency: Seconds
    ring: Seconds
    link: float
    network: float
    network_gradients: float
    network_sends: float
    network_experts: float
    part: float
    hidden_tensor: float
    hidden_experts: float
    unhidden_sends: float
    unhidden_gradients: float
    tax: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFigures:
    """Fitted figures of the optimizer: bytes moved per parameter [B], time per layer [s].

    `accumulated` are the bytes per parameter that a micro-batch moves to add up gradients [B].
    `host`: fraction of the host memory's bandwidth that an update on the host reaches.
    """

    traffic: Bytes
    layer: Seconds
    accumulated: Bytes
    host: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertFigures:
    """Fitted figures of experts: traffic of an activation unfused (`eager`) and fused (`fused`).

    Both are factors. `padding`: computed rows over selected rows where their number is fixed.
    """

    eager: float
    fused: float
    padding: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFigures:
    """Device memory in addition to counted tensors, in bytes except for factors.

    `waste`: memory that the allocator takes over the memory requested. `context`, `group` (buffers
    of a group of ranks that communicate) and `buckets` (gradient buckets, at most that many of
    `bucket_bytes` per parameter) are outside of the allocator. `scores`: bytes per logit at the
    loss. `unread`: 1 if outputs that the backward pass does not read are stored with those it does.
    `copies`: 1 if 16-bit weights and gradients exist in addition to sharded or summed ones in fp32.
    `narrow`: 1 if products below 16 bit store their inputs at that precision. `separate_gate`: 1 if
    the function of a gated MLP is a separate kernel, whose output is stored in addition to the
    product. `autocast`: 1 if the weights of the program are fp32, so that gradients are too.
    `bucket_copy`: 1 if the buckets of plain data parallelism hold a copy of every gradient. `live`:
    number of sharded parameters that may be gathered at a time, or at least those of two products;
    infinite if whole layers are gathered. `sources` are the evidence of each.
    """

    waste: float = 1.0
    context: Bytes = 0.0
    group: Bytes = 0.0
    buckets: Bytes = 0.0
    bucket_bytes: Bytes = 0.0
    scores: Bytes = 14.0
    unread: float = 1.0
    copies: float = 0.0
    narrow: float = 0.0
    separate_gate: float = 1.0
    autocast: float = 1.0
    bucket_copy: float = 1.0
    live: float = math.inf
    sources: Mapping[str, Source] = field(default_factory=dict)


BARE_MEMORY: Final = MemoryFigures()
"""Memory without any fitted figures: no context, no waste, no buffers of collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Fitted figures of a scenario's software on its device.

    `of_layers`: figures of language models are known for the framework, so that their layers are
    timed with it, and exchange between devices too. `slowness` is a factor of the whole step.
    `carried_over`: nothing was fitted to this device, framework or precision, and the figures are
    those of others. `at_bound` names the figures that the fit would have moved beyond a physical
    bound; `sources` are the evidence of each. `apart` is the factor between the device's products
    and those of the rest of its architecture in measured rows, with these rows; None if there are
    none.
    """

    product: ProductFigures
    kernel: KernelFigures
    launch: LaunchFigures
    exchange: ExchangeFigures
    update: UpdateFigures
    expert: ExpertFigures
    of_layers: bool = True
    slowness: float = 1.0
    carried_over: bool = False
    at_bound: tuple[str, ...] = ()
    apart: tuple[float, Source] | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)


SpeedField = Annotated[float, Number(low=1e-3, high=1e3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFactors:
    """Speed of parts of a service relative to that of other services; above 1: faster."""

    compute: SpeedField = 1.0
    """Matrix products, and attention of prompts."""
    device_memory: SpeedField = 1.0
    """Reading weights and KV cache."""
    engine: SpeedField = 1.0
    """The engine's own time per iteration, per layer and per sequence."""
    request: SpeedField = 1.0
    """Time of a request in addition to its iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFigures:
    """Fitted figures of the forward pass of one serving engine.

    `stream` and `cache`: fraction of the device memory's bandwidth at which weights and KV cache
    are read. `attention`: fraction of the 16-bit peak of a prompt's attention. `passes`: number of
    moves of a layer's activations through memory. `layer`: time of a layer in addition to its work,
    `routing` that of a layer of experts and `latent` that of latent attention [s]. `imbalance`:
    tokens of the busiest expert-parallel rank over the mean. `iteration` and `sequence`: the
    engine's time per iteration, and per sequence that has a token in it [s]. `eager`: time of
    launching a layer's kernels one by one over that in a recorded graph, for iterations with
    prompts. `request`: time of a request in addition to its iterations, from the client and back,
    and `prompt_token` the time that each token of its prompt adds to that [s]. `lag`: iterations
    between a token and its arrival at the client. `link`: fraction of the rate of links between
    devices; `host_link`: that of links to the host where there are no others. `all_reduce`: latency
    of an all-reduce over links between devices; `hop`: that of each rank over the host's links [s].
    `few_rows`: upper bound on the fraction of the 16-bit peak of products of decoding sequences, if
    known. `shared_reads`: whether the KV cache that several heads share is read once for all of
    them.
    """

    stream: float
    cache: float
    attention: float
    passes: float
    layer: Seconds
    routing: Seconds
    latent: Seconds
    imbalance: float
    iteration: Seconds
    sequence: Seconds
    eager: float
    request: Seconds
    prompt_token: Seconds
    lag: float
    link: float
    host_link: float
    all_reduce: Seconds
    hop: Seconds
    few_rows: float | None = None
    shared_reads: bool = True
    carried_over: bool = False
    sources: Mapping[str, Source] = field(default_factory=dict)

    def faster(self, factors: ServiceFactors) -> ServingFigures:
        """Return the figures of a service whose parts are faster by `factors`."""
        engine, request = factors.engine, factors.request
        return replace(
            self,
            stream=self.stream * factors.device_memory,
            cache=self.cache * factors.device_memory,
            attention=self.attention * factors.compute,
            few_rows=None if self.few_rows is None else self.few_rows * factors.compute,
            layer=self.layer / engine,
            routing=self.routing / engine,
            latent=self.latent / engine,
            iteration=self.iteration / engine,
            sequence=self.sequence / engine,
            request=self.request / request,
            prompt_token=self.prompt_token / request,
            lag=self.lag / request,
        )


class CudaGraphs(StrEnum):
    """Part of the work that the host launches as one recorded CUDA graph."""

    NONE = "none"
    LOCAL = "local"
    """The framework's own graph of each layer."""
    LAYERS = "layers"
    """Parts of layers; of experts, only the routing."""
    FULL = "full"
    """A whole step."""


class MemoryFormat(StrEnum):
    """Memory format of images."""

    CHANNELS_FIRST = "channels-first"
    """Channel by channel (NCHW), PyTorch's order; matrix units need them transposed."""
    CHANNELS_LAST = "channels-last"
    """Position by position (NHWC), TensorFlow's order."""


class Scaling(StrEnum):
    """Scaling of numbers of 8 bit and less."""

    TENSOR = "tensor"
    """One factor per tensor."""
    BLOCK = "block"
    """One factor per small block of values (the MX formats)."""


class GradientSum(StrEnum):
    """Accumulation of a micro-batch's weight gradients."""

    SEPARATE = "separate"
    """A separate kernel reads them and adds them to the buffer."""
    FUSED = "fused"
    """The matrix product reads and writes the buffer."""
    IN_PLACE = "in-place"
    """The framework differentiates into the buffer; nothing is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software(Section):
    """The software the job runs on."""

    framework: TextField = "pytorch"
    """Name of the framework."""
    version: TextField = field(default="", metadata=DEPENDS)
    """Version of the framework, as text."""
    compile: bool = False
    """Whether the model is compiled (torch.compile or similar)."""
    fused_attention: bool = field(default=False, metadata=DEPENDS)
    """Whether attention runs as one fused kernel; by default as in the library's model."""
    memory_format: Annotated[MemoryFormat, Choice(MemoryFormat)] = field(
        default=MemoryFormat.CHANNELS_FIRST, metadata=DEPENDS
    )
    """Memory format of images on the device: channels-first (NCHW) or channels-last (NHWC); the
    framework's own by default."""
    cuda_graphs: Annotated[CudaGraphs, Choice(CudaGraphs)] = CudaGraphs.NONE
    """Work that the host launches as one recorded CUDA graph: nothing, each layer (the framework's
    own graphs), parts of layers, or a full step."""
    blocking_launches: bool = False
    """Whether the host waits for each kernel it launches (CUDA_LAUNCH_BLOCKING)."""
    fused_experts: bool = False
    """Whether activation, casts and permutation of experts are fused into their products."""
    attention_kernel: TextField = field(default="", metadata=DEPENDS)
    """Name of the fused attention kernel: triton, flash-2 or cudnn; the framework's by default."""
    padded_vocabulary: bool = True
    """Whether the token embedding is padded to whole tiles for every tensor-parallel rank."""
    fp8_recipe: Annotated[Scaling, Choice(Scaling)] = Scaling.TENSOR
    """Scaling of numbers of 8 bit and less: tensor by tensor, or block by block."""
    gradient_sum: Annotated[GradientSum, Choice(GradientSum)] | None = None
    """Accumulation of the weight gradients of micro-batches: by a separate kernel, fused into the
    matrix product, or in-place; the framework's usual way by default."""
    compiled_loss: bool = field(default=False, metadata=DEPENDS)
    """Whether the loss is compiled too, which saves copies of the logits; as compile by default."""
    chunked_loss: bool = False
    """Whether the head and the loss process the tokens in parts, so that the logits never exist in
    memory all at once."""
    profiled_kernels: bool = False
    """Whether the step is the sum of kernels timed one by one on a cool device."""
    degraded: bool = False
    """Whether the machines had a fault during the run that was found later."""
    kernels: Kernels | None = field(default=None, metadata=DERIVED)
    """Fitted figures of its kernels and exchanges on the device."""
    memory: MemoryFigures = field(default=BARE_MEMORY, metadata=DERIVED)
    """Device memory of its allocator and libraries, in addition to counted tensors."""
