"""Regimes that runs of language models lie in, by their descriptions: errors are shown for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from simulator.schema.measurement import REGIME_SEPARATOR

Cells: TypeAlias = Mapping[str, str]

_NARROW: Final = 8.0 * 128.0
"""Width of a device's part of a layer, eight tiles, below which its matrix products are small."""
_LONG: Final = 16384.0
_MANY: Final = 512.0


def regimes_of(cells: Cells) -> str:
    """The regimes of a run described by keys of a scenario, in one cell; it may lie in several."""
    return REGIME_SEPARATOR.join(name for name, holds in _REGIMES.items() if holds(cells))


def _number(cells: Cells, key: str) -> float:
    return float(cells.get(key) or 1.0)


def _tensor(cells: Cells) -> float:
    return _number(cells, "parallelism.tensor")


def _machine(cells: Cells) -> float:
    return _number(cells, "hardware.gpus")


def _part(cells: Cells) -> bool:
    several = _number(cells, "hardware.count") > 1.0
    return several and 1.0 < _tensor(cells) < _machine(cells)


_REGIMES: Final[Mapping[str, Callable[[Cells], bool]]] = {
    "small products": lambda c: _number(c, "model.shape.hidden") / _tensor(c) < _NARROW,
    "tensor over machines": lambda c: _tensor(c) > _machine(c),
    "part of a machine": _part,
    "long sequences": lambda c: _number(c, "model.shape.sequence") >= _LONG,
    "8 bit and below": lambda c: c.get("train.precision") in ("fp8", "fp4"),
    "experts": lambda c: c.get("model.family") == "moe",
    "sharded parameters": lambda c: c.get("parallelism.sharding") in ("parameters", "gradients"),
    "scores in memory": lambda c: c.get("software.fused_attention") == "false",
    "512 devices and more": lambda c: _machine(c) * _number(c, "hardware.count") >= _MANY,
}
"""Regime: whether a run lies in it. A part of a machine holds one of its tensor-parallel groups."""
