"""The software a job runs on, and what it is known to be worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import DEPENDS, DERIVED, Choice, Section, TextField
from simulator.schema.workload.kernels import BARE_MEMORY, Kernels, MemoryFigures


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
