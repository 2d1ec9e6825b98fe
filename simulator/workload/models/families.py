"""Published kinds of transformer: what BERT, GPT-2, Llama and ViT fix of the general shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from simulator.workload.models import Model
from simulator.workload.models.transformer import Embedding, Head, Transformer

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
    fused_attention: bool = True,
) -> Transformer:
    """An encoder trained to guess the `scored_share` of its tokens that are masked [1]_.

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
    fused_attention: bool = True,
) -> Transformer:
    """A decoder with learned positions whose head shares the token table [1]_.

    References
    ----------
    .. [1] Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, table 2
    """
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        ffn=_MLP * hidden,
        sequence=sequence,
        embedding=Embedding(tokens=vocabulary, positions=positions),
        head=Head(features=vocabulary, share=1.0, tied=True),
        causal=True,
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
    tied: bool = False,
    fused_attention: bool = True,
) -> Transformer:
    """A decoder with rotary positions, gated MLP, RMS norms, grouped keys and values [1]_.

    A `tied` head uses the token table, as in the smaller models of a series.

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
        bias=False,
        dropout=False,
        fused_attention=fused_attention,
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
    """An encoder over square patches of an image, and a class token [1]_.

    References
    ----------
    .. [1] Dosovitskiy et al., "An Image is Worth 16x16 Words", table 1,
           https://arxiv.org/abs/2010.11929
    """
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
    return replace(model, fused_attention=fused) if isinstance(model, Transformer) else model
