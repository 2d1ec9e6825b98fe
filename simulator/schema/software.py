"""Software of a job: settings, and fitted figures of kernels and of serving engines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import DEPENDS, DERIVED, Choice, Number, Section, TextField
from simulator.schema.provenance import Source
from simulator.units import Bytes, Seconds

SMALL_KERNELS: Final = (22.0, 46.0)
"""Small kernels of a transformer's layer, forward and backward."""
LAYER_KERNELS: Final = (SMALL_KERNELS[0] + 6.0, SMALL_KERNELS[1] + 12.0)
"""All of them: with the layer's six matrix products, and two gradients of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFigures:
    """Matrix products: `share16` and `share` of the peak, in 16 bit and at the precision chosen.

    `tile_half`: intensity at which a tile of the output reaches half its best rate. `wave`: what an
    unfilled last wave of tiles costs of a full one. `fill`: steps along the inner dimension that
    filling a tile's pipeline takes. `unaligned`: share of the rate left where rows are unaligned.
    `throttle`: how far the clock sinks when only matrix units work.
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
    """All other kernels.

    `memory`: share of the device memory's bandwidth. `start`: device time a small kernel takes
    over its work [s]. `attention` and `attention_backward`: share of the 16-bit peak of the fused
    kernel, and of that in its backward pass. `gated` and `plain`: traffic of norms and activations
    of a transformer's layer over what is counted, in training, for gated MLPs and plain ones;
    `others`: that of all other kernels that only move memory. `cast`: bytes moved for each value
    brought to 8 bit or less. `loss`: bytes moved for each score [B]. `softmax`: 1 where scale, mask
    and softmax of attention that is not fused are one kernel, for the shapes that it takes.
    `unbalanced_context`: how much of the waiting for the busiest part of a sequence is not hidden.
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
    """The host's time to launch kernels, all in seconds but for factors.

    `forward` and `backward` are those of a kernel of each pass; a layer takes more where scores are
    not fused (`unfused`) and where a collective is launched (`collective`). `embedding`, `head` and
    `step` are the rest of a micro-batch and of a step. `factor` multiplies all of them, `experts`
    is for a layer of experts and pass, `overlapped_experts` how much longer that is where their
    exchange is overlapped. `jitter`: spread of a rank's launches, which ranks that reduce together
    wait for. `blend`: how sharply the longer of host and device decides, 1 where launches block.
    `source` is what they rest on.
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
        """The host's time to launch a kernel, on average over a transformer's layer [s]."""
        both = LAYER_KERNELS[0] * self.forward + LAYER_KERNELS[1] * self.backward
        return both / sum(LAYER_KERNELS) * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFigures:
    """Communication: shares of links, latencies [s], and what compute hides.

    `latency` is the framework's part of a collective inside a machine, added to what NCCL alone
    takes, `link` the share of NCCL's rate there. `network` is for collectives of tensor
    parallelism between machines, `network_gradients` for those of data parallelism,
    `network_sends` for sends between stages, `network_experts` for experts. `part`: what a
    group that holds some of a machine's devices reaches of its network. `ring`: latency of each
    rank of a ring over all ranks. `hidden_*`: share that compute hides; `unhidden_*`: share that
    it does not.
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
    """Optimizer and gradients: bytes a parameter moves in an update [B], time of a layer [s].

    `accumulated` are the bytes a micro-batch moves to add up the gradient of a parameter [B].
    `host`: share of host memory's bandwidth that an update there reaches.
    """

    traffic: Bytes
    layer: Seconds
    accumulated: Bytes
    host: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertFigures:
    """Experts: traffic of an activation not fused (`eager`) and fused into products (`fused`).

    Both are factors. `padding`: rows computed over rows chosen where their number is fixed.
    """

    eager: float
    fused: float
    padding: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFigures:
    """Device memory in addition to what is counted, in bytes but for factors.

    `waste`: what the allocator takes over what is asked of it. `context`, `group` (buffers of a
    group of ranks that communicate) and `buckets` (of gradients on their way to other ranks, as
    many of `bucket_bytes` a parameter at most) lie outside of it. `scores`: bytes of a score at the
    loss. `unread`: 1 where outputs that the backward pass does not read are kept with those it
    does. `copies`: 1 where 16-bit weights and gradients lie next to sharded or summed ones in fp32.
    `narrow`: 1 where products below 16 bit keep their inputs as they read them. `separate_gate`: 1
    where the function of a gated MLP is a kernel of its own, whose output is kept next to the
    product. `autocast`: 1 where the program's weights are the fp32 ones, so that gradients are as
    wide. `bucket_copy`: 1 where the buckets of plain data parallelism hold every gradient once
    more. `live`: sharded parameters that may lie gathered at a time, or as many as two products
    have; infinite where whole layers are gathered. `sources` say what each rests on.
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
"""Nothing but what is counted: no context, no waste, no buffers of collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """What the software of a scenario reaches on its device.

    `of_layers`: figures of language models hold for the framework, so that their layers are timed
    with it, and exchange between devices too. `slowness` is a factor of the whole step.
    `carried_over`: nothing was fitted to this device, framework or precision; figures are those of
    others. `at_bound` names the figures that the fit would have moved beyond what is physically
    possible; `sources` say what each was fitted to. `apart` is the factor by which measured rows
    tell the device's products from those of the rest of its architecture, with the rows; None where
    none do.
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
    """Speed of parts of a service over that of other services; above 1: faster."""

    compute: SpeedField = 1.0
    """Products, and attention of prompts."""
    device_memory: SpeedField = 1.0
    """Reading weights, keys and values."""
    engine: SpeedField = 1.0
    """The engine's own time of an iteration, of its layers and of each sequence."""
    request: SpeedField = 1.0
    """Time of a request in addition to its iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFigures:
    """Figures of the forward pass of one serving engine.

    `stream` and `cache`: share of the device memory's bandwidth at which weights, and keys and
    values, are read. `attention`: share of the 16-bit peak of a prompt's attention. `passes`: how
    often a layer's activations move through memory. `layer`: time of a layer without its work,
    `routing` that of a layer of experts and `latent` that of latent attention [s]. `imbalance`:
    tokens of the busiest expert-parallel rank over the mean. `iteration` and `sequence`: the
    engine's time of an iteration, and of each sequence that takes a token in it [s]. `eager`: how
    many times as long the host launches the kernels of a layer one by one, in iterations with
    prompts, as they take in a recorded graph. `request`:
    what a request takes besides its iterations, from the client and back, and `prompt_token` what
    each token of its prompt adds to that [s]. `lag`: iterations that pass between a token and its
    arrival at the client. `link`: share of the rate of the links between devices, `host_link` of
    that of those to the host where there are no others. `all_reduce`: latency of an all-reduce over
    links between devices; `hop`: that of each rank over the host's [s]. `few_rows`: share of the
    16-bit peak above which no product of sequences that decode comes, where that is known to bind.
    `shared_reads`: whether keys and values that several heads share are read once for all of them.
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
        """Return the figures of a service whose parts are so much faster."""
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
    """What the host launches as a recorded graph instead of kernel by kernel."""

    NONE = "none"
    LOCAL = "local"
    """The framework's own graph of each layer."""
    LAYERS = "layers"
    """Parts of layers, experts but for their routing left out."""
    FULL = "full"
    """A whole step."""


class MemoryFormat(StrEnum):
    """In which order the values of images lie in memory."""

    CHANNELS_FIRST = "channels-first"
    """Channel by channel (NCHW), PyTorch's order; matrix units need them transposed."""
    CHANNELS_LAST = "channels-last"
    """Position by position (NHWC), TensorFlow's order."""


class Scaling(StrEnum):
    """How numbers of 8 bit and less are scaled into their range."""

    TENSOR = "tensor"
    """One factor for a tensor."""
    BLOCK = "block"
    """One factor for a small block of values (the MX formats)."""


class GradientSum(StrEnum):
    """How a micro-batch's weight gradients get into the buffer that adds them up."""

    SEPARATE = "separate"
    """A kernel of its own reads them and adds them to the buffer."""
    FUSED = "fused"
    """The matrix product reads and writes the buffer."""
    IN_PLACE = "in-place"
    """The buffer is what the framework differentiates into; nothing is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software(Section):
    """The software the job runs on."""

    framework: TextField = "pytorch"
    """Name of the framework."""
    version: TextField = field(default="", metadata=DEPENDS)
    """Its version, as text."""
    compile: bool = False
    """Whether the model is compiled (torch.compile and its kin)."""
    fused_attention: bool = field(default=False, metadata=DEPENDS)
    """Whether attention runs as one fused kernel; by default as the library's model says."""
    memory_format: Annotated[MemoryFormat, Choice(MemoryFormat)] = field(
        default=MemoryFormat.CHANNELS_FIRST, metadata=DEPENDS
    )
    """Order in which images lie in device memory: channels-first (NCHW) or channels-last (NHWC);
    the framework's own by default."""
    cuda_graphs: Annotated[CudaGraphs, Choice(CudaGraphs)] = CudaGraphs.NONE
    """What the host launches as one recorded graph: nothing, each layer (the framework's own
    graphs), parts of layers, or a full step."""
    blocking_launches: bool = False
    """Whether the host waits for each kernel it launches (CUDA_LAUNCH_BLOCKING)."""
    fused_experts: bool = False
    """Whether activation, casts and permutation of experts are fused into their products."""
    attention_kernel: TextField = field(default="", metadata=DEPENDS)
    """Name of the fused attention kernel: triton, flash-2 or cudnn; the framework's by default."""
    padded_vocabulary: bool = True
    """Whether the table of tokens is padded to whole tiles for every tensor-parallel rank."""
    fp8_recipe: Annotated[Scaling, Choice(Scaling)] = Scaling.TENSOR
    """How numbers of 8 bit and less are scaled: tensor by tensor, or block by block."""
    gradient_sum: Annotated[GradientSum, Choice(GradientSum)] | None = None
    """How weight gradients of micro-batches are added up: by a separate kernel, fused into the
    matrix product, or in-place; the framework's usual way by default."""
    compiled_loss: bool = field(default=False, metadata=DEPENDS)
    """Whether the loss is compiled too, which saves copies of the scores; as compile by default."""
    chunked_loss: bool = False
    """Whether the head and the loss work on parts of the tokens, whose scores never lie in memory
    together."""
    profiled_kernels: bool = False
    """Whether the step is put together from kernels timed one by one on a cool device."""
    degraded: bool = False
    """Whether it ran while the machines had a fault that was found later."""
    kernels: Kernels | None = field(default=None, metadata=DERIVED)
    """What its kernels and exchanges reach on the device."""
    memory: MemoryFigures = field(default=BARE_MEMORY, metadata=DERIVED)
    """What its allocator and libraries take of a device, in addition to what is counted."""
