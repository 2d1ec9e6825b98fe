"""Who knows how long an iteration takes: a forward pass, as it is or at another speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from simulator.physics.forward_pass import Iteration
from simulator.schema.serving import Speculation
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

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Time in which each link of a device carries what so many tokens need [s].

        Parameters
        ----------
        prompts : float
            Tokens of prompts.
        answers : float
            Sequences that decode, added up over iterations.
        """


@dataclass(frozen=True, slots=True)
class _OfAnother:
    """A forward pass that keeps of each token what a plain one does."""

    plain: Pass

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """Keys and values of one token on one device [B]."""
        return self.plain.kv_bytes_per_token

    @property
    def activation_bytes_per_token(self) -> Bytes:
        """Activations of one token of an iteration on one device [B]."""
        return self.plain.activation_bytes_per_token


@dataclass(frozen=True, slots=True)
class ScaledPass(_OfAnother):
    """A forward pass that takes `factor` times as long and keeps the same."""

    factor: float

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Time in which each link of a device carries what so many tokens need [s]."""
        return self.plain.link_seconds(prompts, answers)

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device [B]."""
        return self.plain.weights_bytes

    def seconds(self, work: Iteration) -> Seconds:
        """Time of one iteration [s]."""
        return self.factor * self.plain.seconds(work)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Time of iterations in a row in which the same sequences take one token each [s]."""
        return self.factor * self.plain.decode_seconds(decoding, context_tokens, iterations)


@dataclass(frozen=True, slots=True)
class SpeculativePass(_OfAnother):
    """A forward pass that checks guessed tokens of each sequence, made before it one by one.

    Keys and values of a sequence are read once for all its guesses.
    """

    speculation: Speculation

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device, those of the guesser included [B]."""
        return self.plain.weights_bytes * (1.0 + self.speculation.draft)

    def seconds(self, work: Iteration) -> Seconds:
        """Time of one iteration [s]."""
        if not work.decoding:
            return self.plain.seconds(work)
        drafts, draft = self.speculation.drafts, self.speculation.draft
        alone = Iteration(decoding=work.decoding, context_tokens=work.context_tokens)
        checked = work._replace(decoding=work.decoding * (drafts + 1))
        return self.plain.seconds(checked) + drafts * draft * self.plain.seconds(alone)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Time of iterations in a row in which the same sequences take some tokens each [s]."""
        drafts, draft = self.speculation.drafts, self.speculation.draft

        def passes(rows: int) -> Seconds:
            # Contexts grow by the tokens that are accepted, not by the rows that are computed: as
            # their time is linear, what the first context differs by makes up for it.
            grown = (self.speculation.accepted * decoding - rows) * (iterations - 1) / 2.0
            return self.plain.decode_seconds(rows, context_tokens + grown, iterations)

        return passes(decoding * (drafts + 1)) + drafts * draft * passes(decoding)

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Time in which each link of a device carries what checked tokens and guesses need [s]."""
        drafts, draft = self.speculation.drafts, self.speculation.draft
        return self.plain.link_seconds(prompts, answers * (1.0 + drafts * (1.0 + draft)))
