"""Reading samples from a store: operations, latency, and the rate that comes out of them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.units import Real

Flag: TypeAlias = bool | NDArray[np.bool_]
"""A yes or no, or one for each candidate of a batch."""


def opens_per_sample(bytes_per_sample: Real, bytes_per_file: Real) -> Real:
    """Files opened to read one sample.

    Parameters
    ----------
    bytes_per_sample : float or array
        Mean size of a sample on the store [B].
    bytes_per_file : float or array
        Size of a file [B]: that of a sample where each has its own file, that of a shard, or
        that of the whole data set where all is one array.

    Returns
    -------
    float or array
        Opens per sample [1].

    Notes
    -----
    A shard is opened once and read in windows, so its open is spread over the samples in it:
    ``opens = bytes_per_sample / bytes_per_file``.

    References
    ----------
    .. [1] Aizman, Maltby, Breuel, "High Performance I/O For Large Scale Deep Learning", 2019,
       https://arxiv.org/abs/2001.01858 (why small files are packed into shards).

    Examples
    --------
    A 100 MB shard holds 1,000 samples of 100 kB:

    >>> opens_per_sample(100e3, 100e6)
    0.001
    """
    return bytes_per_sample / bytes_per_file


def operations_per_sample(
    bytes_per_sample: Real, bytes_per_file: Real, operation_size: Real, *, sequential: Flag
) -> Real:
    """Read operations (or object requests) that one sample takes.

    Parameters
    ----------
    bytes_per_sample : float or array
        Mean size of a sample on the store [B].
    bytes_per_file : float or array
        Size of a file [B]; see `opens_per_sample`.
    operation_size : float or array
        Most bytes that one operation carries [B]; ``inf`` where nothing limits it.
    sequential : bool or array of bool
        Whether a file is read front to back [1]; otherwise each sample is fetched on its own.

    Returns
    -------
    float or array
        Operations per sample [1]; a fraction where neighbours share an operation.

    Notes
    -----
    Fetched alone: ``max(1, ceil(bytes_per_sample / operation_size))``. Front to back, the file's
    operations are shared: ``max(1, ceil(bytes_per_file / operation_size)) * opens``.

    References
    ----------
    .. [1] Amazon EBS User Guide, "I/O characteristics and monitoring": an operation is at most
       256 KiB on SSD volumes, and contiguous ones are merged,
       https://docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html

    Examples
    --------
    600 kB in operations of 256 kB: 3 alone; packed in 6 MB shards, 24 operations for 10 samples.

    >>> float(operations_per_sample(600e3, 600e3, 256e3, sequential=False))
    3.0
    >>> round(float(operations_per_sample(600e3, 6e6, 256e3, sequential=True)), 9)
    2.4
    """
    alone = np.maximum(1.0, np.ceil(bytes_per_sample / operation_size))
    whole_file = np.maximum(1.0, np.ceil(bytes_per_file / operation_size))
    shared = whole_file * opens_per_sample(bytes_per_sample, bytes_per_file)
    operations: Real = np.where(sequential, shared, alone)[()]
    return operations


def latency_per_sample(
    bytes_per_sample: Real,
    bytes_per_file: Real,
    read_latency: Real,
    open_latency: Real,
    *,
    sequential: Flag,
) -> Real:
    """Time one reader waits for first bytes, per sample.

    Parameters
    ----------
    bytes_per_sample : float or array
        Mean size of a sample on the store [B].
    bytes_per_file : float or array
        Size of a file [B]; see `opens_per_sample`.
    read_latency : float or array
        Time from asking to the first byte [s].
    open_latency : float or array
        Time to open a file [s].
    sequential : bool or array of bool
        Whether a file is read front to back [1], so that read-ahead hides all but the first wait.

    Returns
    -------
    float or array
        Latency per sample of one reader [s].

    Notes
    -----
    ``opens * open_latency + (opens if sequential else 1) * read_latency``. Within one sample only
    the first operation waits: the system reads ahead in a file it is read from in order [1]_.

    References
    ----------
    .. [1] Linux kernel documentation, "Memory Management APIs", section Readahead,
       https://docs.kernel.org/core-api/mm-api.html#readahead

    Examples
    --------
    Files over a network, 2.3 ms to open and 1 ms to the first byte; then 1,000 samples a shard,
    shuffled and front to back:

    >>> round(float(latency_per_sample(1e5, 1e5, 1e-3, 2.3e-3, sequential=False)), 9)
    0.0033
    >>> round(float(latency_per_sample(1e5, 1e8, 1e-3, 2.3e-3, sequential=False)), 9)
    0.0010023
    >>> round(float(latency_per_sample(1e5, 1e8, 1e-3, 2.3e-3, sequential=True)), 9)
    3.3e-06
    """
    opens = opens_per_sample(bytes_per_sample, bytes_per_file)
    waits = np.where(sequential, opens, 1.0)[()]
    latency: Real = opens * open_latency + waits * read_latency
    return latency


def latency_per_batch(samples: Real, latency: Real, readers: Real) -> Real:
    """Time a worker waits for first bytes, per batch, with several requests open at once.

    Parameters
    ----------
    samples : float or array
        Samples in the batch [1].
    latency : float or array
        Latency of one sample [s]; see `latency_per_sample`.
    readers : float or array
        Requests the worker keeps open [1].

    Returns
    -------
    float or array
        Latency of the batch [s].

    Notes
    -----
    Requests go out in rounds of `readers`, each round waits once: ``ceil(samples / readers) *
    latency``.

    References
    ----------
    .. [1] Little, "A Proof for the Queuing Formula L = λW", 1961,
       https://doi.org/10.1287/opre.9.3.383 (concurrency = rate times latency).

    Examples
    --------
    Thirty-two objects at 100 ms, one after another and eight at a time:

    >>> [round(float(latency_per_batch(32, 0.1, readers)), 9) for readers in (1, 8)]
    [3.2, 0.4]
    """
    total: Real = np.ceil(samples / readers) * latency
    return total


def blocks_touched(window: Real, block: Real) -> Real:
    """Blocks (chunks) that a window at a random place of a sample touches, on average.

    Parameters
    ----------
    window : float or array
        Bytes that are needed, one after another [B].
    block : float or array
        Size of a block, which is read whole or not at all [B].

    Returns
    -------
    float or array
        Blocks [1], at least 1.

    Notes
    -----
    ``window / block + 1``: as many as fit the window, and one more because its ends fall anywhere.
    Read amplification is ``blocks * block / window``.

    References
    ----------
    .. [1] Buffon's needle in one dimension: a needle of length w crosses w / b of the lines b
       apart, and lies in one interval more than it crosses lines,
       https://en.wikipedia.org/wiki/Buffon%27s_needle_problem

    Examples
    --------
    A window of 3 MB in chunks of 1 MB touches 4 of them:

    >>> blocks_touched(3e6, 1e6)
    4.0
    """
    return window / block + 1.0


def wait_per_batch(samples: Real, latency: Real, readers: Real) -> Real:
    """Time a worker waits in a batch while nothing is transferred for it.

    Parameters
    ----------
    samples : float or array
        Samples in the batch [1].
    latency : float or array
        Latency of one sample [s]; see `latency_per_sample`.
    readers : float or array
        Requests the worker keeps open [1].

    Returns
    -------
    float or array
        Waiting [s].

    Notes
    -----
    ``0 if readers > 1 else latency_per_batch(samples, latency, readers)``: of several requests,
    some transfer while others wait.

    References
    ----------
    .. [1] Little, "A Proof for the Queuing Formula L = λW", 1961,
       https://doi.org/10.1287/opre.9.3.383 (concurrency = rate times latency).

    Examples
    --------
    >>> float(wait_per_batch(32, 0.125, 1.0)), float(wait_per_batch(32, 0.125, 8.0))
    (4.0, 0.0)
    """
    wait: Real = np.where(readers > 1.0, 0.0, latency_per_batch(samples, latency, readers))[()]
    return wait


def burst_rate(amount: Real, baseline: Real, burst: Real, saved: Real) -> Real:
    """Mean rate of a store that may go faster than its baseline until its credits are used up.

    Parameters
    ----------
    amount : float or array
        All that is asked of it, in operations or bytes [1].
    baseline : float or array
        Rate that is kept up for ever, above 0 [/s].
    burst : float or array
        Rate while there are credits, at least the baseline [/s].
    saved : float or array
        Credits at the start: what can be had beyond the baseline [1].

    Returns
    -------
    float or array
        Mean rate over all of it [/s], from the baseline to the burst.

    Notes
    -----
    A token bucket gives at most ``saved + baseline * t`` in a time t, so that
    ``t = max(amount / burst, (amount - saved) / baseline)``, and the rate is ``amount / t``. A
    job that asks for less than that rate never runs out of credits.

    References
    ----------
    .. [1] Amazon EBS User Guide, "General Purpose SSD volumes", I/O credits and burst performance,
       https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html

    Examples
    --------
    A gp2 volume of 100 GiB does 300 operations a second, 3,000 for its first half hour:

    >>> float(burst_rate(5.4e6, 300.0, 3000.0, 5.4e6))
    3000.0
    >>> float(burst_rate(54e6, 300.0, 3000.0, 5.4e6))
    333.3333333333333
    """
    beyond = np.maximum(0.0, amount - saved) / baseline
    longest = np.maximum(amount / burst, beyond)
    return np.where(amount > 0.0, amount / np.where(amount > 0.0, longest, 1.0), burst)[()]
