"""Processors: capacity of cores and hardware threads, and work on them.

Busy threads slow each other down, loader workers and training processes too, because they share
memory bandwidth, cache and power. `thread_slowdown` and `capacity_beside` count this without a
smoothing constant; queues and batches of unequal cost are left to the engine.
"""

from __future__ import annotations

import numpy as np

from simulator.units import (
    PerSecond,
    Real,
    Seconds,
    at_least,
    at_most,
)

_INSTANT = 1e-15
"""A time too short to matter that can be divided by [s]."""


def vcpus_to_feed(cpu_time: Seconds | Real, step_time: Seconds | Real) -> Real:
    """Return the vCPUs that prepare batches as fast as one device consumes them.

    ``cpu_time / step_time``. `cpu_time` is of one batch of one device, `step_time` that of a device
    which never waits for data.

    Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", PVLDB 14(5), 2021,
    section 4.3.3, https://doi.org/10.14778/3446095.3446100 (12 to 24 cores per GPU).

    2 s of vCPU time a batch, 0.1 s a step:

    >>> vcpus_to_feed(2.0, 0.1)
    20.0
    """
    return cpu_time / step_time


def vcpus_short(available: Real, per_gpu: Real, gpus: Real) -> Real:
    """Return the vCPUs that are missing to keep all GPUs busy.

    ``max(0, per_gpu * gpus - available)``; over ``per_gpu * gpus`` it is the shortfall.

    Source: "Improve price performance of your model training using Amazon SageMaker heterogeneous
    clusters", AWS Machine Learning Blog, 2022.

    Eight GPUs need 160, there are 96:

    >>> float(vcpus_short(96, 20, 8))
    64.0
    """
    short: Real = np.maximum(0.0, per_gpu * gpus - available)
    return short


def speed_ratio(coremark_here: PerSecond | Real, coremark_there: PerSecond | Real) -> Real:
    """Return the speed of a vCPU here over that of the machine where a cost was measured.

    ``coremark_here / coremark_there``; a measured time is divided by it. Both are CoreMarks of one
    vCPU.

    Source: EEMBC, CoreMark, https://www.eembc.org/coremark/ (iterations per second);
    vantage-sh/ec2instances.info (MIT), measured 2025-12 to 2026-01 with all vCPUs busy.

    c5.9xlarge against a Xeon E5-2686 v4:

    >>> round(speed_ratio(15_914, 13_237), 3)
    1.202
    """
    return coremark_here / coremark_there


def pool_capacity(busy_threads: Real, cores: Real, threads: Real, smt_worth: Real) -> Real:
    """Return the core-seconds per second that a machine gives to its busy threads.

    Cores fill first, then second threads: ``min(n, cores) + smt_worth * clip(n - cores, 0, threads
    - cores)``. Threads beyond that share. `smt_worth` is what a second hardware thread adds to a
    busy core, in cores.

    Source: Tullsen, Eggers, Levy, "Simultaneous Multithreading: Maximizing On-Chip Parallelism",
    1995, https://doi.org/10.1145/223982.224449 (the piecewise form is our own).

    4 cores with 8 threads, a second thread worth a quarter, 2, 6 and 20 busy threads:

    >>> [float(pool_capacity(n, 4, 8, 0.25)) for n in (2, 6, 20)]
    [2.0, 4.5, 5.0]
    """
    second = at_most(at_least(busy_threads - cores, 0.0), threads - cores)
    capacity: Real = at_most(busy_threads, cores) + smt_worth * second
    return capacity


def core_cost(vcpu_cost: Seconds | Real, capacity: Real, threads: Real) -> Seconds | Real:
    """Return the CPU time on an unshared core from the time per vCPU of a fully busy machine.

    A busy thread gets ``capacity / threads`` of a core: ``vcpu_cost * capacity / threads``. With
    two threads a core this is ``vcpu_cost * (1 + smt_worth) / 2``. `capacity` is the
    `pool_capacity` of the full machine.

    Source: Amazon EC2 User Guide, "CPU options": a vCPU is a hardware thread of a core,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-optimize-cpu.html

    2 ms a vCPU on 4 cores with 8 threads that do the work of 5 cores:

    >>> core_cost(0.002, 5.0, 8.0)
    0.00125
    """
    return vcpu_cost * capacity / threads


def threads_taken(
    waiting: Real, device_time: Seconds | Real, cpu_time: Seconds | Real, threads: Real
) -> Real:
    """Return the hardware threads that training processes keep busy by spinning on their devices.

    A program that waits for data sleeps, one that waits for its device spins. While devices wait
    for data a step lasts ``s = cpu_time + waiting * device_time / threads``: time of the threads
    for making batches, and for the programs. So ``waiting * min(1, device_time / s)`` threads are
    taken, half of all at most: beyond, an operating system slices time. `waiting` are the threads
    that spin while devices work, `device_time` the compute of a batch, `cpu_time` the time in which
    all threads prepare a batch for every process.

    Source: NVIDIA, "CUDA Runtime API", cudaSetDeviceFlags: cudaDeviceScheduleAuto spins where there
    are no more contexts than processors, https://docs.nvidia.com/cuda/cuda-runtime-api/.

    Eight programs on 64 threads, a device takes 0.5 s, the CPUs half of a second or next to none:

    >>> [float(threads_taken(8, 0.5, cpu, 64)) for cpu in (0.9375, 0.0625)]
    [4.0, 8.0]
    """
    step = cpu_time + waiting * device_time / threads
    share = np.minimum(1.0, device_time / np.maximum(step, _INSTANT))
    taken: Real = np.minimum(waiting * share, 0.5 * threads)
    return taken


def cores_work(step_time: Seconds | Real, capacity: Real) -> Seconds | Real:
    """Return the core-seconds of a step measured with all threads of a machine busy.

    ``step_time * capacity``. `capacity` is what the cores deliver together, in core-seconds a
    second.

    Source: Tullsen, Eggers, Levy, "Simultaneous Multithreading: Maximizing On-Chip Parallelism",
    1995, https://doi.org/10.1145/223982.224449

    >>> cores_work(0.5, 60.0)
    30.0
    """
    return step_time * capacity


def thread_slowdown(
    busy: Real, cores: Real, threads: Real, smt_worth: Real, contention: Real
) -> Real:
    """Return the slowdown of a thread by other busy threads of its machine.

    ``n / capacity(n) * (1 + contention * (min(n, cores) - 1) / cores)`` with ``capacity(n) = n`` up
    to `cores`, then `smt_worth` for each further hardware thread: equal shares, and a loss linear
    in the share of the cores that are busy. The linear loss is an assumption; 0.53 fits FFCV's
    decoding on 12, 24 and 48 of 48 cores within 4%. It belongs to a machine and a kind of work:
    threads that sleep, or a machine with bandwidth to spare, have none. `busy` threads run on
    average, this one included; `smt_worth` is as in `pool_capacity`; `contention` is how much
    longer work takes with all of many cores busy than with one, less 1.

    Source: FFCV, docs/_static/benchmarking_results.svg, https://github.com/libffcv/ffcv

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
    """Return the core-seconds per second of working threads while other threads spin.

    Equal shares of what all threads together are given, less what working threads lose to one
    another: ``capacity(own + taken) * own / (own + taken) / (1 + contention * (min(own, cores) - 1)
    / cores)``, see `cpu.pool_capacity` and, for the loss, `thread_slowdown`. `own` threads work;
    `taken` threads spin, which occupies processors but no memory bandwidth. The rest is as in
    `thread_slowdown`.

    Source: FFCV, docs/_static/benchmarking_results.svg, https://github.com/libffcv/ffcv (the loss).

    Two threads on 4 cores, and 6 of the 8 hardware threads and 2 that spin:

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
