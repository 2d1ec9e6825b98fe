"""The software a job runs on, and what it is known to be worth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
class Software:
    """Framework, version and switches.

    `blocking_launches`: the host waits for each kernel. `fused_experts`: activation, casts and
    permutation of experts are fused into their products. `attention_kernel` names the fused kernel
    ("": the framework's usual one). `padded_vocabulary`: the table of tokens is padded so that
    products with it are aligned. `compiled_loss`: the loss is compiled too, and keeps no
    copies of the scores. `chunked_loss`: head and loss work on parts of the tokens, whose scores
    never lie in memory together. `profiled_kernels`: the step is put together from kernels timed
    one by one, on a device too cool to lower its clock. `degraded`: it ran while the machines had
    a fault that was found later. `kernels` is what its kernels and exchanges reach on the device,
    `memory` what its allocator and libraries take of a device beside what is counted.
    """

    framework: str = "pytorch"
    version: str = ""
    compiled: bool = False
    fused_attention: bool = False
    cuda_graphs: CudaGraphs = CudaGraphs.NONE
    blocking_launches: bool = False
    fused_experts: bool = False
    attention_kernel: str = ""
    padded_vocabulary: bool = True
    fp8_recipe: Scaling = Scaling.TENSOR
    gradient_sum: GradientSum | None = None
    compiled_loss: bool = False
    chunked_loss: bool = False
    profiled_kernels: bool = False
    degraded: bool = False
    kernels: Kernels | None = None
    memory: MemoryFigures = BARE_MEMORY
