"""Processors: vCPUs that devices need, and what a second of one machine is worth on another."""

from __future__ import annotations

import numpy as np

from simulator.units import Real, at_least, at_most

_INSTANT = 1e-15
"""A time too short to matter that can be divided by [s]."""


def vcpus_to_feed(cpu_time: Real, step_time: Real) -> Real:
    """Processors (vCPUs) that make batches as fast as one device uses them up.

    Parameters
    ----------
    cpu_time : float or array
        vCPU time of one batch of one device [s].
    step_time : float or array
        Step time of a device that never waits for data [s].

    Returns
    -------
    float or array
        vCPUs per device [1].

    Notes
    -----
    ``cpu_time / step_time``.

    References
    ----------
    .. [1] Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5),
       2021, section 4.3.3, https://doi.org/10.14778/3446095.3446100 (12 to 24 cores per GPU).

    Examples
    --------
    2 s of vCPU time a batch, 0.1 s a step:

    >>> vcpus_to_feed(2.0, 0.1)
    20.0
    """
    return cpu_time / step_time


def vcpus_short(available: Real, per_gpu: Real, gpus: Real) -> Real:
    """Processors (vCPUs) that are missing to keep all GPUs busy.

    Parameters
    ----------
    available : float or array
        vCPUs there are [1].
    per_gpu : float or array
        vCPUs one GPU needs [1].
    gpus : float or array
        GPUs [1].

    Returns
    -------
    float or array
        Missing vCPUs, 0 where there are enough [1].

    Notes
    -----
    ``max(0, per_gpu * gpus - available)``; over ``per_gpu * gpus`` it is the shortfall.

    References
    ----------
    .. [1] "Improve price performance of your model training using Amazon SageMaker heterogeneous
       clusters", AWS Machine Learning Blog, 2022.

    Examples
    --------
    Eight GPUs need 160, there are 96:

    >>> float(vcpus_short(96, 20, 8))
    64.0
    """
    short: Real = np.maximum(0.0, per_gpu * gpus - available)
    return short


def speed_ratio(coremark_here: Real, coremark_there: Real) -> Real:
    """How much faster a vCPU here is than one where a cost was measured.

    Parameters
    ----------
    coremark_here : float or array
        CoreMark per vCPU of this machine [/s].
    coremark_there : float or array
        CoreMark per vCPU of the machine the cost was measured on [/s].

    Returns
    -------
    float or array
        Speed ratio, above 1 where this machine is faster [1].

    Notes
    -----
    ``coremark_here / coremark_there``; a measured time is divided by it.

    References
    ----------
    .. [1] EEMBC, CoreMark, https://www.eembc.org/coremark/ (iterations per second);
       vantage-sh/ec2instances.info (MIT), measured 2025-12 to 2026-01 with all vCPUs busy.

    Examples
    --------
    c5.9xlarge against a Xeon E5-2686 v4:

    >>> round(speed_ratio(15_914, 13_237), 3)
    1.202
    """
    return coremark_here / coremark_there


def pool_capacity(busy_threads: Real, cores: Real, threads: Real, smt_worth: Real) -> Real:
    """Work a machine does per second with some threads ready to run.

    Parameters
    ----------
    busy_threads : float or array
        Threads ready to run [1].
    cores : float or array
        Physical cores [1].
    threads : float or array
        Hardware threads of all cores [1].
    smt_worth : float or array
        What a second hardware thread adds to a busy core, as a part of a core [1].

    Returns
    -------
    float or array
        Core-seconds per second [1].

    Notes
    -----
    Cores fill first, then second threads: ``min(n, cores) + smt_worth * clip(n - cores, 0,
    threads - cores)``. Threads beyond that share.

    References
    ----------
    .. [1] Tullsen, Eggers, Levy, "Simultaneous Multithreading: Maximizing On-Chip Parallelism",
       1995, https://doi.org/10.1145/223982.224449 (the piecewise form is our own).

    Examples
    --------
    4 cores with 8 threads, a second thread worth a quarter, 2, 6 and 20 busy threads:

    >>> [float(pool_capacity(n, 4, 8, 0.25)) for n in (2, 6, 20)]
    [2.0, 4.5, 5.0]
    """
    second = at_most(at_least(busy_threads - cores, 0.0), threads - cores)
    capacity: Real = at_most(busy_threads, cores) + smt_worth * second
    return capacity


def core_cost(vcpu_cost: Real, capacity: Real, threads: Real) -> Real:
    """CPU time per unshared core, from one stated per vCPU of a fully busy machine.

    Parameters
    ----------
    vcpu_cost : float or array
        Time on one hardware thread while all are busy [s].
    capacity : float or array
        Core-seconds per second of that machine when full [1]; see `pool_capacity`.
    threads : float or array
        Its hardware threads [1].

    Returns
    -------
    float or array
        Time on a core of its own [s].

    Notes
    -----
    A busy thread gets ``capacity / threads`` of a core: ``vcpu_cost * capacity / threads``. With
    two threads a core this is ``vcpu_cost * (1 + smt_worth) / 2``.

    References
    ----------
    .. [1] Amazon EC2 User Guide, "CPU options": a vCPU is a hardware thread of a core,
       https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-optimize-cpu.html

    Examples
    --------
    2 ms a vCPU on 4 cores with 8 threads that do the work of 5 cores:

    >>> core_cost(0.002, 5.0, 8.0)
    0.00125
    """
    return vcpu_cost * capacity / threads


def threads_taken(waiting: Real, device_time: Real, cpu_time: Real, threads: Real) -> Real:
    """Hardware threads that training programs keep busy: each waits for its device in a loop.

    Parameters
    ----------
    waiting : float or array
        Threads that all of them keep busy while their devices work [1].
    device_time : float or array
        Time a device works on a batch [s].
    cpu_time : float or array
        Time in which the machine, all threads busy, makes a batch for every process [s].
    threads : float or array
        Hardware threads [1].

    Returns
    -------
    float or array
        Threads busy on average [1].

    Notes
    -----
    A program that waits for data sleeps, one that waits for its device spins [1]_. While devices
    wait for data a step lasts ``s = cpu_time + waiting * device_time / threads``: time of the
    threads for making batches, and for the programs. So ``waiting * min(1, device_time / s)``
    threads are taken, half of all at most: beyond, an operating system slices time.

    References
    ----------
    .. [1] NVIDIA, "CUDA Runtime API", cudaSetDeviceFlags: cudaDeviceScheduleAuto spins where there
       are no more contexts than processors, https://docs.nvidia.com/cuda/cuda-runtime-api/.

    Examples
    --------
    Eight programs on 64 threads, a device takes 0.5 s, the CPUs half of a second or next to none:

    >>> [float(threads_taken(8, 0.5, cpu, 64)) for cpu in (0.9375, 0.0625)]
    [4.0, 8.0]
    """
    step = cpu_time + waiting * device_time / threads
    share = np.minimum(1.0, device_time / np.maximum(step, _INSTANT))
    taken: Real = np.minimum(waiting * share, 0.5 * threads)
    return taken
