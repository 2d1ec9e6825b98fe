"""What a process-based loader delivers: workers that make batches, one process that takes them.

Three mechanisms, no smoothing constant. A worker's image costs decoding plus serialising. The
main process unpacks one batch at a time, so its time per image is a ceiling. And busy threads
slow one another, workers and main process alike, because they share memory bandwidth, cache and
power; that is why rates level off below both limits, and why a slow decoder lowers the ceiling.

Left out: start-up, epochs, batches of unequal cost and the trainer. The engine has these; for
equal batches and an idle trainer it gives `loader_rate` within 0.5%.
"""

from __future__ import annotations

from simulator.equations.cpu import pool_capacity
from simulator.units import Real, at_least, at_most

_INSTANT = 1e-15
"""So few threads that they are none, which can be divided by."""


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
    runs = at_least(1.0, busy)
    capacity = pool_capacity(runs, cores, threads, smt_worth)
    others = at_least(0.0, at_most(runs, cores) - 1.0)
    slowdown: Real = runs / capacity * (1.0 + contention * others / cores)
    return slowdown


def capacity_beside(  # noqa: PLR0913 - who runs, and what runs them
    own: Real, taken: Real, *, cores: Real, threads: Real, smt_worth: Real, contention: Real
) -> Real:
    """Work a machine does per second for some threads, beside others that wait in a loop.

    Parameters
    ----------
    own : float or array
        Threads that work, at most those not taken [1].
    taken : float or array
        Threads that spin: they hold processors, but ask nothing of memory [1].
    cores : float or array
        Physical cores [1].
    threads : float or array
        Hardware threads of all cores [1].
    smt_worth : float or array
        What a second hardware thread adds to a busy core, as a part of a core [1].
    contention : float or array
        How much longer work takes with all cores busy than with one, less 1 (for many cores) [1].

    Returns
    -------
    float or array
        Core-seconds per second for the threads that work [1].

    Notes
    -----
    Equal shares of what all threads together are given, less what working threads lose to one
    another: ``capacity(own + taken) * own / (own + taken) / (1 + contention * (min(own, cores) - 1)
    / cores)``, see `cpu.pool_capacity` and, for the loss, `thread_slowdown`.

    References
    ----------
    .. [1] FFCV, docs/_static/benchmarking_results.svg, https://github.com/libffcv/ffcv (the loss).

    Examples
    --------
    Two threads on 4 cores, and 6 of the 8 hardware threads beside 2 that spin:

    >>> machine = {"cores": 4, "threads": 8, "smt_worth": 0.25, "contention": 0.0}
    >>> [float(capacity_beside(own, 2, **machine)) for own in (2, 6)]
    [2.0, 3.75]
    """
    running, runs = at_least(_INSTANT, own + taken), at_least(1.0, own)
    alone = runs / pool_capacity(runs, cores, threads, smt_worth)
    loss = thread_slowdown(own, cores, threads, smt_worth, contention) / alone
    together = pool_capacity(running, cores, threads, smt_worth)
    capacity: Real = together * (own / running) / loss
    return capacity
