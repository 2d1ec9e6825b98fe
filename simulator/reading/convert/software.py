"""From the [software] section to `Software`, with the fitted figures that hold for it.

Candidates of a search mostly share their software, and finding its figures takes longer than the
rest of reading one. So it is built once for the same section on the same accelerator and network.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.memo import cached
from simulator.reading.convert.training import memory_format
from simulator.reading.fitted.kernels import Use, kernels, memory_figures
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.link import Link
from simulator.schema.precision import Precision
from simulator.schema.workload.software import MemoryFormat, Software
from simulator.schema.workload.train import Train


def software_of(
    given: Software,
    train: Train,
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
        memory_format(given),
        train.precision,
        train.accumulation_precision or train.gradient_precision or exchanged,
    )


@cached()
def _built(  # noqa: PLR0913, PLR0917 - all that the figures depend on
    given: Software,
    gpu: Gpu | None,
    link: Link | None,
    fused: bool,  # noqa: FBT001 - shared by position
    layout: MemoryFormat,
    precision: Precision,
    summed_in: Precision,
) -> Software:
    software = replace(
        given,
        fused_attention=fused,
        memory_format=layout,
        compiled_loss=given.compiled_loss if given.states("compiled_loss") else given.compile,
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
