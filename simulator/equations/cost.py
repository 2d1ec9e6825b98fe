"""Money and energy: cost of steps, runs, machines and stores; power, cooling and emissions."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from simulator.units import (
    DAY,
    WEEK,
    YEAR,
    Bytes,
    Joules,
    Kilograms,
    KilogramsPerJoule,
    PerSecond,
    Real,
    Seconds,
    Usd,
    UsdPerByte,
    UsdPerByteSecond,
    UsdPerJoule,
    UsdPerSecond,
    Watts,
    at_least,
    at_most,
    rounded_up,
    where,
)

MOST_DAYS: Final = 14
"""Length of a capacity block up to which it is counted in days; in weeks beyond."""
Points: TypeAlias = tuple[float, ...]
"""One number for each tier of prices."""


def cost_per_step(price: UsdPerSecond | Real, step_time: Seconds | Real) -> Usd | Real:
    """Return the rent of all machines during one step.

    ``price * step_time``. The blog this comes from prints cents (or dollars per 100 steps) under a
    dollar sign; its ratios are right.

    Source: "Improve price performance of your model training using Amazon SageMaker heterogeneous
    clusters", AWS Machine Learning Blog, 2022.

    $37.688 an hour, 192 ms a step:

    >>> f"{cost_per_step(37.688 / 3600, 0.192):.7f}"
    '0.0020100'
    """
    return price * step_time


def samples_per_usd(throughput: PerSecond | Real, price: UsdPerSecond | Real) -> Real:
    """Return the samples trained for one dollar.

    ``throughput / price``. `throughput` is that of all ranks over a whole epoch, `price` that of
    all machines.

    Source: Chaim Rand, "Instance Selection for Deep Learning" (samples per second times 3600 over
    the price of an hour).

    42,667 samples a second for $37.688 an hour:

    >>> f"{samples_per_usd(8192 / 0.192, 37.688 / 3600):,.0f}"
    '4,075,568'
    """
    return throughput / price


def cost_ratio(price_ratio: Real, time_ratio: Real) -> Real:
    """Return the cost of a step after a change over its cost before.

    ``(price2 / price1) * (t2 / t1)``: worth it below 1.

    Source: aws/amazon-sagemaker-examples, training/heterogeneous-clusters/
    tf.data.service.sagemaker (notebook, before its removal in 60142f1a6), 2022.

    A price 1.2 times as high that halves the step:

    >>> cost_ratio(1.2, 0.5)
    0.6
    """
    return price_ratio * time_ratio


def saving(before: Real, after: Real) -> Real:
    """Return the share of a cost or time that a change saves, negative where it got worse.

    ``1 - after / before``.

    Source: "Improve price performance of your model training using Amazon SageMaker heterogeneous
    clusters", AWS Machine Learning Blog, 2022 (46% saved).

    >>> saving(200.0, 150.0)
    0.25
    """
    return 1.0 - after / before


def cost_to_train(
    price: UsdPerSecond | Real, time: Seconds | Real, provisioning: Seconds | Real = 0.0
) -> Usd | Real:
    """Return the rent of all machines from the first billed second to the last.

    ``price * (provisioning + time)``. `provisioning` is billed time before the job starts.

    Source: Amazon EC2 on-demand pricing: usage is billed by the second from launch until
    termination, https://aws.amazon.com/ec2/pricing/on-demand/

    Two hours and a half hour before them at $36 an hour:

    >>> round(cost_to_train(36 / 3600, 7200.0, 1800.0), 9)
    90.0
    """
    return price * (provisioning + time)


def block_time(time: Seconds | Real) -> Seconds | Real:
    """Return the length of the capacity block that a job of this length needs.

    ``ceil(time / day)`` days up to 14 of them, else ``ceil(time / week)`` weeks; paid in advance
    and not given back. One block ends after 182 days: a longer job is taken to buy the next ones.

    Source: Amazon EC2 User Guide, "Capacity Blocks for ML": 1 to 14 days in steps of a day, then
    multiples of 7 days up to 182 days.

    An hour, two days and an hour, 15 days:

    >>> [block_time(hours * 3600) / 86400 for hours in (1, 49, 360)]
    [1.0, 3.0, 21.0]
    """
    days, weeks = np.ceil(np.asarray(time) / DAY), np.ceil(np.asarray(time) / WEEK)
    whole = np.where(days <= MOST_DAYS, days * DAY, weeks * WEEK)
    return whole if whole.ndim else float(whole)


def cost_of_block(
    price: UsdPerSecond | Real, time: Seconds | Real, provisioning: Seconds | Real = 0.0
) -> Usd | Real:
    """Return the price of the capacity block that a job needs.

    ``price * block_time(provisioning + time)``. `provisioning` is billed time before the job
    starts.

    Source: Amazon EC2 User Guide, "Capacity Blocks for ML": the whole block is charged up front.

    Two hours at $36 an hour, of a block of one day:

    >>> round(cost_of_block(36 / 3600, 7200.0), 9)
    864.0
    """
    return price * block_time(provisioning + time)


def capital_cost(
    capex: Usd | Real, residual: Usd | Real, interest: Real, life: Seconds | Real
) -> UsdPerSecond | Real:
    """Return the cost of owning a machine per second of its life, capital included.

    The equal yearly payment that pays ``capex`` back with interest, less one that saves up
    ``residual``: ``(capex - residual) * r / (1 - (1 + r)**-n) + residual * r`` for ``n`` years at
    ``r`` a year; ``(capex - residual) / n`` without interest. `residual` is its worth at the end of
    `life`, `interest` the cost of capital a year.

    Source: C. S. Park, "Contemporary Engineering Economics", 2007 (capital recovery with return).

    $270,000 over five years, without interest and at 6% a year, by the hour:

    >>> year, hour = 365 * 86400.0, 3600.0
    >>> f"{capital_cost(270e3, 0.0, 0.0, 5 * year) * hour:.2f}"
    '6.16'
    >>> f"{capital_cost(270e3, 0.0, 0.06, 5 * year) * hour:.2f}"
    '7.32'
    """
    years = life / YEAR
    # The limit without interest; the sum keeps the branch not taken finite.
    rate = np.where(interest > 0.0, interest, 1.0)
    recovered = rate / -np.expm1(-years * np.log1p(rate))
    yearly = np.where(interest > 0.0, recovered, 1.0 / years)
    return ((capex - residual) * yearly + residual * interest)[()] / YEAR


def owned_price(
    capital: UsdPerSecond | Real,
    hosting: UsdPerSecond | Real,
    staff: UsdPerSecond | Real,
    standing: UsdPerSecond | Real,
    utilization: Real,
) -> UsdPerSecond | Real:
    """Return the cost of an owned machine per second of work, electricity of work apart.

    ``(capital + hosting + staff + standing * (1 - utilization)) / utilization``: what is paid all
    the time is shared out over the hours worked. `standing` is the electricity of the machine at
    rest, `utilization` (above 0) the share of its life in which it works.

    Source: L. A. Barroso, U. Hölzle, P. Ranganathan, "The Datacenter as a Computer", 3rd edition,
    2018, chapter 6, https://doi.org/10.2200/S00874ED3V01Y201809CAC046 (partly filled data centres).

    >>> round(owned_price(7.0, 2.0, 1.0, 0.5, 0.5), 3)
    20.5
    """
    return (capital + hosting + staff + standing * (1.0 - utilization)) / utilization


def break_even_utilization(standing: UsdPerSecond | Real, spared: UsdPerSecond | Real) -> Real:
    """Return the utilization from which owning is as cheap as renting; above 1 or infinite: never.

    ``standing / spared``. `standing` is the cost of owning that does not depend on work, `spared`
    the rent less the electricity of work.

    Source: E. Walker, "The Real Cost of a CPU Hour", IEEE Computer 42(4), 2009,
    https://doi.org/10.1109/MC.2009.135 (purchase against lease).

    $12 an hour to own, $20 of rent an hour spared:

    >>> f"{break_even_utilization(12.0, 20.0):.1f}"
    '0.6'
    """
    return _over(standing, spared)


def break_even_time(
    capex: Usd | Real, spared: UsdPerSecond | Real, running: UsdPerSecond | Real
) -> Seconds | Real:
    """Return the time after which buying has become cheaper than renting; infinite: never.

    ``capex / (spared - running)``; without interest: this is when the money is back, not what it
    would have earned elsewhere. `spared` is the rent saved, idle hours included; `running` is the
    cost of owning apart from the purchase: room, staff, electricity.

    Source: C. S. Park, "Contemporary Engineering Economics", 2007 (payback period).

    $270,000, which spare $15,000 a month and cost $3,000 a month to run:

    >>> f"{break_even_time(270e3, 15e3, 3e3):.1f}"
    '22.5'
    """
    return _over(capex, spared - running)


def provisioned_price(
    rate: PerSecond | Real, free: PerSecond | Real, price: Usd | Real
) -> UsdPerSecond | Real:
    """Return the price of provisioned operations or throughput of a volume, used or not.

    ``max(0, rate - free) * price``. `free` is included in the rent.

    Source: Amazon EBS pricing, https://aws.amazon.com/ebs/pricing/ (gp3: IOPS above 3,000 and
    throughput above 125 MB/s, by the month).

    4,000 operations a second, 3,000 of them free, at $0.005 a month each:

    >>> month = 30 * 86400.0
    >>> round(float(provisioned_price(4000.0, 3000.0, 0.005 / month)) * month, 9)
    5.0
    """
    return at_least(0.0, rate - free) * price


def rent(size: Bytes | Real, price: UsdPerByteSecond | Real, time: Seconds | Real) -> Usd | Real:
    """Return the cost of keeping data in a store.

    ``size * price * time``. `size` is the capacity where that is billed.

    Source: Amazon S3 pricing, https://aws.amazon.com/s3/pricing/ (per GB and month).

    >>> rent(1e9, 1e-14, 1e5)
    1.0
    """
    return size * price * time


def requests_cost(
    reads: Real, read_price: Usd | Real, writes: Real, write_price: Usd | Real
) -> Usd | Real:
    """Return the cost of requests to an object store.

    ``reads * read_price + writes * write_price``. Listing counts as writing.

    Source: Amazon S3 pricing, https://aws.amazon.com/s3/pricing/ (by 1,000 requests).

    ImageNet read once, an object a sample, at $0.0004 for 1,000, and 10 objects written:

    >>> f"{requests_cost(1281167.0, 4e-7, 10.0, 5e-6):.4f}"
    '0.5125'
    """
    return reads * read_price + writes * write_price


def upload_requests(size: Bytes | Real, part: Bytes | Real) -> Real:
    """Return the requests that writing an object takes.

    ``n = max(1, ceil(size / part))`` parts, and ``n + 2`` requests where there are several: one
    begins the upload, another completes it. `part` is the most that one request carries, ``inf``
    without a limit.

    Source: Amazon S3 User Guide, "Uploading and copying objects using multipart upload",
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html

    One small object, and one of 100 MB in parts of 16 MB:

    >>> float(upload_requests(1e6, 16e6)), float(upload_requests(100e6, 16e6))
    (1.0, 9.0)
    """
    parts = at_least(1.0, rounded_up(size / part))
    return parts + where(parts > 1.0, 2.0, 0.0)


def egress_cost(
    size: Bytes | Real, months: Real, ends: tuple[Bytes, ...], prices: tuple[UsdPerByte, ...]
) -> Usd | Real:
    """Return the cost of bytes that leave a cloud, by tiers of a month.

    ``months * sum(price_i * part_i)`` with ``part_i`` what of ``size / months`` lies in tier i.
    They leave evenly over `months` (at least one). `ends` are the upper ends of tiers; the last of
    `prices` holds beyond the last end too.

    Source: Amazon EC2 on-demand pricing, "Data Transfer OUT From Amazon EC2 To Internet",
    https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer (tiers of a month).

    12 TB in a month, and in two: 10 TB at 9 cents a GB, the rest at 8:

    >>> round(egress_cost(12e12, 1.0, (10e12, 50e12), (9e-11, 8e-11)), 6)
    1060.0
    >>> round(egress_cost(12e12, 2.0, (10e12, 50e12), (9e-11, 8e-11)), 6)
    1080.0
    """
    spread = at_least(1.0, months)
    monthly, paid = size / spread, 0.0 * size
    starts = (0.0, *ends)
    for number, price in enumerate(prices):
        last = number + 1 == len(prices)
        below = monthly if last else at_most(monthly, ends[number])
        paid = paid + at_least(0.0, below - starts[number]) * price
    return spread * paid


def _over(paid: Real, spared: Real) -> Real:
    """Return ``paid / spared``; infinity where `spared` is zero."""
    kept = np.asarray(spared) > 0.0
    found: Real = np.where(kept, paid / np.where(kept, spared, 1.0), np.inf)[()]
    return found


def run_energy(
    idle_power: Watts | Real,
    added_power: Watts | Real,
    time: Seconds | Real,
    worked: Seconds | Real,
) -> Joules | Real:
    """Return the energy of machines that are always on and work part of the time.

    ``idle_power * time + added_power * worked``. `added_power` is what a mean step draws above
    `idle_power`; machines are held for `time` and are in steps for `worked`.

    Source: Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", 2007,
    https://doi.org/10.1145/1250662.1250665 (linear in utilization).

    1 kW at rest for an hour, 4 kW more in 50 minutes of it:

    >>> round(run_energy(1000.0, 4000.0, 3600.0, 3000.0) / 3.6e6, 3)
    4.333
    """
    return idle_power * time + added_power * worked


def building_energy(energy: Joules | Real, pue: Real) -> Joules | Real:
    """Return the energy at the building's meter, with cooling and losses.

    ``energy * pue``. `pue` is the power usage effectiveness, at least 1.

    Source: ISO/IEC 30134-2:2016, "Key performance indicators, part 2: Power usage effectiveness".

    >>> building_energy(100.0, 1.5)
    150.0
    """
    return energy * pue


def emissions(energy: Joules | Real, grid: KilogramsPerJoule | Real) -> Kilograms | Real:
    """Return the carbon dioxide equivalents of the electricity.

    ``energy * grid``; by location, before any contract for green electricity.

    Source: Greenhouse Gas Protocol, "Scope 2 Guidance", 2015 (location-based method).

    1 MWh at 400 g/kWh:

    >>> round(emissions(3.6e9, 400e-3 / 3.6e6), 9)
    400.0
    """
    return energy * grid


def electricity_cost(energy: Joules | Real, tariff: UsdPerJoule | Real) -> Usd | Real:
    """Return the cost of electricity.

    ``energy * tariff``.

    Source: U.S. Energy Information Administration, Electric Power Monthly, table 5.6.A,
    https://www.eia.gov/electricity/monthly/ (price by the kilowatt-hour).

    1 MWh at 8 cents a kWh:

    >>> round(electricity_cost(3.6e9, 0.08 / 3.6e6), 9)
    80.0
    """
    return energy * tariff


def energy_per_step(
    idle_power: Watts | Real, full_power: Watts | Real, utilization: Real, step_time: Seconds | Real
) -> Joules | Real:
    """Return the energy of a step from the utilization of the devices.

    ``(idle_power + (full_power - idle_power) * utilization) * step_time``. Crude: real power
    depends on what is computed, not only on whether something is.

    Source: Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", 2007,
    https://doi.org/10.1145/1250662.1250665 (linear in utilization).

    100 W idle, 400 W busy, half the time, for 2 s:

    >>> energy_per_step(100.0, 400.0, 0.5, 2.0)
    500.0
    """
    return (idle_power + (full_power - idle_power) * utilization) * step_time


def drawn_energy(power: Watts | Real, time: Seconds | Real) -> Joules | Real:
    """Return the energy of a constant power over a time.

    ``power * time``.

    Source: BIPM, "The International System of Units", 9th edition, 2019, table 4 (1 J = 1 W s),
    https://www.bipm.org/en/publications/si-brochure.

    >>> drawn_energy(400.0, 0.25)
    100.0
    """
    return power * time
