"""Published transformers: T5, BERT, GPT-2, Llama, mixture of experts and ViT.

An encoder-decoder has cross-attention in each layer of its decoder. The other families fix parts of
the general shape of `transformers.Transformer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from simulator.errors import NotModelled
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
from simulator.schema.models import Forward, Model, Operator, StepTimes, activation_element
from simulator.schema.provenance import Source
from simulator.schema.training import Recompute
from simulator.schema.transformers import Embedding, Experts, Head, Latent, Transformer
from simulator.units import Bytes, Real, Seconds, at_least

_WITH_MASK = 2.0
"""Integers per token of the encoder's input: token id and attention mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDecoder:
    """An encoder and a decoder that share one token embedding."""

    name: str
    encoder: Transformer
    decoder: Transformer
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Number of trainable parameters; the shared token embedding counts once."""
        table = float(self.decoder.embedding.tokens * self.decoder.hidden)
        return self.encoder.parameters + self.decoder.parameters - table

    @property
    def dense_parameters(self) -> float:
        """Number of parameters with a gradient in every step: all parameters of the model."""
        return self.parameters

    @property
    def fused_attention(self) -> bool:
        """True if attention is one fused kernel that stores no matrix of attention scores."""
        return self.encoder.fused_attention

    @property
    def cpu_seconds(self) -> Seconds:
        """CPU time of training per sample, 0: a device does the work [s]."""
        return 0.0

    @property
    def input_bytes(self) -> Bytes:
        """Size of the token ids of the encoder's input and the decoder's target [B]."""
        return self.encoder.input_bytes + self.decoder.input_bytes

    @property
    def output_bytes(self) -> Bytes:
        """Size of the predicted token ids of the decoder's positions [B]."""
        return self.decoder.output_bytes

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return the operators of a pass over `samples` pairs of sequences, encoder first."""
        return tuple(
            replace(operator, name=f"{name} {operator.name}")
            for name, stack in (("encoder", self.encoder), ("decoder", self.decoder))
            for operator in stack.operators(samples, precision)
        )

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the size of the activations for the backward pass of `samples` pairs [B].

        Full recomputation computes one layer of either stack again at a time; both are counted.
        """
        stacks = (self.encoder, self.decoder)
        return sum((s.activation_bytes(samples, precision, recompute) for s in stacks), 0.0)

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the memory of the larger stack, and the KV cache with that of cross-attention."""
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
    """Return a T5 model with `sequence` input tokens and `target` output tokens [1]_.

    Norms are RMS norms, matrix products have no biases. Relative positions are in `buckets` of
    distances, whose learned values are added to the attention scores. `sequence` and `target` are
    per sample; `head_dim` is the width of a head. A `gated` MLP and a separate head (not `tied`)
    make version 1.1 [2]_.

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
"""Integers per position: token id, segment and attention mask."""


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
    """Return a BERT encoder, trained to predict the masked share `scored_share` of its tokens [1]_.

    `filled` is the mean fraction of the positions of a sample that is computed, without padding.

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
    """Return a GPT decoder with learned positions and a head tied to the token embedding [1]_.

    `positions` is the number of learned positions, 0 for none. `kv_heads` 0: as many heads for keys
    and values as for queries. `ffn` is the width inside the MLP, 0 for four times `hidden`.
    `filled` is the mean fraction of the positions of a sample that is computed, without padding.

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
    """Return a Llama decoder: rotary positions, gated MLP, RMS norms, grouped-query attention [1]_.

    A `tied` head uses the token embedding, as in the smaller models of a series. `head_dim` 0: the
    width of a head is ``hidden / heads``. `filled` is the mean fraction of the positions of a
    sample that is computed, without padding.

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
    """Return a decoder like that of `llama`, with mixture-of-experts layers and latent attention.

    Attention is latent if `kv_rank` is given. The first `dense_layers` have a plain MLP of width
    `ffn`. `predicted_tokens` is the number of tokens predicted beyond the next one, with one more
    layer each. `filled` is the mean fraction of the positions of a sample that is computed, without
    padding.
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
    """Return a vision transformer over square patches of an image and a class token [1]_.

    `image` and `patch` are the sides of the image and of a patch [pixels].

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
    """Return `model` with attention fused or not; unchanged if it has no attention."""
    if isinstance(model, EncoderDecoder):
        stacks = (replace(s, fused_attention=fused) for s in (model.encoder, model.decoder))
        encoder, decoder = stacks
        return replace(model, encoder=encoder, decoder=decoder)
    return replace(model, fused_attention=fused) if isinstance(model, Transformer) else model
