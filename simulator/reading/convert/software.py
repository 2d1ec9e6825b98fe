"""From the [software] section to `Software`, with the fitted figures that hold for it.

Candidates of a search mostly share their software, and finding its figures takes longer than the
rest of reading one. So it is built once for the same section on the same accelerator and network.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.memo import cached
from simulator.reading.fitted.kernels import Use, kernels, memory_figures
from simulator.reading.sections import SoftwareSection, TrainSection
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.link import Link
from simulator.schema.precision import Precision
from simulator.schema.workload.software import Software


def software_of(
    given: SoftwareSection,
    train: TrainSection,
    host: Host,
    gpu: Gpu | None,
    *,
    fused: bool,
) -> Software:
    """Return the software with the fitted figures that hold for it; `fused`: attention is."""
    exchanged = Precision.FP32 if train.mixed_precision else Precision.BF16
    return _built(
        given,
        gpu,
        None if host.network is None else host.network.link,
        fused,
        train.precision or Precision.FP32,
        train.accumulation_precision or train.gradient_precision or exchanged,
    )


@cached()
def _built(  # noqa: PLR0913, PLR0917 - all that the figures depend on
    given: SoftwareSection,
    gpu: Gpu | None,
    link: Link | None,
    fused: bool,  # noqa: FBT001 - shared by position
    precision: Precision,
    summed_in: Precision,
) -> Software:
    version = given.version or ""
    software = Software(
        framework=given.framework,
        version=version,
        compiled=given.compile,
        fused_attention=fused,
        cuda_graphs=given.cuda_graphs,
        blocking_launches=given.blocking_launches,
        fused_experts=given.fused_experts,
        attention_kernel=given.attention_kernel or "",
        padded_vocabulary=given.padded_vocabulary,
        fp8_recipe=given.fp8_recipe,
        gradient_sum=given.gradient_sum,
        compiled_loss=given.compile if given.compiled_loss is None else given.compiled_loss,
        chunked_loss=given.chunked_loss,
        profiled_kernels=given.profiled_kernels,
        degraded=given.degraded,
    )
    use = Use(
        software=software,
        precision=precision,
        summed_in=summed_in,
        link=link,
    )
    return replace(
        software,
        kernels=kernels(gpu, use),
        memory=memory_figures(gpu, use),
    )
