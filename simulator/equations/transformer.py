"""Transformers: parameters, arithmetic and key-value memory, counted from the shape."""

from __future__ import annotations

from simulator.units import Real


def layer_parameters(hidden: Real, ffn: Real) -> Real:
    """Parameters of one layer of the GPT or BERT kind.

    Parameters
    ----------
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].

    Returns
    -------
    float or array
        Parameters [1].

    Notes
    -----
    Attention ``4 h**2 + 4 h``, feed-forward ``2 h f + f + h``, two norms ``4 h``. With f = 4 h
    this is ``12 h**2 (1 + 13 / (12 h))``, equation 2 of [1]_ per layer.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, https://arxiv.org/abs/2104.04473

    Examples
    --------
    GPT-2 small, 12 * 768**2 + 13 * 768:

    >>> layer_parameters(768, 3072)
    7087872
    """
    return 4 * hidden**2 + 2 * hidden * ffn + 9 * hidden + ffn


def gpt_parameters(
    layers: Real, hidden: Real, ffn: Real, vocabulary: Real, positions: Real
) -> Real:
    """Parameters of a decoder with learned positions and tied output (GPT-2, GPT-3).

    Parameters
    ----------
    layers : float or array
        Layers [1].
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].
    vocabulary : float or array
        Words [1].
    positions : float or array
        Longest sequence [1].

    Returns
    -------
    float or array
        Parameters [1].

    Notes
    -----
    ``layers * layer_parameters + (vocabulary + positions) h + 2 h``; the last term is the final
    norm, which equation 2 of [1]_ leaves out.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, https://arxiv.org/abs/2104.04473

    Examples
    --------
    GPT-2 small as published in huggingface.co/openai-community/gpt2:

    >>> gpt_parameters(12, 768, 3072, 50257, 1024)
    124439808
    """
    embeddings = (vocabulary + positions) * hidden
    return layers * layer_parameters(hidden, ffn) + embeddings + 2 * hidden


def bert_parameters(
    layers: Real, hidden: Real, ffn: Real, vocabulary: Real, positions: Real
) -> Real:
    """Parameters of an encoder with segment embeddings and a pooler (BERT).

    Parameters
    ----------
    layers : float or array
        Layers [1].
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].
    vocabulary : float or array
        Words [1].
    positions : float or array
        Longest sequence [1].

    Returns
    -------
    float or array
        Parameters [1].

    Notes
    -----
    ``layers * layer_parameters + (vocabulary + positions + 2) h + 2 h`` (two segments, a norm)
    ``+ h**2 + h`` (pooler).

    References
    ----------
    .. [1] Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
       Understanding", 2019, https://arxiv.org/abs/1810.04805 (110M and 340M)

    Examples
    --------
    BERT-base and BERT-large:

    >>> bert_parameters(12, 768, 3072, 30522, 512), bert_parameters(24, 1024, 4096, 30522, 512)
    (109482240, 335141888)
    """
    embeddings = (vocabulary + positions + 2) * hidden + 2 * hidden
    pooler = hidden**2 + hidden
    return layers * layer_parameters(hidden, ffn) + embeddings + pooler


def gated_decoder_parameters(
    layers: Real, hidden: Real, ffn: Real, vocabulary: Real, key_value_share: Real
) -> Real:
    """Parameters of a decoder with gated feed-forward and separate output layer (Llama).

    Parameters
    ----------
    layers : float or array
        Layers [1].
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].
    vocabulary : float or array
        Words [1].
    key_value_share : float or array
        Key-value heads per query head [1]: 1 where every head has its own.

    Returns
    -------
    float or array
        Parameters [1].

    Notes
    -----
    Per layer ``(2 + 2 share) h**2 + 3 h f + 2 h``; input and output embeddings ``2 V h``, final
    norm ``h``.

    References
    ----------
    .. [1] Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023,
       https://arxiv.org/abs/2302.13971
    .. [2] Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from
       Multi-Head Checkpoints", 2023, https://arxiv.org/abs/2305.13245

    Examples
    --------
    Llama-7B:

    >>> gated_decoder_parameters(32, 4096, 11008, 32000, 1)
    6738415616
    """
    attention = (2 + 2 * key_value_share) * hidden**2
    layer = attention + 3 * hidden * ffn + 2 * hidden
    return layers * layer + 2 * vocabulary * hidden + hidden


def layer_matrix_flops(tokens: Real, hidden: Real, ffn: Real) -> Real:
    """Arithmetic of a layer's weight matrices in the forward pass.

    Parameters
    ----------
    tokens : float or array
        Sequence length times samples [1].
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].

    Returns
    -------
    float or array
        Arithmetic [FLOP].

    Notes
    -----
    Two per weight and token: ``2 tokens (4 h**2 + 2 h f)``, 24 B s h**2 with f = 4 h [1]_.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, https://arxiv.org/abs/2104.04473

    Examples
    --------
    One token, width 2, feed-forward width 8: 24 * 2**2.

    >>> layer_matrix_flops(1, 2, 8)
    96
    """
    return 2 * tokens * (4 * hidden**2 + 2 * hidden * ffn)


def attention_flops(samples: Real, sequence: Real, hidden: Real) -> Real:
    """Arithmetic of a layer's attention scores and their use, in the forward pass.

    Parameters
    ----------
    samples : float or array
        Sequences in the batch [1].
    sequence : float or array
        Sequence length [1].
    hidden : float or array
        Width of the model [1].

    Returns
    -------
    float or array
        Arithmetic [FLOP].

    Notes
    -----
    Scores and weighted values, ``2 B s**2 h`` each: ``4 B s**2 h``. A causal kernel that skips
    the masked half does half of it; model FLOPs are counted in full.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, appendix, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> attention_flops(1, 512, 1024) / 1e9
    1.073741824
    """
    return 4 * samples * sequence**2 * hidden


def logits_flops(tokens: Real, hidden: Real, vocabulary: Real) -> Real:
    """Arithmetic of the output layer in the forward pass.

    Parameters
    ----------
    tokens : float or array
        Tokens that are scored [1].
    hidden : float or array
        Width of the model [1].
    vocabulary : float or array
        Words [1].

    Returns
    -------
    float or array
        Arithmetic [FLOP].

    Notes
    -----
    ``2 tokens h V``.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, appendix, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> logits_flops(10, 100, 1000)
    2000000
    """
    return 2 * tokens * hidden * vocabulary


def forward_flops(samples: Real, sequence: Real, *, layers: Real, hidden: Real, ffn: Real) -> Real:
    """Arithmetic of all layers in the forward pass, without the output layer.

    Parameters
    ----------
    samples : float or array
        Sequences in the batch [1].
    sequence : float or array
        Sequence length [1].
    layers : float or array
        Layers [1].
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].

    Returns
    -------
    float or array
        Arithmetic [FLOP].

    Notes
    -----
    ``layers * (layer_matrix_flops + attention_flops)``, with f = 4 h ``24 B s l h**2
    (1 + s / (6 h))``, from equation 3 of [1]_ (which adds the backward pass, twice this, and one
    recomputation).

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, https://arxiv.org/abs/2104.04473
    .. [2] amirgholami/ai_and_memory_wall@0de954f README.md: 340 GFLOP for 512 tokens of
       BERT-large, https://github.com/amirgholami/ai_and_memory_wall

    Examples
    --------
    BERT-large, 512 tokens, in GFLOP (1.5% below [2]_):

    >>> round(forward_flops(1, 512, layers=24, hidden=1024, ffn=4096) / 1e9, 1)
    335.0
    """
    matrices = layer_matrix_flops(samples * sequence, hidden, ffn)
    return layers * (matrices + attention_flops(samples, sequence, hidden))


def forward_flops_per_token(parameters: Real, layers: Real, sequence: Real, hidden: Real) -> Real:
    """Arithmetic of a forward pass per token, from the parameter count.

    Parameters
    ----------
    parameters : float or array
        Parameters without embeddings [1].
    layers : float or array
        Layers [1].
    sequence : float or array
        Sequence length [1].
    hidden : float or array
        Width of the attention [1].

    Returns
    -------
    float or array
        Arithmetic per token [FLOP].

    Notes
    -----
    ``2 N + 2 layers * sequence * hidden``, equation 2.2 of [1]_: half of `attention_flops`.

    References
    ----------
    .. [1] Kaplan et al., "Scaling Laws for Neural Language Models", 2020,
       https://arxiv.org/abs/2001.08361

    Examples
    --------
    >>> forward_flops_per_token(85e6, 12, 1024, 768) / 1e6
    188.874368
    """
    return 2 * parameters + 2 * layers * sequence * hidden


def key_value_bytes(tokens: Real, layers: Real, key_value_width: Real, element_bytes: Real) -> Real:
    """Keys and values that inference keeps.

    Parameters
    ----------
    tokens : float or array
        Tokens kept, over all sequences [1].
    layers : float or array
        Layers [1].
    key_value_width : float or array
        Key-value heads times the width of a head [1].
    element_bytes : float or array
        Size of an element [B].

    Returns
    -------
    float or array
        Memory [B].

    Notes
    -----
    ``2 tokens * layers * key_value_width * element_bytes``.

    References
    ----------
    .. [1] Pope et al., "Efficiently Scaling Transformer Inference", 2022, section 3.3,
       https://arxiv.org/abs/2211.05102

    Examples
    --------
    Llama-7B, 16 bits, per token: 2 * 32 * 4096 * 2 bytes = 512 KiB.

    >>> key_value_bytes(1, 32, 4096, 2.0) / 2**10
    512.0
    """
    return 2 * tokens * layers * key_value_width * element_bytes
