"""What stands before and after the layers of a transformer: tables, and what is computed last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """How a sample becomes vectors: looked up as tokens, or projected from image patches.

    `tokens`, `positions` and `segments` are rows of learned tables; `patch` the values of one
    patch. Each position takes `integers_per_token` 64-bit integers to the device.
    """

    tokens: int = 0
    positions: int = 0
    segments: int = 0
    patch: int = 0
    normalized: bool = False
    integers_per_token: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is computed from the last layer: `features` scores for a `share` of the positions.

    `share` None: for one position of each sample. A `tied` head uses the token table; a `pooler`
    is a square layer over one position.
    """

    features: int
    share: float | None = None
    tied: bool = False
    bias: bool = False
    pooler: bool = False
