"""What a model may be given (a name, a shape, figures, measured steps), and what kernels it needs.

The kernels that time a model spread over devices are known by its framework and its attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.physics.transformer import is_classifier, of_tokens
from simulator.reading.convert.framework_figures import named_frameworks
from simulator.reading.convert.parallelism import parallelism_of
from simulator.reading.document import Document
from simulator.reading.fitted.kernels import ANY, attentions, frameworks
from simulator.reading.names import nearest_names
from simulator.reading.resolved import LIBRARY_CHANGES, Check, Draft, check_of
from simulator.reading.sections import ModelSection
from simulator.schema.workload.train import Mode, Recompute, Trained

Problems: TypeAlias = Iterator[Problem]
_FIGURES: Final = (
    "parameters",
    "forward_flops_per_sample",
    "memory_traffic_per_sample",
    "activation_bytes_per_sample",
    "input_bytes_per_sample",
    "output_bytes_per_sample",
)


def _figures(draft: Draft) -> Problems:
    model, document = draft.model, draft.document
    if model is None:
        return
    given = [key for key in _FIGURES if getattr(model, key) is not None]
    if model.name is not None or model.family is not None:
        stated = "name" if model.name is not None else "family"
        for key in (*given, *_beside(model)):
            message = f"is given, but model.{stated} says it already"
            yield document.problem(("model", key), message, hint="leave one of them out")
        return
    yield from _shapes(model, document)
    if not given:
        if not model.step_times:
            hint = "give a name, figures or step_times"
            yield document.problem(("model",), "says nothing", hint=hint, show=False)
        return
    needed = ["parameters"] if model.step_times else ["parameters", "forward_flops_per_sample"]
    for key in needed:
        if key not in given:
            hint = "a model without a name needs it"
            yield document.problem(("model", key), "is missing", hint=hint)


def _shapes(model: ModelSection, document: Document) -> Problems:
    """Keys that change the shape of a model, where none is named."""
    for key in LIBRARY_CHANGES:
        if getattr(model, key) is not None:
            message = "changes a model of the library, and none is named"
            yield document.problem(("model", key), message, hint="give model.name")
    if model.shape is not None:
        hint = "give model.family, such as gpt"
        yield document.problem(("model", "shape"), "is given without a family", hint=hint)


def _beside(model: ModelSection) -> list[str]:
    """Keys that say what the name, or the shape, of the model says already."""
    rivals = ("family", "shape") if model.name is not None else LIBRARY_CHANGES
    return [key for key in rivals if getattr(model, key) is not None]


def _recompute(draft: Draft) -> Problems:
    model = draft.model
    unknown = model is not None and model.name is None and model.family is None
    if unknown and draft.train.recompute is not Recompute.NONE:
        message = "needs to know the layers of the model, and figures don't tell"
        hint = "name a model of the library"
        yield draft.document.problem(("train", "recompute"), message, hint=hint)


def _adapters(draft: Draft) -> Problems:
    train, document = draft.train, draft.document
    if train.trained is not Trained.ALL:
        yield from _frozen(draft)
    if train.trained is Trained.LORA:
        return
    keys = ["lora_rank", "lora_targets"]
    keys += ["frozen_precision"] if train.trained is Trained.ALL else []
    for key in keys:
        if getattr(train, key) is not None:
            message = "is about adapters beside frozen weights, and there are none"
            yield document.problem(("train", key), message, hint='set train.trained = "lora"')


def _frozen(draft: Draft) -> Problems:
    """Adapters need layers of a language model, a head alone an image classifier."""
    document, path, model = draft.document, ("train", "trained"), draft.library_model
    if draft.mode is not Mode.TRAIN:
        message = f"is about training, and the mode is {draft.mode.value}"
        yield document.problem(path, message, hint="leave it out")
    elif draft.train.trained is Trained.LORA and not of_tokens(model):
        hint = "name a language model, such as llama-3.1-8b, or leave it out"
        yield document.problem(path, "needs a transformer over tokens", hint=hint)
    elif draft.train.trained is Trained.HEAD and not is_classifier(model):
        hint = 'name one, such as resnet50 or vit-b16; language models have "lora"'
        yield document.problem(path, "needs a classifier of images", hint=hint)


def _measured_steps(draft: Draft) -> Problems:
    given = (draft.document.value(("model", key)) for key in ("step_time", "step_times"))
    if all(given):
        message = "is given, and so is model.step_times"
        yield draft.document.problem(("model", "step_time"), message, hint="leave one of them out")
    seen: dict[int, int] = {}
    for index, step in enumerate(draft.model.step_times if draft.model else ()):
        if step.batch_size in seen:
            path = ("model", "step_times", index, "batch_size")
            hint = f"step_times[{seen[step.batch_size]}] has it too"
            yield draft.document.problem(path, "is given twice", hint=hint)
        seen.setdefault(step.batch_size, index)


_FIGURE_KEYS: Final = " ".join(f"model.{key}" for key in _FIGURES)
MODEL_CHECKS: Final[tuple[Check, ...]] = (
    check_of(
        _figures,
        f"{_FIGURE_KEYS} model.name model.family model.shape model.step_times",
        reads="model",
    ),
    check_of(_recompute, "train.recompute model.name", reads="train model"),
    check_of(
        _adapters,
        "train.trained train.lora_rank train.lora_targets train.frozen_precision train.mode "
        "model.name model.family",
        reads="train model mode library_model",
    ),
    check_of(_measured_steps, "model.step_times model.step_time", reads="model"),
)
"""Each check with the keys it rests on."""


def _framework(draft: Draft) -> Problems:
    software = draft.software
    known = frameworks(compiled=software.compile)
    if not _is_timed_by_kernels(draft) or software.framework.lower() in {*known, ANY}:
        return
    close = nearest_names(software.framework.lower(), known, most=1)
    nearest = f"did you mean '{close[0]}'? " if close else ""
    yield draft.document.problem(
        ("software", "framework"),
        "has no figures of kernels, which a model spread over devices is timed by",
        hint=(
            f"{nearest}allowed: {', '.join(known)}; or '{ANY}', which takes those of PyTorch and "
            "widens the interval"
        ),
    )


def _name(draft: Draft) -> Problems:
    named = draft.software.framework.lower()
    if named in named_frameworks() or _is_timed_by_kernels(draft):
        return
    known = named_frameworks().union(*(frameworks(compiled=compiled) for compiled in (True, False)))
    if named in known:
        return
    close = nearest_names(named, sorted(known - {ANY}), most=1)
    nearest = f"did you mean '{close[0]}'? " if close else ""
    yield draft.document.problem(
        ("software", "framework"),
        "is no framework that is known here",
        hint=(
            f"{nearest}allowed: {', '.join(sorted(known - {ANY}))}; or '{ANY}', whose figures are "
            "those of all frameworks together"
        ),
    )


def _attention(draft: Draft) -> Problems:
    named, known = draft.software.attention_kernel, attentions()
    if named is None or not _is_timed_by_kernels(draft) or named.lower() in known:
        return
    yield draft.document.problem(
        ("software", "attention_kernel"),
        "is no kernel that figures are known of",
        hint=f"allowed: {', '.join(known)}",
    )


def _is_timed_by_kernels(draft: Draft) -> bool:
    """Whether the step comes from figures of kernels: a spread model that nobody measured."""
    model = draft.model
    measured = model is not None and bool(model.step_times or model.step_time)
    device = draft.gpu is not None and not draft.gpu.emulated
    return device and not measured and parallelism_of(draft).splits_model


_SPREAD: Final = "hardware.machine hardware.gpu hardware.gpus model.step_times model.step_time"
KERNEL_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_name, f"{_SPREAD} software.framework", reads="model software parallelism gpu"),
    check_of(
        _framework,
        f"{_SPREAD} software.framework software.compile",
        reads="model software parallelism gpu",
    ),
    check_of(
        _attention, f"{_SPREAD} software.attention_kernel", reads="model software parallelism gpu"
    ),
)
"""Each check with the keys it rests on."""
