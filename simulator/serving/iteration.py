"""What one iteration of a serving engine computes, and who knows how long that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from simulator.units import Bytes, Seconds


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration of a serving engine computes.

    `prefill_tokens` of prompts attend to `prefill_pairs` tokens up to and with themselves, and
    `first_tokens` prompts end in it. `decoding` sequences take one more token each; their contexts
    with that token are `context_tokens` together.
    """

    prefill_tokens: int = 0
    prefill_pairs: float = 0.0
    first_tokens: int = 0
    decoding: int = 0
    context_tokens: float = 0.0


class Pass(Protocol):
    """Knows how long a forward pass takes and what it keeps in the memory of each device."""

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device [B]."""

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """Keys and values of one token on one device [B]."""

    @property
    def activation_peak_bytes(self) -> Bytes:
        """Activations of the largest iteration on one device [B]."""

    def seconds(self, work: Iteration) -> Seconds:
        """Time of one iteration [s]."""

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Time of iterations in a row in which the same sequences take one token each [s]."""


@dataclass(frozen=True, slots=True)
class ScaledPass:
    """A forward pass that takes `factor` times as long."""

    plain: Pass
    factor: float

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device [B]."""
        return self.plain.weights_bytes

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """Keys and values of one token on one device [B]."""
        return self.plain.kv_bytes_per_token

    @property
    def activation_peak_bytes(self) -> Bytes:
        """Activations of the largest iteration on one device [B]."""
        return self.plain.activation_peak_bytes

    def seconds(self, work: Iteration) -> Seconds:
        """Time of one iteration [s]."""
        return self.factor * self.plain.seconds(work)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Time of iterations in a row in which the same sequences take one token each [s]."""
        return self.factor * self.plain.decode_seconds(decoding, context_tokens, iterations)
