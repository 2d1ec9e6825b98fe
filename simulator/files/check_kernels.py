"""What a model spread over devices needs figures of: its framework, its attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.files.catalogue import nearest_names
from simulator.files.convert_parallelism import parallelism_of
from simulator.files.kernels import ANY, attentions, frameworks
from simulator.files.resolved import Check, Draft, check_of
from simulator.files.software import named_frameworks

Problems: TypeAlias = Iterator[Problem]


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
