"""Money and energy: what a step, a sample and a whole training cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import DAY, WEEK, YEAR, Real

MOST_DAYS: Final = 14
"""Length of a capacity block up to which it is counted in days; in weeks beyond."""


def cost_per_step(price: Real, step_time: Real) -> Real:
    """Rent of the machines during one step.

    Parameters
    ----------
    price : float or array
        Price of all machines together [$/s].
    step_time : float or array
        Step time [s].

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``price * step_time``. The blog this comes from prints cents (or dollars per 100 steps) under a
    dollar sign; its ratios are right.

    References
    ----------
    .. [1] "Improve price performance of your model training using Amazon SageMaker heterogeneous
       clusters", AWS Machine Learning Blog, 2022.

    Examples
    --------
    $37.688 an hour, 192 ms a step:

    >>> f"{cost_per_step(37.688 / 3600, 0.192):.7f}"
    '0.0020100'
    """
    return price * step_time


def samples_per_usd(throughput: Real, price: Real) -> Real:
    """Samples trained for one dollar.

    Parameters
    ----------
    throughput : float or array
        Samples of all ranks over a whole epoch [/s].
    price : float or array
        Price of all machines together [$/s].

    Returns
    -------
    float or array
        Samples per dollar [1/$].

    Notes
    -----
    ``throughput / price``.

    References
    ----------
    .. [1] Chaim Rand, "Instance Selection for Deep Learning" (samples per second times 3600
       over the price of an hour).

    Examples
    --------
    42,667 samples a second for $37.688 an hour:

    >>> f"{samples_per_usd(8192 / 0.192, 37.688 / 3600):,.0f}"
    '4,075,568'
    """
    return throughput / price


def cost_ratio(price_ratio: Real, time_ratio: Real) -> Real:
    """Cost of a step after a change over the cost before it.

    Parameters
    ----------
    price_ratio : float or array
        Price after over price before [1].
    time_ratio : float or array
        Step time after over step time before [1].

    Returns
    -------
    float or array
        Cost after over cost before [1].

    Notes
    -----
    ``(price2 / price1) * (t2 / t1)``: worth it below 1.

    References
    ----------
    .. [1] aws/amazon-sagemaker-examples, training/heterogeneous-clusters/
       tf.data.service.sagemaker (notebook, before its removal in 60142f1a6), 2022.

    Examples
    --------
    A price 1.2 times as high that halves the step:

    >>> cost_ratio(1.2, 0.5)
    0.6
    """
    return price_ratio * time_ratio


def saving(before: Real, after: Real) -> Real:
    """Part of a cost or time that a change takes away.

    Parameters
    ----------
    before : float or array
        Cost or time before [$ or s].
    after : float or array
        Cost or time after, in the same unit [$ or s].

    Returns
    -------
    float or array
        Saving, negative where it got worse [1].

    Notes
    -----
    ``1 - after / before``.

    References
    ----------
    .. [1] "Improve price performance of your model training using Amazon SageMaker heterogeneous
       clusters", AWS Machine Learning Blog, 2022 (46% saved).

    Examples
    --------
    >>> saving(200.0, 150.0)
    0.25
    """
    return 1.0 - after / before


def cost_to_train(price: Real, time: Real, provisioning: Real = 0.0) -> Real:
    """Rent of the machines from the first billed second to the last.

    Parameters
    ----------
    price : float or array
        Price of all machines together [$/s].
    time : float or array
        Time the job runs [s].
    provisioning : float or array
        Billed time before it starts [s].

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``price * (provisioning + time)``.

    References
    ----------
    .. [1] Amazon EC2 on-demand pricing: usage is billed by the second from launch until
       termination, https://aws.amazon.com/ec2/pricing/on-demand/

    Examples
    --------
    Two hours and a half hour before them at $36 an hour:

    >>> round(cost_to_train(36 / 3600, 7200.0, 1800.0), 9)
    90.0
    """
    return price * (provisioning + time)


def block_time(time: Real) -> Real:
    """How long a capacity block is that holds a job.

    Parameters
    ----------
    time : float or array
        Time the machines are wanted [s].

    Returns
    -------
    float or array
        Time that is paid [s].

    Notes
    -----
    ``ceil(time / day)`` days up to 14 of them, else ``ceil(time / week)`` weeks; paid in advance
    and not given back. One block ends after 182 days: a longer job is taken to buy the next ones.

    References
    ----------
    .. [1] Amazon EC2 User Guide, "Capacity Blocks for ML": 1 to 14 days in steps of a day, then
       multiples of 7 days up to 182 days.

    Examples
    --------
    An hour, two days and an hour, 15 days:

    >>> [block_time(hours * 3600) / 86400 for hours in (1, 49, 360)]
    [1.0, 3.0, 21.0]
    """
    days, weeks = np.ceil(np.asarray(time) / DAY), np.ceil(np.asarray(time) / WEEK)
    whole = np.where(days <= MOST_DAYS, days * DAY, weeks * WEEK)
    return whole if whole.ndim else float(whole)


def cost_of_block(price: Real, time: Real, provisioning: Real = 0.0) -> Real:
    """Price of a capacity block that holds a job.

    Parameters
    ----------
    price : float or array
        Price of all machines together [$/s].
    time : float or array
        Time the job runs [s].
    provisioning : float or array
        Time before it starts in which the machines are there [s].

    Returns
    -------
    float or array
        Cost [$].

    Notes
    -----
    ``price * block_time(provisioning + time)``.

    References
    ----------
    .. [1] Amazon EC2 User Guide, "Capacity Blocks for ML": the whole block is charged up front.

    Examples
    --------
    Two hours at $36 an hour, of a block of one day:

    >>> round(cost_of_block(36 / 3600, 7200.0), 9)
    864.0
    """
    return price * block_time(provisioning + time)


def energy_per_step(idle_power: Real, full_power: Real, utilization: Real, step_time: Real) -> Real:
    """Energy of a step, from how busy the devices were.

    Parameters
    ----------
    idle_power : float or array
        Power at rest [W].
    full_power : float or array
        Power when busy [W].
    utilization : float or array
        Share of the step in which they were busy [1].
    step_time : float or array
        Step time [s].

    Returns
    -------
    float or array
        Energy [J].

    Notes
    -----
    ``(idle_power + (full_power - idle_power) * utilization) * step_time``. Crude: real power
    depends on what is computed, not only on whether something is.

    References
    ----------
    .. [1] Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", 2007,
       https://doi.org/10.1145/1250662.1250665 (linear in utilization).

    Examples
    --------
    100 W idle, 400 W busy, half the time, for 2 s:

    >>> energy_per_step(100.0, 400.0, 0.5, 2.0)
    500.0
    """
    return (idle_power + (full_power - idle_power) * utilization) * step_time


def time_with_interruptions(
    work: Real, rate: Real, interval: Real, write: Real, restart: Real
) -> Real:
    """Expected time of a run that is interrupted at random and goes on from its last checkpoint.

    Parameters
    ----------
    work : float or array
        Time of the run without interruptions and without checkpoints [s].
    rate : float or array
        Interruptions of the whole cluster, above 0 [/s].
    interval : float or array
        Work between two checkpoints [s].
    write : float or array
        Time of a checkpoint, in which nothing is trained [s].
    restart : float or array
        From an interruption to the first step after it [s].

    Returns
    -------
    float or array
        Expected time, with checkpoints, lost work and restarts [s].

    Notes
    -----
    ``exp(restart * rate) * (exp((interval + write) * rate) - 1) / rate * work / interval``, for
    interruptions that come independently of one another, in restarts and checkpoints too.

    References
    ----------
    .. [1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
       dumps", Future Generation Computer Systems 22(3), 2006,
       https://doi.org/10.1016/j.future.2004.11.016

    Examples
    --------
    100 h of work, one interruption in 20 h, a checkpoint of 36 s every hour, 6 min to restart:

    >>> hours = time_with_interruptions(100 * 3600, 1 / 72000, 3600.0, 36.0, 360.0) / 3600
    >>> f"{hours:.2f}"
    '104.11'
    """
    segments = work / interval
    return segments * np.exp(restart * rate) * np.expm1((interval + write) * rate) / rate


def best_checkpoint_interval(rate: Real, write: Real) -> Real:
    """Work between two checkpoints that makes an interrupted run shortest.

    Parameters
    ----------
    rate : float or array
        Interruptions of the whole cluster, above 0 [/s].
    write : float or array
        Time of a checkpoint [s].

    Returns
    -------
    float or array
        The interval [s].

    Notes
    -----
    ``sqrt(2 * write / rate) * (1 + sqrt(x) / 3 + x / 9) - write`` with ``x = write * rate / 2``,
    from Young's first-order ``sqrt(2 * write / rate)``; the mean time between interruptions where
    a checkpoint takes longer than twice that.

    References
    ----------
    .. [1] J. W. Young, "A first order approximation to the optimum checkpoint interval",
       Communications of the ACM 17(9), 1974, https://doi.org/10.1145/361147.361115
    .. [2] J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
       dumps", Future Generation Computer Systems 22(3), 2006,
       https://doi.org/10.1016/j.future.2004.11.016

    Examples
    --------
    36 s a checkpoint, one interruption in 20 h:

    >>> f"{best_checkpoint_interval(1 / 72000, 36.0) / 60:.1f}"
    '37.5'
    """
    x = write * rate / 2.0
    young = np.sqrt(2.0 * write / rate)
    daly = young * (1.0 + np.sqrt(x) / 3.0 + x / 9.0) - write
    return np.where(x < 1.0, daly, 1.0 / rate)[()]


def drawn_energy(power: Real, time: Real) -> Real:
    """Energy of what draws power for a while.

    Parameters
    ----------
    power : float or array
        Mean power drawn [W].
    time : float or array
        How long [s].

    Returns
    -------
    float or array
        Energy [J].

    Notes
    -----
    ``power * time``.

    References
    ----------
    .. [1] BIPM, "The International System of Units", 9th edition, 2019, table 4 (1 J = 1 W s),
       https://www.bipm.org/en/publications/si-brochure.

    Examples
    --------
    >>> drawn_energy(400.0, 0.25)
    100.0
    """
    return power * time


def capital_cost(capex: Real, residual: Real, interest: Real, life: Real) -> Real:
    """What a machine that is bought costs by the time it is there, capital included.

    Parameters
    ----------
    capex : float or array
        What is paid for it at the start [$].
    residual : float or array
        What it is worth at the end [$].
    interest : float or array
        Cost of capital a year, as a share [1].
    life : float or array
        How long it is kept, above 0 [s].

    Returns
    -------
    float or array
        Cost by time [$/s].

    Notes
    -----
    The equal yearly payment that pays ``capex`` back with interest, less one that saves up
    ``residual``: ``(capex - residual) * r / (1 - (1 + r)**-n) + residual * r`` for ``n`` years at
    ``r`` a year; ``(capex - residual) / n`` without interest.

    References
    ----------
    .. [1] C. S. Park, "Contemporary Engineering Economics", 2007 (capital recovery with return).

    Examples
    --------
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
    capital: Real, hosting: Real, staff: Real, standing: Real, utilization: Real
) -> Real:
    """What an hour of work of an owned machine costs, the electricity of that hour apart.

    Parameters
    ----------
    capital : float or array
        Cost of the machine by the time it is there [$/s].
    hosting : float or array
        Room for it [$/s].
    staff : float or array
        Who looks after it [$/s].
    standing : float or array
        Electricity of the machine at rest [$/s].
    utilization : float or array
        Share of its life in which it works, above 0 [1].

    Returns
    -------
    float or array
        Cost by the time worked [$/s].

    Notes
    -----
    ``(capital + hosting + staff + standing * (1 - utilization)) / utilization``: what is paid all
    the time is shared out over the hours worked.

    References
    ----------
    .. [1] L. A. Barroso, U. Hölzle, P. Ranganathan, "The Datacenter as a Computer", 3rd edition,
       2018, chapter 6, https://doi.org/10.2200/S00874ED3V01Y201809CAC046 (partly filled data
       centres).

    Examples
    --------
    >>> round(owned_price(7.0, 2.0, 1.0, 0.5, 0.5), 3)
    20.5
    """
    return (capital + hosting + staff + standing * (1.0 - utilization)) / utilization


def break_even_utilization(standing: Real, spared: Real) -> Real:
    """Share of the time that an owned machine has to work to be as cheap as a rented one.

    Parameters
    ----------
    standing : float or array
        What owning costs by time whether it works or not [$/s].
    spared : float or array
        Rent less the further electricity of the owned machine, while it works [$/s].

    Returns
    -------
    float or array
        Share of the time [1]; above 1, and infinite, where renting is always cheaper.

    Notes
    -----
    ``standing / spared``.

    References
    ----------
    .. [1] E. Walker, "The Real Cost of a CPU Hour", IEEE Computer 42(4), 2009,
       https://doi.org/10.1109/MC.2009.135 (purchase against lease).

    Examples
    --------
    $12 an hour to own, $20 of rent an hour spared:

    >>> f"{break_even_utilization(12.0, 20.0):.1f}"
    '0.6'
    """
    return _over(standing, spared)


def break_even_time(capex: Real, spared: Real, running: Real) -> Real:
    """When buying has become cheaper than renting.

    Parameters
    ----------
    capex : float or array
        What is paid at the start [$].
    spared : float or array
        Rent that is spared, by time, idle hours counted [$/s].
    running : float or array
        What owning costs by time beside the price: room, staff, electricity [$/s].

    Returns
    -------
    float or array
        Time from the purchase [s]; infinite where it never becomes cheaper.

    Notes
    -----
    ``capex / (spared - running)``; without interest: this is when the money is back, not what it
    would have earned elsewhere.

    References
    ----------
    .. [1] C. S. Park, "Contemporary Engineering Economics", 2007 (payback period).

    Examples
    --------
    $270,000, which spare $15,000 a month and cost $3,000 a month to run:

    >>> f"{break_even_time(270e3, 15e3, 3e3):.1f}"
    '22.5'
    """
    return _over(capex, spared - running)


def _over(paid: Real, spared: Real) -> Real:
    """One over the other; infinite where nothing is spared."""
    kept = np.asarray(spared) > 0.0
    found: Real = np.where(kept, paid / np.where(kept, spared, 1.0), np.inf)[()]
    return found
