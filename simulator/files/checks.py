"""What sections must agree on: mistakes that no key has by itself.

Each check looks at what it needs and is silent where that part of the draft has mistakes of its
own. `CHECKS` is the list of them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.files.document import Document
from simulator.files.draft import Draft
from simulator.files.lines import KeyPath
from simulator.files.sections import ModelSection, SpreadTable, StragglerTable
from simulator.units import BYTE, show
from simulator.workload.dataset import Layout
from simulator.workload.loader import LoaderKind
from simulator.workload.spread import Shape
from simulator.workload.train import Mode, Recompute

Problems: TypeAlias = Iterator[Problem]
_WIDEST_UNIFORM: Final = 1.0 / math.sqrt(3.0)
_FIGURES: Final = (
    "parameters",
    "forward_flops_per_sample",
    "memory_traffic_per_sample",
    "activation_bytes_per_sample",
    "input_bytes_per_sample",
    "output_bytes_per_sample",
)


def find_problems(draft: Draft) -> tuple[Problem, ...]:
    """All contradictions between the keys and sections of a draft."""
    return tuple(problem for look in CHECKS for problem in look(draft))


def _machine(draft: Draft) -> Problems:
    hardware, host, document = draft.hardware, draft.host, draft.document
    if hardware is None or host is None:
        return
    if hardware.gpus is not None and hardware.gpus > host.gpu_count:
        has = f"{host.name} has {host.gpu_count}"
        yield document.problem(("hardware", "gpus"), "is more than the machine has", hint=has)
    if hardware.storage is None and host.local_storage is None:
        message = f"is missing, and {host.name} has no drives of its own"
        hint = "name a store, such as storage/gp3"
        yield document.problem(("hardware", "storage"), message, hint=hint)
    if hardware.pcie_bandwidth is not None and host.host_link is None:
        message = "changes a link that the machine doesn't have"
        yield document.problem(("hardware", "pcie_bandwidth"), message)
    threads = hardware.vcpus or host.cpu.threads
    if hardware.cores is not None and hardware.cores > threads:
        hint = f"at most as many as vcpus, {threads:g}"
        yield document.problem(
            ("hardware", "cores"), "is more than the hardware threads", hint=hint
        )


def _dataset(draft: Draft) -> Problems:
    data, document = draft.data, draft.document
    if data is None:
        return
    path = ("data", "shard_size")
    if data.layout is Layout.SHARDS and data.shard_size is None:
        hint = "such as '150 MB'; or layout = \"files\""
        yield document.problem(path, "is missing; shards have one", hint=hint)
    if data.layout is not Layout.SHARDS and data.shard_size is not None:
        hint = f'leave it out, or layout = "shards" in place of "{data.layout.value}"'
        yield document.problem(path, "is given, but the data doesn't lie in shards", hint=hint)
    elif data.shard_size is not None and data.shard_size < data.bytes_per_sample:
        hint = f"at least one sample, {show(data.bytes_per_sample, BYTE)}"
        yield document.problem(path, "is smaller than a sample", hint=hint)


def _spreads(draft: Draft) -> Problems:
    if draft.data is not None:
        yield from _spread(draft.document, draft.data.size_spread, ("data", "size_spread"))
    if draft.input is not None:
        yield from _spread(draft.document, draft.input.cost_spread, ("input", "cost_spread"))


def _spread(document: Document, spread: SpreadTable | None, path: KeyPath) -> Problems:
    if spread is None:
        return
    deviation, path = spread.relative_deviation, (*path, "relative_deviation")
    fixed = {Shape.CONSTANT: 0.0, Shape.EXPONENTIAL: 1.0}.get(spread.shape)
    if deviation is None:
        if fixed is None:
            hint = "standard deviation over mean, such as 0.3"
            yield document.problem(path, "is missing", hint=hint)
    elif fixed is not None and deviation != fixed:
        hint = f"leave it out: it is always {fixed:g}"
        yield document.problem(path, f"doesn't fit the shape {spread.shape.value}", hint=hint)
    elif spread.shape is Shape.UNIFORM and deviation > _WIDEST_UNIFORM:
        message = "is wider than a uniform distribution of positive amounts can be"
        yield document.problem(path, message, hint=f"at most {_WIDEST_UNIFORM:.3f}")


def _last_batch(draft: Draft) -> Problems:
    data, pipeline, train = draft.data, draft.input, draft.train
    if data is None or pipeline is None or train is None or draft.ranks is None:
        return
    share = math.ceil(data.samples / draft.ranks)
    if pipeline.drop_last and train.batch_size > share:
        message = "is larger than the dataset, and drop_last drops incomplete batches"
        hint = f"at most {share}, the samples of one of {draft.ranks} ranks"
        yield draft.document.problem(("train", "batch_size"), message, hint=hint)


def _workers(draft: Draft) -> Problems:
    pipeline, document = draft.input, draft.document
    if pipeline is None:
        return
    pytorch = pipeline.loader is LoaderKind.PYTORCH
    if pytorch and pipeline.workers == 0:
        hint = "leave it out, or give input.workers"
        if pipeline.prefetch is not None:
            message = "is given, but without workers nothing is prefetched"
            yield document.problem(("input", "prefetch"), message, hint=hint)
        if pipeline.persistent_workers:
            message = "is given, but there are no workers"
            yield document.problem(("input", "persistent_workers"), message, hint=hint)
    for key in () if pytorch else ("in_order", "persistent_workers"):
        if key in pipeline.model_fields_set:
            message = f"is a setting of pytorch, not of {pipeline.loader.value}"
            yield document.problem(("input", key), message, hint="leave it out")


def _stragglers(draft: Draft) -> Problems:
    if draft.input is None:
        return
    for index, straggler in enumerate(draft.input.straggler):
        yield from _straggler(draft, straggler, ("input", "straggler", index))


def _straggler(draft: Draft, straggler: StragglerTable, path: KeyPath) -> Problems:
    pipeline = draft.input
    if (straggler.worker is None) == (straggler.every is None):
        number = "neither" if straggler.worker is None else "both"
        message = f"needs exactly one of worker and every, and has {number}"
        yield draft.document.problem(path, message)
    if pipeline is None or straggler.worker is None:
        return
    if straggler.worker >= pipeline.workers:
        hint = f"workers count from 0, and there are {pipeline.workers}"
        yield draft.document.problem((*path, "worker"), "is no worker", hint=hint)


def _copies(draft: Draft) -> Problems:
    pipeline, document, gpus = draft.input, draft.document, draft.gpus
    if pipeline is None or gpus is None:
        return
    asked = [key for key in ("pin_memory", "overlap_copies") if getattr(pipeline, key) is True]
    unified = draft.gpu is not None and draft.gpu.unified_memory
    for key in asked:
        if gpus == 0:
            message = "is about copies to an accelerator, and none is used"
            yield document.problem(("input", key), message, hint="leave it out")
        elif unified:
            message = "is about copies, and this device shares the host's memory"
            yield document.problem(("input", key), message, hint="leave it out")
    pinned = pipeline.pin_memory or (
        pipeline.pin_memory is None and pipeline.loader is LoaderKind.DALI
    )
    if asked == ["overlap_copies"] and gpus > 0 and not unified and not pinned:
        message = "needs page-locked memory"
        hint = "set input.pin_memory = true"
        yield document.problem(("input", "overlap_copies"), message, hint=hint)


def _yardstick(draft: Draft) -> Problems:
    pipeline, elsewhere, host = draft.input, draft.measured_on, draft.host
    if pipeline is None or elsewhere is None or host is None:
        return
    path = ("input", "measured_on")
    for machine in {elsewhere.name: elsewhere, host.name: host}.values():
        if machine.cpu.coremark is None:
            message = f"needs a CoreMark to compare processors, and {machine.name} has none"
            hint = "measure on this machine, and leave it out"
            yield draft.document.problem(path, message, hint=hint)


def _global_batch(draft: Draft) -> Problems:
    train, ranks = draft.train, draft.ranks
    if train is None or ranks is None or train.global_batch_size is None:
        return
    product = train.batch_size * train.accumulation * ranks
    if train.global_batch_size != product:
        message = "contradicts batch_size x accumulation x ranks"
        hint = f"{train.batch_size} x {train.accumulation} x {ranks} = {product}"
        yield draft.document.problem(("train", "global_batch_size"), message, hint=hint)


def _precision(draft: Draft) -> Problems:
    train, gpu = draft.train, draft.gpu
    if train is None:
        return
    path = ("train", "precision")
    if train.precision is None:
        if gpu is not None or (draft.has_model and not draft.learns_on_host):
            hint = "such as fp32, tf32, fp16 or bf16"
            yield draft.document.problem(path, "is missing", hint=hint)
        return
    if gpu is None or train.precision in gpu.peak or train.precision in gpu.fallback:
        return
    has = ", ".join(precision.value for precision in gpu.peak)
    yield draft.document.problem(path, f"is not among the formats of {gpu.name}", hint=has)


def _purpose(draft: Draft) -> Problems:
    train, gpu = draft.train, draft.gpu
    if train is None or gpu is None or not gpu.inference_only or train.mode is not Mode.TRAIN:
        return
    hint = 'choose another machine, or set train.mode = "infer"'
    path = ("hardware", "machine")
    yield draft.document.problem(path, f"has {gpu.name}, which doesn't train", hint=hint)


def _model_or_none(draft: Draft) -> Problems:
    train, document = draft.train, draft.document
    if train is None:
        return
    if train.mode is Mode.PREPARE:
        if draft.has_model:
            message = 'is given, but a job of mode "prepare" runs no model'
            yield document.problem(("model",), message, hint="leave it out")
    elif not draft.has_model:
        hint = 'give a name, figures or step_times, or set train.mode = "prepare"'
        yield document.problem(("model",), "is missing", hint=hint)
    if train.checkpoint_every_steps is not None and not _has_parameters(draft):
        message = "is given, but no model says how much there is to write"
        hint = "give model.name or model.parameters"
        yield document.problem(("train", "checkpoint_every_steps"), message, hint=hint)


def _has_parameters(draft: Draft) -> bool:
    if draft.has_model and draft.model is None:
        return True
    return draft.model is not None and bool(draft.model.name or draft.model.parameters)


def _figures(draft: Draft) -> Problems:
    model, document = draft.model, draft.document
    if model is None:
        return
    given = [key for key in _FIGURES if getattr(model, key) is not None]
    if model.name is not None:
        for key in given:
            message = "is given, but model.name says it already"
            yield document.problem(("model", key), message, hint="leave one of them out")
    elif not given and not model.step_times:
        yield document.problem(("model",), "says nothing", hint="give name, figures or step_times")
    elif given:
        needed = ["parameters"] if model.step_times else ["parameters", "forward_flops_per_sample"]
        for key in needed:
            if key not in given:
                hint = "a model without a name needs it"
                yield document.problem(("model", key), "is missing", hint=hint)
    if given and draft.train is not None and draft.train.recompute is not Recompute.NONE:
        message = "needs to know the layers of the model, and figures don't tell"
        yield document.problem(("train", "recompute"), message, hint="name a model of the library")
    yield from _measured_steps(document, model)


def _measured_steps(document: Document, model: ModelSection) -> Problems:
    seen: dict[int, int] = {}
    for index, step in enumerate(model.step_times):
        if step.batch_size in seen:
            path = ("model", "step_times", index, "batch_size")
            hint = f"step_times[{seen[step.batch_size]}] has it too"
            yield document.problem(path, "is given twice", hint=hint)
        seen.setdefault(step.batch_size, index)


CHECKS: Final[tuple[Callable[[Draft], Problems], ...]] = (
    _machine,
    _dataset,
    _spreads,
    _last_batch,
    _workers,
    _stragglers,
    _copies,
    _yardstick,
    _global_batch,
    _precision,
    _purpose,
    _model_or_none,
    _figures,
)
