"""Queues in closed form: what the event engine is proven against, and bounds without a clock.

Waiting time is the time before service begins; every formula needs a load below one.
"""

from __future__ import annotations

import numpy as np

from simulator.units import Real


def little_number(rate: Real, time: Real) -> Real:
    """Mean number of customers in a system.

    Parameters
    ----------
    rate : float or array
        Customers passing through [/s].
    time : float or array
        Mean time each stays [s].

    Returns
    -------
    float or array
        Mean number present [1].

    Notes
    -----
    ``L = rate * time``.

    References
    ----------
    .. [1] Little, "A Proof for the Queuing Formula L = λW", 1961,
       https://doi.org/10.1287/opre.9.3.383

    Examples
    --------
    >>> little_number(5.0, 0.5)
    2.5
    """
    return rate * time


def mg1_wait(arrival_rate: Real, service_time: Real, relative_deviation: Real) -> Real:
    """Mean wait at one server with any service times (Pollaczek-Khinchine).

    Parameters
    ----------
    arrival_rate : float or array
        Poisson arrivals [/s].
    service_time : float or array
        Mean service time [s].
    relative_deviation : float or array
        Standard deviation of the service time over its mean [1].

    Returns
    -------
    float or array
        Mean wait [s].

    Notes
    -----
    With load ``r = arrival_rate * service_time``:
    ``r / (1 - r) * (1 + relative_deviation**2) / 2 * service_time``.

    References
    ----------
    .. [1] Kleinrock, "Queueing Systems, Volume 1: Theory", 1975, section 5.6,
       ISBN 978-0-471-49110-1

    Examples
    --------
    Load 0.5, service 1 s, service times spread by half their mean: 1 * (1 + 0.25) / 2.

    >>> mg1_wait(0.5, 1.0, 0.5)
    0.625
    """
    load = arrival_rate * service_time
    return load / (1.0 - load) * (1.0 + relative_deviation**2) / 2.0 * service_time


def mm1_wait(arrival_rate: Real, service_time: Real) -> Real:
    """Mean wait at one server with exponential service times.

    Parameters
    ----------
    arrival_rate : float or array
        Poisson arrivals [/s].
    service_time : float or array
        Mean service time [s].

    Returns
    -------
    float or array
        Mean wait [s].

    Notes
    -----
    ``r / (1 - r) * service_time``.

    References
    ----------
    .. [1] Kleinrock, "Queueing Systems, Volume 1: Theory", 1975, section 3.2,
       ISBN 978-0-471-49110-1

    Examples
    --------
    Load 0.75, service 1 s:

    >>> mm1_wait(0.75, 1.0)
    3.0
    """
    return mg1_wait(arrival_rate, service_time, 1.0)


def md1_wait(arrival_rate: Real, service_time: Real) -> Real:
    """Mean wait at one server with equal service times.

    Parameters
    ----------
    arrival_rate : float or array
        Poisson arrivals [/s].
    service_time : float or array
        Service time [s].

    Returns
    -------
    float or array
        Mean wait [s].

    Notes
    -----
    Half of M/M/1: ``r / (2 (1 - r)) * service_time``.

    References
    ----------
    .. [1] Kleinrock, "Queueing Systems, Volume 1: Theory", 1975, section 5.6,
       ISBN 978-0-471-49110-1

    Examples
    --------
    >>> md1_wait(0.75, 1.0)
    1.5
    """
    return mg1_wait(arrival_rate, service_time, 0.0)


def erlang_c(load: Real, servers: int) -> Real:
    """Probability that a customer has to wait at several servers.

    Parameters
    ----------
    load : float or array
        Arrival rate times mean service time [1], below `servers`.
    servers : int
        Servers [1].

    Returns
    -------
    float or array
        Probability [1].

    Notes
    -----
    Erlang's B by its recursion ``B(k) = a B(k-1) / (k + a B(k-1))``, B(0) = 1, then
    ``C = B / (1 - a / c (1 - B))``.

    References
    ----------
    .. [1] Kleinrock, "Queueing Systems, Volume 1: Theory", 1975, section 3.5,
       ISBN 978-0-471-49110-1

    Examples
    --------
    Load 1 on 2 servers: B = 0.5 / 2.5 = 0.2, C = 0.2 / (1 - 0.5 * 0.8).

    >>> round(erlang_c(1.0, 2), 6)
    0.333333
    """
    blocked: Real = 1.0
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked / (1.0 - load / servers * (1.0 - blocked))


def mmc_wait(arrival_rate: Real, service_time: Real, servers: int) -> Real:
    """Mean wait at several servers with exponential service times.

    Parameters
    ----------
    arrival_rate : float or array
        Poisson arrivals [/s].
    service_time : float or array
        Mean service time [s].
    servers : int
        Servers [1].

    Returns
    -------
    float or array
        Mean wait [s].

    Notes
    -----
    ``erlang_c(a, c) * service_time / (c - a)`` with ``a = arrival_rate * service_time``.

    References
    ----------
    .. [1] Kleinrock, "Queueing Systems, Volume 1: Theory", 1975, section 3.5,
       ISBN 978-0-471-49110-1

    Examples
    --------
    >>> round(mmc_wait(1.0, 1.0, 2), 6)
    0.333333
    """
    load = arrival_rate * service_time
    return erlang_c(load, servers) * service_time / (servers - load)


def processor_sharing_time(arrival_rate: Real, service_time: Real) -> Real:
    """Mean time in a system whose one server is shared evenly by all present.

    Parameters
    ----------
    arrival_rate : float or array
        Poisson arrivals [/s].
    service_time : float or array
        Mean service time alone [s], of any distribution.

    Returns
    -------
    float or array
        Mean time in the system [s].

    Notes
    -----
    ``service_time / (1 - r)``, whatever the distribution.

    References
    ----------
    .. [1] Kleinrock, "Queueing Systems, Volume 2: Computer Applications", 1976, section 4.4,
       ISBN 978-0-471-49111-8

    Examples
    --------
    >>> processor_sharing_time(0.75, 1.0)
    4.0
    """
    return service_time / (1.0 - arrival_rate * service_time)


def throughput_bound(longest: Real, total: Real, customers: Real, think: Real = 0.0) -> Real:
    """Most that a closed system can deliver (bottleneck law).

    Parameters
    ----------
    longest : float or array
        Demand of a customer at the busiest resource [s].
    total : float or array
        Demand of a customer at all resources together [s].
    customers : float or array
        Customers in the system [1].
    think : float or array
        Time a customer spends elsewhere [s].

    Returns
    -------
    float or array
        Upper bound of the throughput [/s].

    Notes
    -----
    ``min(1 / longest, customers / (total + think))``.

    References
    ----------
    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735

    Examples
    --------
    Demands 0.25 s and 0.75 s together, with 2 and with 20 customers and 0.25 s to think:

    >>> [float(throughput_bound(0.25, 0.75, n, 0.25)) for n in (2, 20)]
    [2.0, 4.0]
    """
    bound: Real = np.minimum(1.0 / longest, customers / (total + think))
    return bound


def throughput_floor(total: Real, customers: Real, think: Real = 0.0) -> Real:
    """Least that a closed system delivers, when everybody waits for everybody.

    Parameters
    ----------
    total : float or array
        Demand of a customer at all resources together [s].
    customers : float or array
        Customers in the system [1].
    think : float or array
        Time a customer spends elsewhere [s].

    Returns
    -------
    float or array
        Lower bound of the throughput [/s].

    Notes
    -----
    ``customers / (customers * total + think)``.

    References
    ----------
    .. [1] Lazowska et al., "Quantitative System Performance", 1984, section 5.2,
       https://homes.cs.washington.edu/~lazowska/qsp/

    Examples
    --------
    >>> throughput_floor(0.75, 2, 0.5)
    1.0
    """
    return customers / (customers * total + think)
