"""Host RAM of a training job: batches in flight, pinned copies, workers, the rule of thumb."""

from __future__ import annotations

import numpy as np

from simulator.units import Real


def batches_in_flight(prefetch: Real, workers: Real) -> Real:
    """Batches of one rank that exist in host memory at once, at most.

    Parameters
    ----------
    prefetch : float or array
        Batches asked for ahead, per worker [1].
    workers : float or array
        Workers of the rank [1].

    Returns
    -------
    float or array
        Batches [1].

    Notes
    -----
    ``prefetch * workers + 1``: those asked for and not yet taken, and the one in use.

    References
    ----------
    .. [1] PyTorch 2.13, torch/utils/data/dataloader.py (`_tasks_outstanding` stays at or below
       prefetch_factor * num_workers), https://github.com/pytorch/pytorch

    Examples
    --------
    >>> batches_in_flight(2, 4), batches_in_flight(2, 0)
    (9, 1)
    """
    return prefetch * workers + 1


def in_flight_bytes(batches: Real, batch_bytes: Real, ranks: Real) -> Real:
    """Memory of all batches in flight on one machine; with shared memory, of /dev/shm.

    Parameters
    ----------
    batches : float or array
        Batches of one rank at once [1]; see `batches_in_flight`.
    batch_bytes : float or array
        Size of a batch as it is handed over [B].
    ranks : float or array
        Ranks on the machine [1].

    Returns
    -------
    float or array
        Memory [B].

    Notes
    -----
    ``batches * batch_bytes * ranks``.

    References
    ----------
    .. [1] PyTorch documentation, multiprocessing best practices (tensors of a worker pass through
       shared memory), https://pytorch.org/docs/stable/notes/multiprocessing.html

    Examples
    --------
    9 batches of 38.5 MB on each of 8 ranks:

    >>> round(in_flight_bytes(9, 38.5e6, 8) / 1e9, 3)
    2.772
    """
    return batches * batch_bytes * ranks


def pinned_block_bytes(size: Real) -> Real:
    """Page-locked memory that one tensor takes.

    Parameters
    ----------
    size : float or array
        Size of the tensor [B], above 0 to count.

    Returns
    -------
    float or array
        Size of the block [B].

    Notes
    -----
    ``2**ceil(log2(size))``: the caching host allocator rounds up to a power of two and keeps the
    block.

    References
    ----------
    .. [1] PyTorch 2.15, ATen/core/CachingHostAllocator.h, https://github.com/pytorch/pytorch
       (sgl-project/sglang issue 36562: 20.4 GiB became 32 GiB).

    Examples
    --------
    20.4 GiB, in GiB:

    >>> float(pinned_block_bytes(20.4 * 2**30)) / 2**30
    32.0
    """
    block: Real = np.where(
        np.asarray(size) > 0.0, 2.0 ** np.ceil(np.log2(np.maximum(size, 1.0))), 0.0
    )[()]
    return block


def workers_bytes(ranks: Real, workers: Real, worker_memory: Real) -> Real:
    """Memory that only the worker processes of one machine hold.

    Parameters
    ----------
    ranks : float or array
        Ranks on the machine [1].
    workers : float or array
        Workers of each rank [1].
    worker_memory : float or array
        Private memory of a worker [B]: pages it does not share with others.

    Returns
    -------
    float or array
        Memory [B].

    Notes
    -----
    ``ranks * workers * worker_memory``. A forked worker shares what nobody writes to; counting
    references writes, so Python objects of the data set become private over time [1]_.

    References
    ----------
    .. [1] ppwwyyxx/RAM-multiprocess-dataloader@795868a, 2023 (COCO as Python dicts: 9-14 MB
       become 1.8 GB a worker; as one numpy buffer 4 MB),
       https://github.com/ppwwyyxx/RAM-multiprocess-dataloader

    Examples
    --------
    >>> workers_bytes(8, 12, 40e6)
    3840000000.0
    """
    return ranks * workers * worker_memory


def rule_of_thumb(gpu_memory: Real, operating_system: Real, application: Real) -> Real:
    """Host RAM that a common rule asks for.

    Parameters
    ----------
    gpu_memory : float or array
        Memory of all GPUs of the machine together [B].
    operating_system : float or array
        Memory of the operating system [B].
    application : float or array
        Memory of the application [B].

    Returns
    -------
    float or array
        RAM to have at least [B].

    Notes
    -----
    ``gpu_memory + operating_system + application``; with less, paging is likely. The memory meant
    is that of the devices (the source once says system memory).

    References
    ----------
    .. [1] "A Hitchhiker's Guide to ML Training Infrastructure", SEI Blog, Carnegie Mellon
       University, 2022.

    Examples
    --------
    Two GPUs of 40 GB, 2 GB and 3 GB beside them:

    >>> rule_of_thumb(2 * 40e9, 2e9, 3e9)
    85000000000.0
    """
    return gpu_memory + operating_system + application


def memory_left(capacity: Real, used: Real) -> Real:
    """What is left of a memory, for the page cache.

    Parameters
    ----------
    capacity : float or array
        Size of the memory [B].
    used : float or array
        What is taken [B].

    Returns
    -------
    float or array
        What is left, at least 0 [B].

    Notes
    -----
    ``max(0, capacity - used)``: Linux gives all free memory to the page cache.

    References
    ----------
    .. [1] Linux kernel documentation, "Concepts overview", section Page cache,
       https://docs.kernel.org/admin-guide/mm/concepts.html#page-cache

    Examples
    --------
    >>> float(memory_left(64e9, 24e9)), float(memory_left(16e9, 24e9))
    (40000000000.0, 0.0)
    """
    left: Real = np.maximum(0.0, capacity - used)
    return left
