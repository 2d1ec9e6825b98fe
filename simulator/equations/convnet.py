"""Convolutional networks: sizes, parameters and arithmetic of a layer from its shape."""

from __future__ import annotations

import numpy as np

from simulator.units import Real


def output_size(
    size: Real, kernel: Real, stride: Real = 1.0, padding: Real = 0.0, dilation: Real = 1.0
) -> Real:
    """Edge of the output of a convolution or pooling.

    Parameters
    ----------
    size : float or array
        Edge of the input [1].
    kernel : float or array
        Edge of the window [1].
    stride : float or array
        Step of the window [1].
    padding : float or array
        Zeros added on each side [1].
    dilation : float or array
        Distance of the window's taps [1].

    Returns
    -------
    float or array
        Edge of the output [1].

    Notes
    -----
    ``floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1``.

    References
    ----------
    .. [1] Dumoulin, Visin, "A guide to convolution arithmetic for deep learning", 2016,
       relationship 15, https://arxiv.org/abs/1603.07285

    Examples
    --------
    The first layer of ResNet: 224 pixels, window 7, step 2, padding 3.

    >>> float(output_size(224, 7, 2, 3))
    112.0
    """
    span = size + 2.0 * padding - dilation * (kernel - 1.0) - 1.0
    edge: Real = np.floor(span / stride) + 1.0
    return edge


def convolution_parameters(
    inputs: Real, outputs: Real, kernel_area: Real, groups: Real = 1.0, bias: Real = 0.0
) -> Real:
    """Parameters of a convolution.

    Parameters
    ----------
    inputs : float or array
        Input channels [1].
    outputs : float or array
        Output channels [1].
    kernel_area : float or array
        Taps of the window: its edges multiplied [1].
    groups : float or array
        Groups the channels are split into [1].
    bias : float or array
        1 with an offset per output channel, else 0 [1].

    Returns
    -------
    float or array
        Parameters [1].

    Notes
    -----
    ``outputs * (inputs / groups * kernel_area + bias)``. A dense layer is a window of one tap.

    References
    ----------
    .. [1] Dumoulin, Visin, "A guide to convolution arithmetic for deep learning", 2016,
       https://arxiv.org/abs/1603.07285

    Examples
    --------
    The first and the last layer of ResNet-50:

    >>> convolution_parameters(3, 64, 7 * 7), convolution_parameters(2048, 1000, 1, bias=1)
    (9408.0, 2049000.0)
    """
    return outputs * (inputs / groups * kernel_area + bias)


def convolution_flops(
    positions: Real, inputs: Real, outputs: Real, kernel_area: Real, groups: Real = 1.0
) -> Real:
    """Arithmetic of a convolution's forward pass.

    Parameters
    ----------
    positions : float or array
        Output pixels, times samples [1].
    inputs : float or array
        Input channels [1].
    outputs : float or array
        Output channels [1].
    kernel_area : float or array
        Taps of the window [1].
    groups : float or array
        Groups the channels are split into [1].

    Returns
    -------
    float or array
        Arithmetic [FLOP].

    Notes
    -----
    A multiplication and an addition per weight and output pixel:
    ``2 positions * outputs * inputs / groups * kernel_area``. Libraries that count "multiply-adds"
    print half of it.

    References
    ----------
    .. [1] He et al., "Deep Residual Learning for Image Recognition", 2015, table 1 (multiply-adds),
       https://arxiv.org/abs/1512.03385

    Examples
    --------
    The first layer of ResNet, 118 million multiply-adds:

    >>> convolution_flops(112 * 112, 3, 64, 7 * 7)
    236027904.0
    """
    return 2.0 * positions * outputs * (inputs / groups) * kernel_area


def norm_parameters(channels: Real) -> Real:
    """Trainable parameters of a batch norm.

    Parameters
    ----------
    channels : float or array
        Channels [1].

    Returns
    -------
    float or array
        Parameters [1].

    Notes
    -----
    A scale and an offset: ``2 channels``; the running mean and variance are not trained.

    References
    ----------
    .. [1] Ioffe, Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing
       Internal Covariate Shift", 2015, https://arxiv.org/abs/1502.03167

    Examples
    --------
    >>> norm_parameters(64)
    128
    """
    return 2 * channels


def feature_map_bytes(positions: Real, channels: Real, element_bytes: Real) -> Real:
    """Size of a layer's output.

    Parameters
    ----------
    positions : float or array
        Pixels, times samples [1].
    channels : float or array
        Channels [1].
    element_bytes : float or array
        Size of an element [B].

    Returns
    -------
    float or array
        Size [B].

    Notes
    -----
    ``positions * channels * element_bytes``.

    References
    ----------
    .. [1] Dumoulin, Visin, "A guide to convolution arithmetic for deep learning", 2016,
       https://arxiv.org/abs/1603.07285

    Examples
    --------
    >>> feature_map_bytes(112 * 112, 64, 4.0)
    3211264.0
    """
    return positions * channels * element_bytes
