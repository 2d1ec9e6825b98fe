"""The training step: how its parts add up, and what a run of many steps takes."""

from __future__ import annotations

import numpy as np

from simulator.equations.storage import Flag
from simulator.units import Real


def step_time(  # noqa: PLR0913 - the parts of a step
    *,
    data_stall: Real,
    h2d: Real,
    compute: Real,
    communication: Real = 0.0,
    bubble: Real = 0.0,
    checkpoint: Real = 0.0,
    other: Real = 0.0,
) -> Real:
    """Step time as the sum of what was exposed on a rank's timeline.

    Parameters
    ----------
    data_stall : float or array
        The device waited for a batch [s].
    h2d : float or array
        A copy to the device that nothing hid [s].
    compute : float or array
        Forward, backward and optimizer [s].
    communication : float or array
        Collectives that nothing hid [s].
    bubble : float or array
        A pipeline stage without work [s].
    checkpoint : float or array
        Training waited for a checkpoint, spread over the steps between two [s].
    other : float or array
        Waiting for other ranks or for the program [s].

    Returns
    -------
    float or array
        Step time [s].

    Notes
    -----
    ``data_stall + h2d + compute + communication + bubble + checkpoint + other``.

    References
    ----------
    .. [1] Isaev et al., "Calculon: a methodology and tool for high-level co-design of systems and
       large language models", 2023, https://doi.org/10.1145/3581784.3607102 (step time as a sum
       of named parts).

    Examples
    --------
    >>> step_time(data_stall=0.5, h2d=0.125, compute=1.0, communication=0.25)
    1.875
    """
    waits = data_stall + h2d + communication + bubble + checkpoint + other
    return waits + compute


def exposed_communication(communication: Real, window: Real, last: Real = 0.0) -> Real:
    """Communication that the step has to wait for.

    Parameters
    ----------
    communication : float or array
        Time of all collectives of a step [s].
    window : float or array
        Compute under which they may hide [s].
    last : float or array
        Time of the last one, which starts when the compute is over [s].

    Returns
    -------
    float or array
        Exposed time [s].

    Notes
    -----
    ``max(last, communication - window)``.

    References
    ----------
    .. [1] Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training",
       2020, https://arxiv.org/abs/2006.15704 (gradient buckets reduced while the backward pass
       goes on).

    Examples
    --------
    30 ms of collectives under 50 ms of backward, the last bucket takes 2 ms; then under 10 ms:

    >>> [round(float(exposed_communication(0.03, w, 0.002)), 9) for w in (0.05, 0.01)]
    [0.002, 0.02]
    """
    exposed: Real = np.maximum(last, communication - window)
    return exposed


def iterations_per_epoch(samples: Real, batch: Real, *, drop_last: Flag) -> Real:
    """Batches in one pass over the data.

    Parameters
    ----------
    samples : float or array
        Samples of the data set [1].
    batch : float or array
        Samples a step takes over all ranks [1].
    drop_last : bool or array of bool
        Whether a last batch that is not full is left out [1].

    Returns
    -------
    float or array
        Iterations, a whole number [1].

    Notes
    -----
    ``floor(samples / batch)`` if the last is dropped, else ``ceil(samples / batch)``.

    References
    ----------
    .. [1] PyTorch documentation, torch.utils.data.DataLoader, argument drop_last,
       https://pytorch.org/docs/stable/data.html

    Examples
    --------
    >>> [float(iterations_per_epoch(1_281_167, 32, drop_last=drop)) for drop in (True, False)]
    [40036.0, 40037.0]
    """
    batches = samples / batch
    count: Real = np.where(drop_last, np.floor(batches), np.ceil(batches))[()]
    return count
