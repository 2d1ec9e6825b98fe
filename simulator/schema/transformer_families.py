"""Published transformers: T5, BERT, GPT-2, Llama, experts and ViT.

A decoder with an encoder also attends, in each of its layers, to what is encoded. The other
families fix parts of the general shape of `transformers.Transformer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from simulator.errors import NotModelled
from simulator.schema.accelerators import Precision
from simulator.schema.models import Forward, Model, Operator, StepTimes, activation_element
from simulator.schema.provenance import Source
from simulator.schema.training import Recompute
from simulator.schema.transformers import Embedding, Experts, Head, Latent, Transformer
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
        """True if attention is one kernel that keeps no matrix of scores in memory."""
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
        """Return the forward pass over `samples` pairs of sequences, stack by stack."""
        return tuple(
            replace(operator, name=f"{name} {operator.name}")
            for name, stack in (("encoder", self.encoder), ("decoder", self.decoder))
            for operator in stack.operators(samples, precision)
        )

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the bytes kept for the backward pass of `samples` pairs of sequences [B].

        Full recomputation computes one layer of either stack again at a time; both are counted.
        """
        stacks = (self.encoder, self.decoder)
        return sum((s.activation_bytes(samples, precision, recompute) for s in stacks), 0.0)

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the larger of both stacks; what is encoded stays, with its keys and values."""
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
    """Return a model that writes `target` tokens for `sequence` tokens read [1]_.

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


_MLP: Final = 4
_RGB: Final = 3
_BERT_INTEGERS: Final = 3.0
"""Token, segment and attention mask of a position."""


def bert(  # noqa: PLR0913 - the numbers of a published table
    *,
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    vocabulary: int,
    positions: int,
    segments: int,
    sequence: int,
    scored_share: float,
    filled: float = 1.0,
    fused_attention: bool = True,
) -> Transformer:
    """Return an encoder trained to guess the `scored_share` of its tokens that are masked [1]_.

    References
    ----------
    .. [1] Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
           Understanding", https://arxiv.org/abs/1810.04805
    """
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        ffn=_MLP * hidden,
        sequence=sequence,
        embedding=Embedding(
            tokens=vocabulary,
            positions=positions,
            segments=segments,
            normalized=True,
            integers_per_token=_BERT_INTEGERS,
        ),
        head=Head(features=vocabulary, share=scored_share, tied=True, pooler=True),
        final_norm=False,
        filled=filled,
        fused_attention=fused_attention,
    )


def gpt(  # noqa: PLR0913 - the numbers of a published table
    *,
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    vocabulary: int,
    positions: int,
    sequence: int,
    filled: float = 1.0,
    fused_attention: bool = True,
    kv_heads: int = 0,
    ffn: int = 0,
    bias: bool = True,
    dropout: bool = True,
    tied: bool = True,
    rotary: bool = False,
) -> Transformer:
    """Return a decoder with learned positions whose head shares the token table [1]_.

    The MLP is four times as wide as `hidden` where `ffn` is 0; `positions` 0: none are learned;
    `kv_heads` 0: as many heads of keys and values as of queries.

    References
    ----------
    .. [1] Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, table 2
    """
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads or heads,
        ffn=ffn or _MLP * hidden,
        sequence=sequence,
        embedding=Embedding(tokens=vocabulary, positions=positions),
        head=Head(features=vocabulary, share=1.0, tied=tied),
        causal=True,
        bias=bias,
        dropout=dropout,
        rotary=rotary,
        filled=filled,
        fused_attention=fused_attention,
    )


def llama(  # noqa: PLR0913 - the numbers of a published table
    *,
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    vocabulary: int,
    sequence: int,
    filled: float = 1.0,
    tied: bool = False,
    fused_attention: bool = True,
    head_dim: int = 0,
    bias: bool = False,
    dropout: bool = False,
) -> Transformer:
    """Return a decoder with rotary positions, gated MLP, RMS norms, grouped keys and values [1]_.

    A `tied` head uses the token table, as in the smaller models of a series. `head_dim` 0: the
    heads share `hidden`.

    References
    ----------
    .. [1] Grattafiori et al., "The Llama 3 Herd of Models", table 3,
           https://arxiv.org/abs/2407.21783
    """
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn=ffn,
        sequence=sequence,
        embedding=Embedding(tokens=vocabulary),
        head=Head(features=vocabulary, share=1.0, tied=tied),
        causal=True,
        gated=True,
        bias=bias,
        dropout=dropout,
        head_width=float(head_dim),
        filled=filled,
        fused_attention=fused_attention,
    )


def moe(  # noqa: PLR0913 - the numbers of a published table
    *,
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    vocabulary: int,
    sequence: int,
    experts: int,
    top_k: int,
    expert_ffn: int,
    shared_ffn: int = 0,
    dense_layers: int = 0,
    ffn: int = 0,
    query_rank: int = 0,
    kv_rank: int = 0,
    rope_dim: int = 0,
    nope_dim: int = 0,
    value_dim: int = 0,
    predicted_tokens: int = 0,
    attention_share: float = 1.0,
    filled: float = 1.0,
    clamped: bool = False,
    tied: bool = False,
    fused_attention: bool = True,
    head_dim: int = 0,
    bias: bool = False,
    dropout: bool = False,
) -> Transformer:
    """Return a decoder as `llama` builds, but for MLPs chosen token by token, and latent attention.

    Latent attention is meant where `kv_rank` is given. `ffn` is the width of the `dense_layers`;
    `predicted_tokens` are those beyond the next one.
    """
    plain = llama(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn=ffn or expert_ffn,
        vocabulary=vocabulary,
        sequence=sequence,
        tied=tied,
        filled=filled,
        fused_attention=fused_attention,
        head_dim=head_dim or (nope_dim + rope_dim if kv_rank else 0),
        bias=bias,
        dropout=dropout,
    )
    return replace(
        plain,
        experts=Experts(
            experts=experts,
            top_k=top_k,
            ffn=expert_ffn,
            shared_ffn=shared_ffn,
            dense_layers=dense_layers,
            clamped=clamped,
        ),
        latent=Latent(
            query_rank=query_rank,
            kv_rank=kv_rank,
            rope_dim=rope_dim,
            nope_dim=nope_dim,
            value_dim=value_dim,
        )
        if kv_rank
        else None,
        further_tokens=predicted_tokens,
        attention_share=attention_share,
    )


def vit(  # noqa: PLR0913 - the numbers of a published table
    *,
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    ffn: int,
    image: int,
    patch: int,
    classes: int,
    fused_attention: bool = True,
) -> Transformer:
    """Return an encoder over square patches of an image, and a class token [1]_.

    Raises
    ------
    NotModelled
        If the image is smaller than a patch.

    References
    ----------
    .. [1] Dosovitskiy et al., "An Image is Worth 16x16 Words", table 1,
           https://arxiv.org/abs/2010.11929
    """
    if image < patch:
        msg = f"{name}: an image of {image} pixels holds no patch of {patch}"
        raise NotModelled(msg)
    positions = (image // patch) ** 2 + 1
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        ffn=ffn,
        sequence=positions,
        embedding=Embedding(patch=_RGB * patch * patch, positions=positions),
        head=Head(features=classes, bias=True),
        dropout=False,
        fused_attention=fused_attention,
    )


def with_attention(model: Model, *, fused: bool) -> Model:
    """`model` with attention as one fused kernel or not; itself where it has no attention."""
    if isinstance(model, EncoderDecoder):
        stacks = (replace(s, fused_attention=fused) for s in (model.encoder, model.decoder))
        encoder, decoder = stacks
        return replace(model, encoder=encoder, decoder=decoder)
    return replace(model, fused_attention=fused) if isinstance(model, Transformer) else model
