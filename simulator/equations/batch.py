"""Work on a batch: what its samples take together, and shares of what several do."""

from __future__ import annotations

from simulator.units import Real, at_least, at_most


def batch_work(
    batch_size: Real, per_sample: Real, per_batch: Real = 0.0, scale: Real = 1.0
) -> Real:
    """Work that one batch takes.

    Parameters
    ----------
    batch_size : float or array
        Samples [1].
    per_sample : float or array
        Work on each [s].
    per_batch : float or array
        Work on a batch of any size [s].
    scale : float or array
        Seconds here for one of those stated [1].

    Returns
    -------
    float or array
        Work on the batch [s].

    Notes
    -----
    ``(batch_size * per_sample + per_batch) * scale``.

    References
    ----------
    .. [1] PyTorch documentation, torch.utils.data, "Working with collated and batched data",
       https://pytorch.org/docs/stable/data.html.

    Examples
    --------
    >>> batch_work(32, 0.002, 0.016)
    0.08
    """
    return (batch_size * per_sample + per_batch) * scale


def decode_work(batch_size: Real, decode: Real, augment: Real, scale: Real = 1.0) -> Real:
    """Work of decoding and augmenting one batch.

    Parameters
    ----------
    batch_size : float or array
        Samples [1].
    decode : float or array
        Decoding of one [s].
    augment : float or array
        Augmenting one [s].
    scale : float or array
        Seconds here for one of those stated [1].

    Returns
    -------
    float or array
        Work on the batch [s].

    Notes
    -----
    ``batch_size * (decode + augment) * scale``.

    References
    ----------
    .. [1] PyTorch documentation, torch.utils.data, "Working with collated and batched data",
       https://pytorch.org/docs/stable/data.html.

    Examples
    --------
    >>> decode_work(32, 0.0625, 0.0625)
    4.0
    """
    return batch_size * (decode + augment) * scale


def batch_bytes(batch_size: Real, bytes_per_sample: Real) -> Real:
    """Size of the samples of a batch.

    Parameters
    ----------
    batch_size : float or array
        Samples [1].
    bytes_per_sample : float or array
        Size of each [B].

    Returns
    -------
    float or array
        Size [B].

    Notes
    -----
    ``batch_size * bytes_per_sample``.

    References
    ----------
    .. [1] PyTorch documentation, torch.utils.data, "Working with collated and batched data",
       https://pytorch.org/docs/stable/data.html.

    Examples
    --------
    >>> batch_bytes(32, 602112)
    19267584
    """
    return batch_size * bytes_per_sample


def copied_bytes(size: Real) -> Real:
    """Bytes through memory when something is copied within it.

    Parameters
    ----------
    size : float or array
        What is copied [B].

    Returns
    -------
    float or array
        Bytes that pass the memory [B].

    Notes
    -----
    ``2 * size``: one read and one write.

    References
    ----------
    .. [1] McCalpin, "STREAM: Sustainable Memory Bandwidth in High Performance Computers",
       https://www.cs.virginia.edu/stream/ (kernel Copy: one read and one write an element).

    Examples
    --------
    >>> copied_bytes(1e6)
    2000000.0
    """
    return 2.0 * size


def cores_work(step_time: Real, capacity: Real) -> Real:
    """Core-seconds of a step that was measured with all threads of a machine at work.

    Parameters
    ----------
    step_time : float or array
        A step measured on the whole machine [s].
    capacity : float or array
        Core-seconds a second of the machine's cores [1].

    Returns
    -------
    float or array
        Work [s].

    Notes
    -----
    ``step_time * capacity``.

    References
    ----------
    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (demand: visits times service).

    Examples
    --------
    >>> cores_work(0.5, 60.0)
    30.0
    """
    return step_time * capacity


def contended(share: Real, communication: Real, before_last: Real, backward: Real) -> Real:
    """Compute time lost to kernels of communication beside it.

    Parameters
    ----------
    share : float or array
        Time lost for each second of communication beside it [1].
    communication : float or array
        All communication of a step [s].
    before_last : float or array
        Share of it that may pass beside compute [1].
    backward : float or array
        Compute beside which it passes [s].

    Returns
    -------
    float or array
        Longer compute [s].

    Notes
    -----
    ``share * min(before_last * communication, backward)``.

    References
    ----------
    .. [1] Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training",
       2020, https://arxiv.org/abs/2006.15704.

    Examples
    --------
    >>> float(contended(0.5, 0.25, 0.75, 0.5))
    0.09375
    """
    return share * at_most(before_last * communication, backward)


def optimizer_time(traffic: Real, bandwidth: Real, launches: Real) -> Real:
    """Time of an update on the device.

    Parameters
    ----------
    traffic : float or array
        Bytes that the update moves through device memory [B].
    bandwidth : float or array
        Device memory bandwidth [B/s].
    launches : float or array
        The host's time for launches once a step [s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``traffic / bandwidth + launches``.

    References
    ----------
    .. [1] Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
       Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785.

    Examples
    --------
    >>> optimizer_time(1e9, 2e12, 0.0005)
    0.001
    """
    return traffic / bandwidth + launches


def waited_exchange(exposed: Real, sent: Real, slowness: Real) -> Real:
    """Exchange of a micro-batch that its stage waits for.

    Parameters
    ----------
    exposed : float or array
        Exchange beside compute that is longer than it [s].
    sent : float or array
        Sends between the pipeline's stages that are seen [s].
    slowness : float or array
        How many times as slow the whole step is [1].

    Returns
    -------
    float or array
        Waiting [s].

    Notes
    -----
    ``(max(0, exposed) + sent) * slowness``.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, https://arxiv.org/abs/2104.04473.

    Examples
    --------
    >>> float(waited_exchange(0.25, 0.25, 1.0))
    0.5
    """
    return (at_least(0.0, exposed) + sent) * slowness
