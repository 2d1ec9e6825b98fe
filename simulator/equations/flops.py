"""Arithmetic of a model as people count it, and how well a device is used by that count."""

from __future__ import annotations

from simulator.units import Real


def trained_flops(products: Real, attention: Real, passes: Real = 3.0, frozen: Real = 0.0) -> Real:
    """Model FLOPs of one sample: what learning from it needs, however it is computed.

    Parameters
    ----------
    products : float or array
        Forward pass: products with weights [FLOP].
    attention : float or array
        Forward pass: every position with every other one, also where a causal kernel skips half
        [FLOP].
    passes : float or array
        3 for training, whose backward pass does twice the work of the forward pass; 1 for
        inference [1].
    frozen : float or array
        1 where weights are frozen, whose gradients nobody computes, else 0 [1].

    Returns
    -------
    float or array
        Model FLOPs of the sample [FLOP].

    Notes
    -----
    ``passes * (products + attention) - frozen * products``: for N weights, L layers, H heads of
    width Q and T tokens that is (6 N + 12 L H Q T) T where all weights learn. Looking up embeddings
    is no product, so such tables don't count; a head that shares their weights does. Recomputed
    activations don't count either.

    References
    ----------
    .. [1] Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, appendix B,
       https://arxiv.org/abs/2204.02311
    .. [2] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 5.1, https://arxiv.org/abs/2104.04473 (counts a forward pass
       that is done twice, and the same attention)

    Examples
    --------
    A token of MPT-70b, 64.86e9 weights, 80 layers 8192 wide, 2048 positions:

    >>> f"{trained_flops(2 * 64.8624e9, 4 * 80 * 8192 * 2048):.4g}"
    '4.053e+11'
    """
    return passes * (products + attention) - frozen * products


def computed_flops(model_flops: Real, again: Real) -> Real:
    """FLOPs of one sample that a device computes: recomputed activations count again.

    Parameters
    ----------
    model_flops : float or array
        What learning from the sample needs [FLOP].
    again : float or array
        What of the forward pass is computed a second time [FLOP].

    Returns
    -------
    float or array
        FLOPs of the sample in hardware [FLOP].

    Notes
    -----
    ``model_flops + again``: with full recomputation 4/3 of the model FLOPs.

    References
    ----------
    .. [1] Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, appendix B,
       https://arxiv.org/abs/2204.02311 (hardware FLOPs utilization counts rematerialization)

    Examples
    --------
    >>> computed_flops(6.0, 2.0)
    8.0
    """
    return model_flops + again


def flops_rate(flops: Real, throughput: Real, devices: Real) -> Real:
    """Arithmetic of one device in a second.

    Parameters
    ----------
    flops : float or array
        FLOPs of one sample [FLOP].
    throughput : float or array
        Samples of all devices together [/s].
    devices : float or array
        Accelerators [1].

    Returns
    -------
    float or array
        Rate of one accelerator [FLOP/s].

    Notes
    -----
    ``flops * throughput / devices``.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, table 1, https://arxiv.org/abs/2104.04473

    Examples
    --------
    MPT-70b on H100, 1,007.1 tokens a second each:

    >>> f"{flops_rate(4.0528e11, 1007.1, 1):.3g}"
    '4.08e+14'
    """
    return flops * throughput / devices


def flops_utilization(rate: Real, peak: Real) -> Real:
    """Share of a device's peak that its arithmetic reaches: MFU of model FLOPs, HFU of all.

    Parameters
    ----------
    rate : float or array
        Rate of one accelerator [FLOP/s].
    peak : float or array
        Dense datasheet rate at the precision of training [FLOP/s].

    Returns
    -------
    float or array
        Utilization [1].

    Notes
    -----
    ``rate / peak``.

    References
    ----------
    .. [1] Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, appendix B,
       https://arxiv.org/abs/2204.02311

    Examples
    --------
    mosaicml/llm-foundry publishes 41.25% for MPT-70b on 512 H100:

    >>> round(flops_utilization(4.0816e14, 989.4e12), 4)
    0.4125
    """
    return rate / peak
