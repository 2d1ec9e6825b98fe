"""Selection of fitted kernel, launch and exchange figures for a device and a framework.

In `data/kernels/` one file is for all of them, one for each architecture, one for each software
generation, one for networks, and one lists the runs that the figures were fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Final

from simulator.physics.transformer import accumulation_precision
from simulator.reading.fitted.kernel_files import (
    Figures,
    KernelFile,
    KernelFiles,
    VariantTable,
    kernel_files,
    launch_factor,
    source_of,
)
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision, Stack
from simulator.schema.machines import Link
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.schema.software import (
    LAYER_KERNELS,
    CudaGraphs,
    ExchangeFigures,
    ExpertFigures,
    GradientSum,
    KernelFigures,
    Kernels,
    LaunchFigures,
    MemoryFigures,
    ProductFigures,
    Scaling,
    Software,
    UpdateFigures,
)
from simulator.units import Bytes

ANY: Final = "any"
"""Name for a framework without measurements, which uses the figures of another, as carried over."""
_FULL: Final = (Precision.FP32, Precision.TF32)
_WITHOUT_MATRIX_UNITS: Final = frozenset({"Kepler", "Maxwell", "Pascal", "M1"})
_WIDE: Final = (Precision.FP32, Precision.FP64)
"""Precisions that the matrix units of accelerators do not support."""
_CONTEXT_STACKS: Final = (Stack.CUDA, Stack.ROCM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Settings of a job that select the fitted figures.

    `summed_in` is the precision in which gradients of micro-batches are added up, `link` the link
    of the machines' network.
    """

    software: Software
    precision: Precision
    summed_in: Precision
    link: Link | None = None


def kernels(gpu: Gpu | None, use: Use, files: KernelFiles | None = None) -> Kernels | None:
    """Return the fitted figures for a device and its software.

    Parameters
    ----------
    gpu : Gpu or None
        The accelerator, whose architecture selects a file.
    use : Use
        The framework, which selects another file, and the settings that combine both.
    files : mapping of str to KernelFile, optional
        Files to use; by default those that ship.

    Returns
    -------
    Kernels or None
        None without an accelerator, or if neither its kernels nor those of a relative are known.
    """
    files = kernel_files() if files is None else files
    device = None if gpu is None or gpu.emulated else _of_device(gpu, files)
    if gpu is None or device is None:
        return None
    era, own = _era(use.software, files)
    found = Figures(files["shared"], device, era, *_of_framework(use.software, files))
    kernel = use.software.attention_kernel or era.attention_kernel or ""
    known = f"attention_{_key(kernel)}" in found
    kernel = kernel if known else era.attention_kernel or ""
    own_kernels = _kernel(found, device, gpu, kernel, use)
    others = found.value("others") * _others(era, files)
    wide = found.value("network_gradients"), found.value("network_sends")
    factors = _network_factors(use.link, files)
    return Kernels(
        product=_product(found, device, gpu, use),
        kernel=replace(own_kernels, others=others),
        launch=_launch(found, use.software, _launched(found, gpu, use.software, files)),
        exchange=_exchange(found, (wide[0] * factors[0], wide[1] * factors[1])),
        update=UpdateFigures(
            traffic=found.value("update_traffic"),
            layer=found.value("update_layer"),
            host=found.value("update_host"),
            accumulated=_accumulated(found, era, use),
        ),
        expert=ExpertFigures(
            eager=found.value("expert_eager"),
            fused=found.value("expert_fused"),
            padding=found.value("expert_padding"),
        ),
        of_layers=own and known and gpu.multiprocessors is not None,
        carried_over=_carried_over(gpu, device, era, use),
        slowness=found.value("degraded") if use.software.degraded else 1.0,
        at_bound=tuple(found.at_bound()),
        apart=_apart(device, gpu),
        sources=found.sources(),
    )


def _apart(device: KernelFile, gpu: Gpu) -> tuple[float, Source] | None:
    found = _variant(device, gpu)
    return None if found is None else (found.products, source_of(found.source))


def _carried_over(gpu: Gpu, device: KernelFile, era: KernelFile, use: Use) -> bool:
    stands_in = use.software.framework.lower() in _stands_for(era) or use.precision in _FULL
    return device.carried_over or era.carried_over or stands_in or gpu.relative is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShares:
    """Fractions of a device's datasheet rates that kernels of any model reach.

    `products`: fraction of the peak at a precision that large matrix products reach at full clock.
    `throttle`: reduction of the clock when only matrix units work. `memory`: fraction of the memory
    bandwidth. Both are at most what was measured on the device.
    """

    products: float
    throttle: float
    memory: float


def _shares(found: Figures, device: KernelFile, gpu: Gpu, precision: Precision) -> DeviceShares:
    variant, throttle = _variant(device, gpu), found.value("throttle")
    memory = min(found.value("memory") * gpu.streaming, gpu.streamed)
    if _on_vector_units(gpu, precision):
        return DeviceShares(products=found.value("vector"), throttle=0.0, memory=memory)
    factor = 1.0 if variant is None else variant.products
    share = found.value(_share_at(found, gpu, precision)) * found.value("products")
    return DeviceShares(
        products=min(share * factor * gpu.reach, gpu.best / (1.0 - throttle)),
        throttle=throttle,
        memory=memory,
    )


def _on_vector_units(gpu: Gpu, precision: Precision) -> bool:
    runs_as = gpu.fallback.get(precision, precision)
    return gpu.architecture in _WITHOUT_MATRIX_UNITS or runs_as in _WIDE


def _share_at(found: Figures, gpu: Gpu, precision: Precision) -> str:
    narrow = {Precision.FP8: "share8", Precision.FP4: "share4"}
    own = narrow.get(gpu.fallback.get(precision, precision), "")
    return own if own in found else "share16"


def _variant(device: KernelFile, gpu: Gpu) -> VariantTable | None:
    return next((v for v in device.variant if gpu.name in v.gpus), None)


def _of_device(gpu: Gpu, files: KernelFiles) -> KernelFile | None:
    own = gpu.architecture if gpu.relative is None else gpu.relative.architecture
    return next((file for file in files.values() if own in file.architectures), None)


def _era(software: Software, files: KernelFiles) -> tuple[KernelFile, bool]:
    """Return the file of a framework's kernels, and whether it is its own or another framework's.

    If two files apply, the one that distinguishes compiled models is returned.
    """
    name = software.framework.lower()
    eras = [file for file in files.values() if file.kind == "software"]
    fitting = [file for file in eras if file.compiled in (None, software.compile)]
    own = [file for file in fitting if name in (*file.frameworks, *_stands_for(file))]
    others = [file for file in fitting if file.generic]
    return max(own or others, key=lambda file: file.compiled is not None), bool(own)


def _others(era: KernelFile, files: KernelFiles) -> float:
    """Return the factor on the traffic of other kernels over that of an eager framework.

    Below 1 for compiled models: the factor of norms and activations of language models.
    """
    if not era.compiled:
        return 1.0
    eras = [file for file in files.values() if file.kind == "software"]
    eager = next(f for f in eras if f.compiled is False and f.frameworks == era.frameworks)
    return era.figures["plain"].value / eager.figures["plain"].value


def _launched(found: Figures, gpu: Gpu, software: Software, files: KernelFiles) -> Source:
    """Return the source of the launch times, which says if they are those of others."""
    eras = (f for f in files.values() if f.kind == "software")
    own = any(software.framework.lower() in (*f.frameworks, *f.stands_for) for f in eras)
    known = "" if own else "taken over from other frameworks; "
    known += "" if gpu.stack is Stack.CUDA else "taken over from devices of CUDA; "
    fitted = found.source("launch_forward")
    return replace(fitted, reference=f"{known}{fitted.reference}", verified=known == "")


def _stands_for(file: KernelFile) -> tuple[str, ...]:
    return (*file.stands_for, *((ANY,) if file.generic else ()))


def stood_in(software: Software) -> bool:
    """Return whether a framework has no fitted kernels and uses another framework's."""
    name, files = software.framework.lower(), kernel_files().values()
    own = (file.frameworks for file in files if file.kind == "software")
    return not any(name in names for names in own)


@cache
def frameworks(*, compiled: bool) -> tuple[str, ...]:
    """Return the frameworks whose kernels are known, or that use those of another one, sorted."""
    files = [file for file in kernel_files().values() if file.kind == "software"]
    fitting = [file for file in files if file.compiled in (None, compiled)]
    return tuple(sorted({n for file in fitting for n in (*file.frameworks, *file.stands_for)}))


@cache
def attentions() -> tuple[str, ...]:
    """Return the fused attention kernels with figures, as values of `software.attention_kernel`."""
    names = {name for file in kernel_files().values() for name in file.figures}
    lead, back = "attention_", "_backward"
    own = {n.removeprefix(lead) for n in names if n.startswith(lead) and not n.endswith(back)}
    return tuple(sorted(name.replace("_", "-") for name in own))


def _of_framework(software: Software, files: KernelFiles) -> Iterator[KernelFile]:
    name, compiled = software.framework.lower(), (None, software.compile)
    own = (f for f in files.values() if f.kind == "framework" and name in f.frameworks)
    return (file for file in own if file.compiled in compiled)


def _key(kernel: str) -> str:
    return kernel.lower().replace("-", "_")


def _product(found: Figures, device: KernelFile, gpu: Gpu, use: Use) -> ProductFigures:
    variant, own = _variant(device, gpu), _shares(found, device, gpu, use.precision)
    others = 1.0 if variant is None else variant.others
    wide = found.value("share16") * found.value("products") * others * gpu.reach
    return ProductFigures(
        share16=own.products if _on_vector_units(gpu, use.precision) else wide,
        share=own.products,
        tile_half=found.value("tile_half"),
        wave=found.value("wave"),
        fill=found.value("fill"),
        unaligned=found.value("unaligned"),
        throttle=0.0 if use.software.profiled_kernels else own.throttle,
    )


def _kernel(found: Figures, device: KernelFile, gpu: Gpu, kernel: str, use: Use) -> KernelFigures:
    variant = _variant(device, gpu)
    factor = 1.0 if variant is None else variant.attention.get(kernel, 1.0)
    cast = "cast_4" if use.precision is Precision.FP4 else ""
    if use.software.fp8_recipe is Scaling.BLOCK:
        cast = "cast_block"
    loss = "loss" if use.software.padded_vocabulary else "loss_unpadded"
    name = f"attention_{_key(kernel)}"
    return KernelFigures(
        memory=_shares(found, device, gpu, use.precision).memory,
        start=found.value("start"),
        attention=found.value(name) * factor * gpu.reach,
        attention_backward=found.value(f"{name}_backward"),
        gated=found.value("gated"),
        plain=found.value("plain"),
        cast=found.first(cast, "cast"),
        loss=found.value(loss),
        softmax=found.value("softmax"),
        unbalanced_context=found.value("unbalanced_context"),
    )


def _launch(found: Figures, software: Software, source: Source) -> LaunchFigures:
    """Return the launch figures; without a program's overhead for a step of profiled kernels."""
    recorded = software.cuda_graphs is not CudaGraphs.NONE
    experts = found.value(f"graphs_{software.cuda_graphs}_experts") if recorded else 1.0
    return LaunchFigures(
        forward=found.value("launch_forward") / LAYER_KERNELS[0],
        backward=found.value("launch_backward") / LAYER_KERNELS[1],
        unfused=found.value("launch_unfused"),
        collective=found.value("launch_collective"),
        embedding=found.value("launch_embedding"),
        head=found.value("launch_head"),
        step=0.0 if software.profiled_kernels else found.value("launch_step"),
        experts=found.value("launch_experts") * experts,
        overlapped_experts=found.value("launch_overlapped_experts"),
        factor=launch_factor(found, software),
        jitter=found.value("jitter"),
        blend=1.0 if software.blocking_launches else found.value("blend"),
        source=source,
    )


def _exchange(found: Figures, network: tuple[float, float]) -> ExchangeFigures:
    gradients, sends = network
    combined = {"network_gradients", "network_sends"}
    names = [each.name for each in fields(ExchangeFigures) if each.name not in combined]
    values = {name: found.value(name) for name in names}
    return ExchangeFigures(**values, network_gradients=gradients, network_sends=sends)


def memory_figures(gpu: Gpu | None, use: Use, files: KernelFiles | None = None) -> MemoryFigures:
    """Return the memory of the allocator and libraries on a device.

    Parameters
    ----------
    gpu : Gpu or None
        The accelerator. Compilers that allocate all memory beforehand, as for TPUs, Trainium and
        Gaudi, waste none and have no context there.
    use : Use
        The framework and its settings.
    files : mapping of str to KernelFile, optional
        Files to use; by default those that ship.
    """
    files = kernel_files() if files is None else files
    era, known = _era(use.software, files)
    own = (era,) if known else ()
    found = Figures(files["shared"], *own, *_of_framework(use.software, files))
    scores = "memory_scores_compiled" if use.software.compiled_loss else "memory_scores"
    figures = MemoryFigures(
        scores=0.0 if use.software.chunked_loss else found.value(scores),
        unread=found.value("memory_unread"),
        copies=found.value("memory_copies"),
        narrow=found.value("memory_narrow"),
        separate_gate=found.value("memory_separate_gate"),
        autocast=found.value("memory_autocast"),
        bucket_copy=found.value("memory_bucket_copy"),
        buckets=found.value("memory_buckets"),
        bucket_bytes=found.value("memory_bucket_bytes"),
        live=found.value("memory_live") or math.inf,
    )
    if gpu is None or gpu.stack not in _CONTEXT_STACKS:
        return figures
    context = [f"memory_context_{_key(gpu.architecture)}", "memory_context"]
    return replace(
        figures,
        waste=found.value("memory_waste"),
        context=found.first(*context),
        group=found.value("memory_group"),
        sources={
            "context": found.source(next(name for name in context if name in found)),
            "waste": found.source("memory_waste"),
            "group": found.source("memory_group"),
        },
    )


def _network_factors(link: Link | None, files: KernelFiles) -> tuple[float, float]:
    """Return the factors on the efficiency of gradient collectives and of sends on a network."""
    name = "" if link is None else link.name
    tables = [table for file in files.values() for table in file.network]
    found = next((table for table in tables if name in table.links), None)
    return (1.0, 1.0) if found is None else (found.gradients, found.sends)


def _accumulated(found: Figures, era: KernelFile, use: Use) -> Bytes:
    """Return the bytes moved per parameter to add up its gradient, per micro-batch [B]."""
    way = use.software.gradient_sum or era.gradient_sum
    if way is GradientSum.IN_PLACE:
        return 0.0
    wide = "sum_32" if use.summed_in is Precision.FP32 else "sum_16"
    if use.precision in _FULL and "sum_uncast" in found:
        wide = "sum_uncast"
    return found.first("sum_fused", wide) if way is GradientSum.FUSED else found.value(wide)


def use_of(scenario: Scenario) -> Use:
    """Return the settings of a scenario's job that select the fitted figures."""
    job, network = scenario.job, scenario.cluster.trainers.host.network
    return Use(
        software=job.software,
        precision=job.train.precision,
        summed_in=accumulation_precision(job),
        link=None if network is None else network.link,
    )


def with_kernel_files(scenario: Scenario, files: KernelFiles) -> Scenario:
    """Return the scenario with the kernel and memory figures of `files`."""
    job, gpu, use = scenario.job, scenario.cluster.trainers.host.gpu, use_of(scenario)
    software = replace(
        job.software,
        kernels=kernels(gpu, use, files),
        memory=memory_figures(gpu, use, files),
    )
    return replace(scenario, jobs=(replace(job, software=software), *scenario.jobs[1:]))
