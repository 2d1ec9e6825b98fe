"""What a process-based loader delivers: workers that make batches, one process that takes them.

Three mechanisms, no smoothing constant. A worker's image costs decoding plus serialising. The
main process unpacks one batch at a time, so its time per image is a ceiling. And busy threads
slow one another, workers and main process alike, because they share memory bandwidth, cache and
power; that is why rates level off below both limits, and why a slow decoder lowers the ceiling.

Left out: start-up, epochs, batches of unequal cost and the trainer. The engine has these; for
equal batches and an idle trainer it gives `loader_rate` within 0.5%.
"""

from __future__ import annotations

import numpy as np

from simulator.equations.cpu import pool_capacity
from simulator.units import Real


def thread_slowdown(
    busy: Real, cores: Real, threads: Real, smt_worth: Real, contention: Real
) -> Real:
    """How much longer a thread's work takes beside others than alone on the machine.

    Parameters
    ----------
    busy : float or array
        Threads that run or want to, on average, this one included [1].
    cores : float or array
        Physical cores [1].
    threads : float or array
        Hardware threads, at least `cores` [1].
    smt_worth : float or array
        What a second hardware thread adds to a busy core, as a fraction of a core [1].
    contention : float or array
        How much longer work takes with all cores busy than with one, less 1 (for many cores) [1].

    Returns
    -------
    float or array
        Time beside others over time alone, at least 1 [1].

    Notes
    -----
    ``n / capacity(n) * (1 + contention * (min(n, cores) - 1) / cores)`` with
    ``capacity(n) = n`` up to `cores`, then `smt_worth` for each further hardware thread: equal
    shares, and a loss linear in the share of the cores that are busy. The linear loss is an
    assumption; 0.53 fits FFCV's decoding on 12, 24 and 48 of 48 cores within 4% [1]_. It belongs
    to a machine and a kind of work: threads that sleep, or a machine with bandwidth to spare,
    have none.

    References
    ----------
    .. [1] FFCV, docs/_static/benchmarking_results.svg, https://github.com/libffcv/ffcv

    Examples
    --------
    Five of eight cores: 1 + 0.4 * 4 / 8. Ten threads on eight: 10 / 8.5 * (1 + 0.4 * 7 / 8).

    >>> round(float(thread_slowdown(5.0, 8.0, 16.0, 0.25, 0.4)), 6)
    1.2
    >>> round(float(thread_slowdown(10.0, 8.0, 16.0, 0.25, 0.4)), 6)
    1.588235
    """
    runs = np.maximum(1.0, busy)
    capacity = pool_capacity(runs, cores, threads, smt_worth)
    others = np.maximum(0.0, np.minimum(runs, cores) - 1.0)
    slowdown: Real = runs / capacity * (1.0 + contention * others / cores)
    return slowdown


def busy_threads(workers: Real, worker_time: Real, receive_time: Real) -> Real:
    """How many threads of a loader are busy on average: its workers and the receiver.

    Parameters
    ----------
    workers : float or array
        Worker processes, at least 1 [1].
    worker_time : float or array
        A worker's time for one image alone: decode and serialise [s].
    receive_time : float or array
        The main process's time to take one image over, alone [s].

    Returns
    -------
    float or array
        Busy threads [1].

    Notes
    -----
    Utilization law [1]_: rate times service, summed over both kinds of thread. All slow down
    alike, so it can be had from times alone: the slow-down cancels,
    ``(worker_time + receive_time) / max(worker_time / workers, receive_time)``.

    References
    ----------
    .. [1] Lazowska et al., "Quantitative System Performance", 1984, section 3.3,
       https://homes.cs.washington.edu/~lazowska/qsp/

    Examples
    --------
    Four workers at 2 ms keep up 2 images/ms; a receiver of 0.25 ms is then busy half of the time.

    >>> float(busy_threads(4.0, 2.0e-3, 0.25e-3))
    4.5
    >>> float(busy_threads(8.0, 2.0e-3, 0.5e-3))
    5.0
    """
    busy: Real = (worker_time + receive_time) / np.maximum(worker_time / workers, receive_time)
    return busy


def loader_rate(workers: Real, worker_time: Real, receive_time: Real, slowdown: Real = 1.0) -> Real:
    """Images that a loader with worker processes delivers to a trainer that never waits.

    Parameters
    ----------
    workers : float or array
        Worker processes, at least 1 [1].
    worker_time : float or array
        A worker's time for one image alone: decode and serialise [s].
    receive_time : float or array
        The main process's time to take one image over, alone [s].
    slowdown : float or array, optional
        `thread_slowdown` of the loader's `busy_threads` [1].

    Returns
    -------
    float or array
        Images per second [/s].

    Notes
    -----
    ``min(workers / worker_time, 1 / receive_time) / slowdown``: the bottleneck law [1]_. With
    two batches of credit per worker and batches of equal cost neither side waits for the other.
    At the receiver's ceiling and without full cores it is
    ``1 / (receive_time * (1 + c * worker_time / receive_time))``, `c` the contention over the
    cores: the ceiling falls with the cost of decoding, as measured [2]_.

    References
    ----------
    .. [1] Lazowska et al., "Quantitative System Performance", 1984, section 5.2,
       https://homes.cs.washington.edu/~lazowska/qsp/
    .. [2] imread_benchmark, output/linux_*/*_dataloader_results.json,
       https://github.com/ternaus/imread_benchmark

    Examples
    --------
    >>> float(loader_rate(4.0, 2.0e-3, 0.25e-3)), float(loader_rate(8.0, 2.0e-3, 0.5e-3, 1.25))
    (2000.0, 1600.0)
    """
    rate: Real = 1.0 / (np.maximum(worker_time / workers, receive_time) * slowdown)
    return rate
