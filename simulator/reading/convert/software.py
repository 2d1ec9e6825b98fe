"""From the [software] section to `Software`, with the fitted figures that hold for it.

Candidates of a search mostly share their software, and finding its figures takes longer than the
rest of reading one. So it is built once for the same section on the same accelerator and network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from simulator.memo import Memo
from simulator.reading.convert.training import fused_attention
from simulator.reading.fitted.kernels import Use, kernels, memory_figures
from simulator.reading.resolved import Draft
from simulator.reading.sections import SoftwareSection
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.link import Link
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Model
from simulator.schema.workload.software import Software

_kept: Final[Memo[Software]] = Memo(1000)


@dataclass(frozen=True, slots=True)
class _Words:
    """What software follows from beside its section, the accelerator and the network.

    Whether attention is one kernel, the precision, and what gradients are added up in.
    """

    fused: bool
    precision: Precision
    summed_in: Precision


def software_of(draft: Draft, model: Model | None) -> Software:
    """The software of a draft without mistakes."""
    train, network = draft.train, draft.machine.network
    exchanged = Precision.FP32 if train.mixed_precision else Precision.BF16
    section, gpu = draft.software, draft.gpu
    link = None if network is None else network.link
    words = _Words(
        fused=fused_attention(draft, model),
        precision=train.precision or Precision.FP32,
        summed_in=train.accumulation_precision or train.gradient_precision or exchanged,
    )
    return _kept.of((section, gpu, link), lambda: _built(section, gpu, link, words), words)


def _built(given: SoftwareSection, gpu: Gpu | None, link: Link | None, words: _Words) -> Software:
    version = given.version or ""
    software = Software(
        framework=given.framework,
        version=version,
        compiled=given.compile,
        fused_attention=words.fused,
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
        precision=words.precision,
        summed_in=words.summed_in,
        link=link,
    )
    return replace(
        software,
        kernels=kernels(gpu, use),
        memory=memory_figures(gpu, use),
    )
