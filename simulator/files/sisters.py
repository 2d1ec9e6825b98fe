"""A card of the same chip on which the library has a measured step of the model."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

from simulator.files.catalogue import Catalogue
from simulator.files.convert_training import model_of
from simulator.files.resolved import Draft
from simulator.scenario.hardware.gpu import Gpu
from simulator.scenario.precision import Precision
from simulator.scenario.workload.train import Mode

_ALIKE: Final = 0.1
"""How far the ratio of matrix to vector rate may lie apart on cards of one chip, as a logarithm."""


def sister_of(draft: Draft) -> Gpu | None:
    """The nearest card of the same chip that the model was measured on, where its own has no row.

    Frequencies, memory and enabled units differ between such cards, so a measured step is carried
    over as a ratio. The precision and the framework are those of the job.
    """
    gpu, model, train = draft.gpu, model_of(draft), draft.train
    if gpu is None or model is None or draft.mode is not Mode.TRAIN:
        return None
    precision, framework = train.precision or Precision.FP32, draft.software.framework.lower()
    names = {
        times.gpu
        for times in model.step_times
        if times.gpu and (times.precision, times.framework) == (precision, framework)
    }
    if not names or gpu.name in names:
        return None
    cards = [card for name in sorted(names) if is_sister(gpu, card := _shipped(name))]
    return min(cards, key=lambda card: _distance(gpu, card), default=None)


@cache
def _shipped(name: str) -> Gpu:
    return Catalogue.default().gpu(name)


def is_sister(one: Gpu, other: Gpu) -> bool:
    """Whether two cards have the same chip: one architecture, and units of the same kinds."""
    ratios = [_matrix(card) / card.peak.get(Precision.FP32, math.inf) for card in (one, other)]
    if one.architecture != other.architecture or not all(ratios):
        return False
    return abs(math.log(ratios[0] / ratios[1])) < _ALIKE


def _matrix(card: Gpu) -> float:
    return card.peak.get(Precision.FP16) or card.peak.get(Precision.FP32, 0.0)


def _distance(one: Gpu, other: Gpu) -> float:
    """How far the data sheets of two cards lie apart, as logarithms of their rates."""
    pairs = (
        (_matrix(one), _matrix(other)),
        (one.memory_bandwidth, other.memory_bandwidth),
    )
    return sum(abs(math.log(mine / theirs)) for mine, theirs in pairs)
