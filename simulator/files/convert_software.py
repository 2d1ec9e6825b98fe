"""From the [software] section to `Software`, with the fitted figures that hold for it.

Candidates of a search mostly share their software, and finding its figures takes longer than the
rest of reading one. So it is built once for the same section on the same accelerator and network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from simulator.files.convert_parallelism import parallelism_of
from simulator.files.convert_training import fused_attention
from simulator.files.draft import Draft
from simulator.files.kernels import Use, kernels
from simulator.files.software import efficiency, factors
from simulator.files.software_section import SoftwareSection
from simulator.hardware.gpu import Gpu
from simulator.hardware.link import Link
from simulator.precision import Precision
from simulator.workload.models import Model
from simulator.workload.software import Software

_MOST: Final = 1000
"""Software that is kept."""
_Words: TypeAlias = tuple[bool, Precision, Precision, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What software follows from: things that are the same objects for many candidates, and words.

    `words` are whether attention is one kernel, the precision, what gradients are added up in, and
    whether the model is spread.
    """

    section: SoftwareSection
    gpu: Gpu | None
    link: Link | None
    words: _Words

    @property
    def identity(self) -> tuple[int, int, int, _Words]:
        """Equal for the same objects and words."""
        return id(self.section), id(self.gpu), id(self.link), self.words


def software_of(draft: Draft, model: Model | None) -> Software:
    """The software of a draft without mistakes."""
    train, network = draft.train, draft.machine.network
    exchanged = Precision.FP32 if train.mixed_precision else Precision.BF16
    asked = _Asked(
        section=draft.software,
        gpu=draft.gpu,
        link=None if network is None else network.link,
        words=(
            fused_attention(draft, model),
            train.precision or Precision.FP32,
            train.accumulation_precision or train.gradient_precision or exchanged,
            parallelism_of(draft).splits_model,
        ),
    )
    return _kept.of(asked)


class _Kept:
    """Software by what it follows from.

    Those things are kept with it: as long as they are, no others can have their identities.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, int, _Words], tuple[_Asked, Software]] = {}

    def of(self, asked: _Asked) -> Software:
        """Built now, or when it was asked for before."""
        known = self._found.get(asked.identity)
        if known is None:
            if len(self._found) >= _MOST:
                self._found.clear()
            known = self._found[asked.identity] = asked, _built(asked)
        return known[1]


_kept: Final = _Kept()


def _built(asked: _Asked) -> Software:
    given, gpu = asked.section, asked.gpu
    fused, precision, summed_in, spread = asked.words
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
        factors=factors(gpu, given.framework, version, given.compile, fused),
        efficiency=efficiency(gpu, given.framework, precision),
    )
    use = Use(
        software=software, precision=precision, summed_in=summed_in, spread=spread, link=asked.link
    )
    return replace(software, kernels=kernels(gpu, use))
