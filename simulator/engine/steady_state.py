"""Detection of the steady state: steps repeat, or their mean is known well enough.

The law of the window
---------------------
Let W workers work for a rank, and at most C batches be asked for and not yet taken. Where nothing
is random, all that happens to batch k is a function of what happened to the batches before it: its
worker is free once batch k - W is made, it is asked for once batch k - C is taken, the device
begins once batch k - 1 is done. So the times of the last M = W + C batches are the whole state of
the pipeline, and the function is homogeneous: were all of them later by c, all that follows would
be later by c [1]_. If therefore the steps over the last M batches, and as much before, repeat with
a period of p steps, which take P seconds, and so does what waits in the loaders, then the state is
the one of p steps before, shifted by P, and by induction so is all that follows: the mean step is P
/ p. A window shorter than M proves nothing: a *wave*, in which W workers deliver one
after another, is up to W equal steps, and the pause between two waves may come right after it.

What waits is only seen in whole batches. A reserve that shrinks by less than one of them over the
window is not seen, so a second law is applied: no run stays faster than its slowest
resource or serial actor (its *least step*, `loads.least_step`). Steps that repeat below it live
on a reserve, and are not steady. Where a run is ended before it has become steady, as its waves are
longer than what is simulated at most, its mean step is at least that bound.

A random run ends when the 95% confidence interval of the mean step, from batch means [2]_, is
narrow enough, or when its loaders hide all that is random. So does one of equal batches that has
not repeated for long: many workers on machines that they share may meet in thousands of ways.

An epoch that was simulated to its end needs no confidence in a window: its time T is a function of
its samples' own times, drawn one by one. T is the longest path through them, so a sample that takes
longer by d moves it by d where it lies on that path, and not at all elsewhere. With the times of
the samples on the path adding up to T, and each of deviation v of its mean c, the Efron-Stein
inequality [3]_ gives var(T) <= v^2 c T: relative to T at most v / sqrt(n), where n is how many
samples follow one another in a worker. Waves that deliver close together, of which an epoch may
hold three, can say nothing of the kind.

References
----------
.. [1] F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, "Synchronization and Linearity", Wiley,
   1992, chapter 3, https://www.rocq.inria.fr/metalau/cohen/documents/BCOQ-book.pdf
.. [2] A. M. Law, "Simulation Modeling and Analysis", 5th ed., 2015, section 9.5.3.
.. [3] S. Boucheron, G. Lugosi, P. Massart, "Concentration Inequalities", Oxford, 2013, theorem 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

SAME_STEP = 1e-9
"""Relative difference under which two step times are the same."""

MAX_PERIOD = 256
MIN_REPEATS = 3
MIN_WINDOW = 24
CHECK_EVERY = 8
BATCHES = 16
MIN_BATCH = 4
PRECISION = 0.01
"""Relative half-width of the mean step at which a random run may end."""

NORMAL_95 = 1.96
"""Half-width of a 95% interval of a normal distribution over its standard deviation."""

MIN_SHRINKAGE = 1.0
"""Batches by which a reserve that is being used up falls from one window to the next."""

MIN_BATCH_MEANS = 8
"""Means of a burst each from which on they say how well their mean is known."""

STUDENT_T = {
    8: 2.365,
    9: 2.306,
    10: 2.262,
    11: 2.228,
    12: 2.201,
    13: 2.179,
    14: 2.160,
    15: 2.145,
    16: 2.131,
}
"""97.5% quantile of Student's t by the number of batch means, one less than which is its degrees of
freedom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The steady window: the last `window` steps, which hold whole periods of `period` steps."""

    period: int
    window: int
    half_width: float = 0.0


def find_period(
    durations: Sequence[float], waiting: Sequence[object], least: int = 0
) -> Steady | None:
    """Find the shortest period with which the last steps repeat.

    Parameters
    ----------
    durations : sequence of float
        Step times so far [s].
    waiting : sequence
        What was in the loaders' queues at the end of each step.
    least : int, optional
        Steps that the window must hold: as many as batches are being made and in flight.

    Returns
    -------
    Steady or None
        None as long as nothing repeats `MIN_REPEATS` times over `MIN_WINDOW` and `least` steps.
    """
    steps = len(durations)
    slack = SAME_STEP * max(fmean(durations[-max(MIN_WINDOW, least) :]), 1e-300) if steps else 0.0
    for period in range(1, min(longest_period(least), steps // (MIN_REPEATS + 1)) + 1):
        if abs(durations[-1] - durations[-1 - period]) > slack:
            continue
        window = window_of(period, least)
        if window + period <= steps and _repeats(durations, waiting, period, window, slack):
            return Steady(period=period, window=window)
    return None


def longest_period(least: int) -> int:
    """Return the longest period to look for [steps], with `least` steps in flight."""
    return max(MAX_PERIOD, least)


def window_of(period: int, least: int) -> int:
    """Return the window in which a period must be seen [steps]: whole periods, `least` at least."""
    return period * max(MIN_REPEATS, math.ceil(max(MIN_WINDOW, least) / period))


def _repeats(
    durations: Sequence[float],
    waiting: Sequence[object],
    period: int,
    window: int,
    slack: float,
) -> bool:
    last = len(durations) - 1
    return all(
        abs(durations[last - i] - durations[last - i - period]) <= slack
        and waiting[last - i] == waiting[last - i - period]
        for i in range(window)
    )


def batch_means(durations: Sequence[float], burst: int = 1) -> float:
    """Return the 95% half-width of the mean step time from up to 16 batch means [s].

    A batch holds whole bursts: with too few of them for 16 batches each is one. With too few steps
    for that: half the range of what was seen, which claims nothing.
    """
    number = BATCHES
    if BATCHES * burst > len(durations) >= MIN_BATCH_MEANS * burst:
        number = len(durations) // burst
    size = whole_bursts(len(durations) // number, burst) if len(durations) >= number else 0
    if size == 0:
        return (max(durations) - min(durations)) / 2.0
    used = durations[-size * number :]
    means = [fmean(used[i * size : (i + 1) * size]) for i in range(number)]
    return STUDENT_T[number] * stdev(means) / math.sqrt(number)


def chance_of_an_epoch(deviation: float, in_series: float) -> float:
    """Return the highest 95% half-width of the time of a whole epoch, as a share of it.

    Parameters
    ----------
    deviation : float
        Of one sample's time, as a share of its mean.
    in_series : float
        Samples that follow one another in a worker.

    Examples
    --------
    >>> round(chance_of_an_epoch(0.2, 185.0), 4)  # 40,000 samples, 216 producers
    0.0288
    """
    return NORMAL_95 * deviation / math.sqrt(max(1.0, in_series))


def warm_up(steps: int, in_flight: int) -> int:
    """Return the steps at the start that are not steady: twice those in flight."""
    return min(2 * in_flight + 2, steps // 3)


def known_well(durations: Sequence[float], in_flight: int, burst: int) -> Steady | None:
    """Return a steady window if the mean of a random run is known to `PRECISION`."""
    first = warm_up(len(durations), in_flight)
    kept = durations[first:]
    if len(kept) < BATCHES * max(MIN_BATCH, burst):
        return None
    half_width = batch_means(kept, burst)
    if half_width > PRECISION * fmean(kept):
        return None
    return Steady(period=1, window=len(kept), half_width=half_width)


def undisturbed(
    durations: Sequence[float], ready: Sequence[float], in_flight: int
) -> Steady | None:
    """Return a steady window if randomness does not reach the steps: all equal, stable queues.

    Parameters
    ----------
    durations : sequence of float
        Step times so far [s].
    ready : sequence of float
        Batches that wait for the average rank at the end of each step.
    in_flight : int
        Batches that may be on their way.
    """
    window = max(MIN_WINDOW, in_flight)
    if len(durations) - 2 * window < in_flight:
        return None
    last = durations[-2 * window :]
    if max(last) - min(last) > SAME_STEP * max(last):
        return None
    if fmean(ready[-window:]) < fmean(ready[-2 * window : -window]) - MIN_SHRINKAGE:
        return None
    return Steady(period=1, window=2 * window)


def whole_bursts(steps: int, burst: int) -> int:
    """Return the most steps up to `steps` that hold whole bursts of batches.

    A window that cuts a burst in two would be too fast or too slow by a part of it.
    """
    return max(1, steps - steps % burst if steps >= burst else steps)
