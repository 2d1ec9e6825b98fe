"""A card of the same chip, or of another, on which the library has a measured step of the model."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

from simulator.memo import cached
from simulator.physics.device_time import of_totals
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.sections import TrainSection
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Model
from simulator.schema.workload.train import Mode

_ALIKE: Final = 0.1
"""How far the ratio of matrix to vector rate may lie apart on cards of one chip, as a logarithm."""


@cached()
def sister_of(
    train: TrainSection, gpu: Gpu | None, model: Model | None, framework: str
) -> Gpu | None:
    """The nearest card of the same chip that the model was measured on, where its own has no row.

    Frequencies, memory and enabled units differ between such cards, so a measured step is carried
    over as a ratio. The precision and the framework are those of the job. A model that is known by
    its totals takes twice as long and more than those tell, so that its steps are carried over from
    any card, in a precision of the same width.
    """
    if gpu is None or model is None or train.mode is not Mode.TRAIN:
        return None
    precision, framework = train.precision or Precision.FP32, framework.lower()
    own = [times for times in model.step_times if times.gpu and times.framework == framework]
    exact = {times.gpu or "" for times in own if times.precision is precision}
    if gpu.name in exact:
        return None
    names, width = exact, precision.bytes_per_element
    if of_totals(model):
        wide = [(times.gpu or "", times.precision or Precision.FP32) for times in own]
        names = {name for name, given in wide if given.bytes_per_element == width}
    cards = [_shipped(name) for name in sorted(names)]
    alike = [card for card in cards if is_sister(gpu, card)]
    anywhere = cards if of_totals(model) else []
    return min(alike or anywhere, key=lambda card: _distance(gpu, card), default=None)


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
    """The rate of matrix products in 16 bit, where there is none the best rate there is."""
    wide = (card.peak.get(name) for name in (Precision.FP16, Precision.BF16, Precision.FP32))
    return next(filter(None, wide), max(card.peak.values(), default=0.0))


def _distance(one: Gpu, other: Gpu) -> float:
    """How far the data sheets of two cards lie apart, as logarithms of rates that both state."""
    pairs = (
        (_matrix(one), _matrix(other)),
        (one.memory_bandwidth, other.memory_bandwidth),
    )
    return sum(abs(math.log(mine / theirs)) for mine, theirs in pairs if mine and theirs)
