"""The section of a scenario file on the software a job runs on."""

from __future__ import annotations

from typing import Annotated

from simulator.files.document import FileModel
from simulator.files.quantity import Choice, TextField
from simulator.scenario.workload.software import CudaGraphs, GradientSum, MemoryFormat, Scaling


class SoftwareSection(FileModel):
    """The software the job runs on."""

    framework: TextField = "pytorch"
    """Name of the framework."""
    version: TextField | None = None
    """Its version, as text."""
    compile: bool = False
    """Whether the model is compiled (torch.compile and its kin)."""
    fused_attention: bool | None = None
    """Whether attention runs as one fused kernel; by default as the library's model says."""
    memory_format: Annotated[MemoryFormat, Choice(MemoryFormat)] | None = None
    """Order in which images lie in device memory: channels-first (NCHW) or channels-last (NHWC);
    the framework's own by default."""
    cuda_graphs: Annotated[CudaGraphs, Choice(CudaGraphs)] = CudaGraphs.NONE
    """What the host launches as one recorded graph: nothing, each layer (the framework's own
    graphs), parts of layers, or a full step."""
    blocking_launches: bool = False
    """Whether the host waits for each kernel it launches (CUDA_LAUNCH_BLOCKING)."""
    fused_experts: bool = False
    """Whether activation, casts and permutation of experts are fused into their products."""
    attention_kernel: TextField | None = None
    """Name of the fused attention kernel: triton, flash-2 or cudnn; the framework's by default."""
    padded_vocabulary: bool = True
    """Whether the table of tokens is padded to whole tiles for every tensor-parallel rank."""
    fp8_recipe: Annotated[Scaling, Choice(Scaling)] = Scaling.TENSOR
    """How numbers of 8 bit and less are scaled: tensor by tensor, or block by block."""
    gradient_sum: Annotated[GradientSum, Choice(GradientSum)] | None = None
    """How weight gradients of micro-batches are added up: by a separate kernel, fused into the
    matrix product, or in-place; the framework's usual way by default."""
    compiled_loss: bool | None = None
    """Whether the loss is compiled too, which saves copies of the scores; as compile by default."""
    chunked_loss: bool = False
    """Whether the head and the loss work on parts of the tokens, whose scores never lie in memory
    together."""
    profiled_kernels: bool = False
    """Whether the step is put together from kernels timed one by one on a cool device."""
    degraded: bool = False
    """Whether it ran while the machines had a fault that was found later."""
