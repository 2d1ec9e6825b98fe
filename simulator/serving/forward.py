"""Who knows how long an iteration takes: a forward pass, as it is or at another speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from simulator.compute.forward_pass import Iteration
from simulator.units import Bytes, Seconds


class Pass(Protocol):
    """Knows how long a forward pass takes and what it keeps in the memory of each device."""

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device [B]."""

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """Keys and values of one token on one device [B]."""

    @property
    def activation_bytes_per_token(self) -> Bytes:
        """Activations of one token of an iteration on one device [B]."""

    def seconds(self, work: Iteration) -> Seconds:
        """Time of one iteration [s]."""

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Time of iterations in a row in which the same sequences take one token each [s]."""


@dataclass(frozen=True, slots=True)
class ScaledPass:
    """A forward pass that takes `factor` times as long and keeps the same."""

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
    def activation_bytes_per_token(self) -> Bytes:
        """Activations of one token of an iteration on one device [B]."""
        return self.plain.activation_bytes_per_token

    def seconds(self, work: Iteration) -> Seconds:
        """Time of one iteration [s]."""
        return self.factor * self.plain.seconds(work)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Time of iterations in a row in which the same sequences take one token each [s]."""
        return self.factor * self.plain.decode_seconds(decoding, context_tokens, iterations)
