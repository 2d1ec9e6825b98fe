"""Encoder and decoder side by side: each layer of the decoder also attends to what is encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from simulator.schema.precision import Precision
from simulator.schema.workload.models import Forward, Operator, StepTimes
from simulator.schema.workload.models.ends import Embedding, Head
from simulator.schema.workload.models.layer import activation_element
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.train import Recompute
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Real, Seconds, at_least

_WITH_MASK = 2.0
"""Integers of a token that is read: its number and whether it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDecoder:
    """Two stacks that share one table of tokens."""

    name: str
    encoder: Transformer
    decoder: Transformer
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Trainable parameters; the table of tokens counts once."""
        table = float(self.decoder.embedding.tokens * self.decoder.hidden)
        return self.encoder.parameters + self.decoder.parameters - table

    @property
    def dense_parameters(self) -> float:
        """All of them."""
        return self.parameters

    @property
    def fused_attention(self) -> bool:
        """Whether attention is one kernel that keeps no matrix of scores in memory."""
        return self.encoder.fused_attention

    @property
    def cpu_seconds(self) -> Seconds:
        """None: a device does the work [s]."""
        return 0.0

    @property
    def input_bytes(self) -> Bytes:
        """Numbers of the tokens read and of those to be written [B]."""
        return self.encoder.input_bytes + self.decoder.input_bytes

    @property
    def output_bytes(self) -> Bytes:
        """The chosen token of each position that is written [B]."""
        return self.decoder.output_bytes

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """The forward pass over `samples` pairs of sequences, stack by stack."""
        return tuple(
            replace(operator, name=f"{name} {operator.name}")
            for name, stack in (("encoder", self.encoder), ("decoder", self.decoder))
            for operator in stack.operators(samples, precision)
        )

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Bytes kept for the backward pass of `samples` pairs of sequences [B].

        Full recomputation computes one layer of either stack again at a time; both are counted.
        """
        stacks = (self.encoder, self.decoder)
        return sum((s.activation_bytes(samples, precision, recompute) for s in stacks), 0.0)

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """The larger of both stacks; what is encoded stays, and so do keys and values of it."""
        element = activation_element(precision)
        encoded = float(self.encoder.sequence * self.encoder.hidden) * element * samples
        one, other = (s.forward_memory(samples, precision) for s in (self.encoder, self.decoder))
        width = 2.0 * self.decoder.depth * self.decoder.kv_width
        crossed = width * self.encoder.sequence * element * samples
        return Forward(live=at_least(one.live, encoded + other.live), cache=other.cache + crossed)


def t5(  # noqa: PLR0913 - the numbers of a published table
    *,
    name: str,
    layers: int,
    decoder_layers: int,
    hidden: int,
    heads: int,
    head_dim: int,
    ffn: int,
    vocabulary: int,
    sequence: int,
    target: int,
    buckets: int = 32,
    gated: bool = False,
    tied: bool = True,
    fused_attention: bool = False,
) -> EncoderDecoder:
    """A model that writes `target` tokens for `sequence` tokens read [1]_.

    Norms are RMS norms, products have no biases, positions are `buckets` of distances whose learned
    values are added to the scores. A `gated` MLP and a head of its own (not `tied`) make version
    1.1 [2]_.

    References
    ----------
    .. [1] Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
           Transformer", https://arxiv.org/abs/1910.10683
    .. [2] Shazeer, "GLU Variants Improve Transformer", https://arxiv.org/abs/2002.05202
    """
    encoder = Transformer(
        name=f"{name} encoder",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        ffn=ffn,
        sequence=sequence,
        embedding=Embedding(tokens=vocabulary, integers_per_token=_WITH_MASK),
        head=Head(features=0, share=1.0),
        gated=gated,
        bias=False,
        head_width=float(head_dim),
        buckets=buckets,
        fused_attention=fused_attention,
    )
    decoder = replace(
        encoder,
        name=f"{name} decoder",
        layers=decoder_layers,
        sequence=target,
        embedding=Embedding(tokens=vocabulary),
        head=Head(features=vocabulary, share=1.0, tied=tied),
        causal=True,
        cross=sequence,
    )
    return EncoderDecoder(name=name, encoder=encoder, decoder=decoder)
