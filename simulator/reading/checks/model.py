"""What a model may be given (a name, a shape, figures, measured steps), and what kernels it needs.

The kernels that time a model spread over devices are known by its framework and its attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.physics.transformer import is_classifier, of_tokens
from simulator.reading.convert.framework_figures import named_frameworks
from simulator.reading.fitted.kernels import ANY, attentions, frameworks
from simulator.reading.names import nearest_names
from simulator.reading.sections import ModelSection
from simulator.reading.unresolved import LIBRARY_CHANGES, Check, UnresolvedScenario
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


def _figures(file: UnresolvedScenario) -> Problems:
    model = file.model
    if model is None:
        return
    given = [key for key in _FIGURES if getattr(model, key) is not None]
    if model.name is not None or model.family is not None:
        stated = "name" if model.name is not None else "family"
        for key in (*given, *_beside(model)):
            message = f"is given, but model.{stated} says it already"
            yield file.problem(("model", key), message, hint="leave one of them out")
        return
    yield from _shapes(file, model)
    if not given:
        if not file.step_times:
            hint = "give a name, figures or step_times"
            yield file.problem(("model",), "says nothing", hint=hint, show=False)
        return
    needed = ["parameters"] if file.step_times else ["parameters", "forward_flops_per_sample"]
    for key in needed:
        if key not in given:
            hint = "a model without a name needs it"
            yield file.problem(("model", key), "is missing", hint=hint)


def _shapes(file: UnresolvedScenario, model: ModelSection) -> Problems:
    """Keys that change the shape of a model, where none is named."""
    for key in LIBRARY_CHANGES:
        if getattr(model, key) is not None:
            message = "changes a model of the library, and none is named"
            yield file.problem(("model", key), message, hint="give model.name")
    if model.shape is not None:
        hint = "give model.family, such as gpt"
        yield file.problem(("model", "shape"), "is given without a family", hint=hint)


def _beside(model: ModelSection) -> list[str]:
    """Keys that say what the name, or the shape, of the model says already."""
    rivals = ("family", "shape") if model.name is not None else LIBRARY_CHANGES
    return [key for key in rivals if getattr(model, key) is not None]


def _recompute(file: UnresolvedScenario) -> Problems:
    model = file.model
    unknown = model is not None and model.name is None and model.family is None
    if unknown and file.train.recompute is not Recompute.NONE:
        message = "needs to know the layers of the model, and figures don't tell"
        hint = "name a model of the library"
        yield file.problem(("train", "recompute"), message, hint=hint)


def _adapters(file: UnresolvedScenario) -> Problems:
    train = file.train
    if train.trained is not Trained.ALL:
        yield from _frozen(file)
    if train.trained is Trained.LORA:
        return
    keys = ["lora_rank", "lora_targets"]
    keys += ["frozen_precision"] if train.trained is Trained.ALL else []
    for key in keys:
        if getattr(train, key) is not None:
            message = "is about adapters beside frozen weights, and there are none"
            yield file.problem(("train", key), message, hint='set train.trained = "lora"')


def _frozen(file: UnresolvedScenario) -> Problems:
    """Adapters need layers of a language model, a head alone an image classifier."""
    path, model = ("train", "trained"), file.library_model
    if file.mode is not Mode.TRAIN:
        message = f"is about training, and the mode is {file.mode.value}"
        yield file.problem(path, message, hint="leave it out")
    elif file.train.trained is Trained.LORA and not of_tokens(model):
        hint = "name a language model, such as llama-3.1-8b, or leave it out"
        yield file.problem(path, "needs a transformer over tokens", hint=hint)
    elif file.train.trained is Trained.HEAD and not is_classifier(model):
        hint = 'name one, such as resnet50 or vit-b16; language models have "lora"'
        yield file.problem(path, "needs a classifier of images", hint=hint)


def _measured_steps(file: UnresolvedScenario) -> Problems:
    model = file.model
    if model is not None and model.step_time is not None and model.step_times:
        message = "is given, and so is model.step_times"
        yield file.problem(("model", "step_time"), message, hint="leave one of them out")
    seen: dict[int, int] = {}
    for index, step in enumerate(file.step_times):
        if step.batch_size in seen:
            path = ("model", "step_times", index, "batch_size")
            hint = f"step_times[{seen[step.batch_size]}] has it too"
            yield file.problem(path, "is given twice", hint=hint)
        seen.setdefault(step.batch_size, index)


_FIGURE_KEYS: Final = " ".join(f"model.{key}" for key in _FIGURES)
MODEL_CHECKS: Final[tuple[Check, ...]] = (
    _figures,
    _recompute,
    _adapters,
    _measured_steps,
)


def _framework(file: UnresolvedScenario) -> Problems:
    software = file.software
    known = frameworks(compiled=software.compile)
    if not _is_timed_by_kernels(file) or software.framework.lower() in {*known, ANY}:
        return
    close = nearest_names(software.framework.lower(), known, most=1)
    nearest = f"did you mean '{close[0]}'? " if close else ""
    yield file.problem(
        ("software", "framework"),
        "has no figures of kernels, which a model spread over devices is timed by",
        hint=(
            f"{nearest}allowed: {', '.join(known)}; or '{ANY}', which takes those of PyTorch and "
            "widens the interval"
        ),
    )


def _name(file: UnresolvedScenario) -> Problems:
    named = file.software.framework.lower()
    if named in named_frameworks() or _is_timed_by_kernels(file):
        return
    known = named_frameworks().union(*(frameworks(compiled=compiled) for compiled in (True, False)))
    if named in known:
        return
    close = nearest_names(named, sorted(known - {ANY}), most=1)
    nearest = f"did you mean '{close[0]}'? " if close else ""
    yield file.problem(
        ("software", "framework"),
        "is no framework that is known here",
        hint=(
            f"{nearest}allowed: {', '.join(sorted(known - {ANY}))}; or '{ANY}', whose figures are "
            "those of all frameworks together"
        ),
    )


def _attention(file: UnresolvedScenario) -> Problems:
    named, known = file.software.attention_kernel, attentions()
    if not named or not _is_timed_by_kernels(file) or named.lower() in known:
        return
    yield file.problem(
        ("software", "attention_kernel"),
        "is no kernel that figures are known of",
        hint=f"allowed: {', '.join(known)}",
    )


def _is_timed_by_kernels(file: UnresolvedScenario) -> bool:
    """Whether the step comes from figures of kernels: a spread model that nobody measured."""
    measured = bool(file.step_times)
    device = file.gpu is not None and not file.gpu.emulated
    return device and not measured and file.parallelism.splits_model


KERNEL_CHECKS: Final[tuple[Check, ...]] = (
    _name,
    _framework,
    _attention,
)
