"""Which spreads there can be, and which causes of waiting exclude each other.

`SPREAD_CHECKS` has the form of `checks.CHECKS`, which it is part of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.files.document import Document
from simulator.files.lines import KeyPath
from simulator.files.resolved import Check, Draft, check_of
from simulator.files.sections import SpreadTable
from simulator.scenario.workload.distribution import Shape

Problems: TypeAlias = Iterator[Problem]

_WIDEST_UNIFORM: Final = 1.0 / math.sqrt(3.0)


def _size_spread(draft: Draft) -> Problems:
    yield from _spread(draft.document, draft.data.size_spread, ("data", "size_spread"))


def _cost_spread(draft: Draft) -> Problems:
    yield from _spread(draft.document, draft.input.cost_spread, ("input", "cost_spread"))


def _device_spread(draft: Draft) -> Problems:
    yield from _spread(draft.document, draft.train.device_spread, ("train", "device_spread"))


def _step_jitter(draft: Draft) -> Problems:
    path = ("train", "step_jitter")
    yield from _spread(draft.document, draft.train.step_jitter, path)
    if draft.train.step_jitter is not None and draft.train.straggling > 0.0:
        hint = "leave one of them out: both say how late a step is by chance"
        yield draft.document.problem(path, "is given beside straggling", hint=hint)


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


SPREAD_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_size_spread, "data.size_spread", reads="data"),
    check_of(_cost_spread, "input.cost_spread", reads="input"),
    check_of(_device_spread, "train.device_spread", reads="train"),
    check_of(_step_jitter, "train.step_jitter train.straggling", reads="train"),
)
