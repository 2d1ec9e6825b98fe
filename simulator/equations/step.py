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


def serial_step(load: Real, compute: Real) -> Real:
    """Step time where the trainer loads its own batches (no workers).

    Parameters
    ----------
    load : float or array
        Time to make a batch [s].
    compute : float or array
        Time the device takes for it [s].

    Returns
    -------
    float or array
        Step time [s].

    Notes
    -----
    ``load + compute``.

    References
    ----------
    .. [1] PyTorch documentation, torch.utils.data, "Single-process data loading",
       https://pytorch.org/docs/stable/data.html

    Examples
    --------
    >>> round(serial_step(0.38, 0.055), 9)
    0.435
    """
    return load + compute


def overlapped_step(load: Real, compute: Real, workers: Real = 1.0) -> Real:
    """Step time in the steady state where workers load ahead.

    Parameters
    ----------
    load : float or array
        Time one worker takes to make a batch [s].
    compute : float or array
        Time the device takes for it [s].
    workers : float or array
        Workers, all alike, that do not slow each other [1].

    Returns
    -------
    float or array
        Step time [s].

    Notes
    -----
    ``max(load / workers, compute)``.

    References
    ----------
    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (bottleneck analysis).

    Examples
    --------
    >>> float(overlapped_step(0.38, 0.055)), float(overlapped_step(0.12, 0.02, 4))
    (0.38, 0.03)
    """
    step: Real = np.maximum(load / workers, compute)
    return step


def workers_needed(load: Real, compute: Real) -> Real:
    """Workers that keep a device busy, if they do not slow each other.

    Parameters
    ----------
    load : float or array
        Time one worker takes to make a batch [s].
    compute : float or array
        Time the device takes for it [s].

    Returns
    -------
    float or array
        Workers, a whole number [1].

    Notes
    -----
    ``ceil(load / compute)``, less a billionth so that an exact multiple stays one.

    References
    ----------
    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (bottleneck analysis).

    Examples
    --------
    0.38 / 0.055 = 6.9:

    >>> float(workers_needed(0.38, 0.055)), float(workers_needed(0.3, 0.1))
    (7.0, 3.0)
    """
    workers: Real = np.ceil(load / compute * (1.0 - 1e-9))
    return workers


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


def training_time(step: Real, steps_per_epoch: Real, epochs: Real) -> Real:
    """Time of all epochs.

    Parameters
    ----------
    step : float or array
        Step time [s].
    steps_per_epoch : float or array
        Steps in an epoch [1].
    epochs : float or array
        Epochs, may be a fraction [1].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``step * steps_per_epoch * epochs``.

    References
    ----------
    .. [1] Frank Denneman, "Training vs Inference" (blog series; 100 epochs of 40,000
       iterations).

    Examples
    --------
    0.055 s, 40,000 iterations, 100 epochs, in days:

    >>> round(training_time(0.055, 40_000, 100) / 86_400, 3)
    2.546
    """
    return step * steps_per_epoch * epochs


def throughput(batch: Real, step: Real) -> Real:
    """Samples per second.

    Parameters
    ----------
    batch : float or array
        Samples a step takes over all ranks [1].
    step : float or array
        Step time [s].

    Returns
    -------
    float or array
        Throughput [/s].

    Notes
    -----
    ``batch / step``.

    References
    ----------
    .. [1] Chaim Rand, "Instance Selection for Deep Learning".

    Examples
    --------
    >>> round(throughput(8192, 0.192))
    42667
    """
    return batch / step


def throughput_for_deadline(samples: Real, epochs: Real, deadline: Real) -> Real:
    """Throughput that finishes a training in time.

    Parameters
    ----------
    samples : float or array
        Samples of the data set [1].
    epochs : float or array
        Epochs [1].
    deadline : float or array
        Time allowed [s].

    Returns
    -------
    float or array
        Throughput [/s].

    Notes
    -----
    ``samples * epochs / deadline``.

    References
    ----------
    .. [1] Frank Denneman, "Training vs Inference" (blog series; ResNet-50 on an M40: 90
       epochs in 14 days).

    Examples
    --------
    1,281,167 images, 90 epochs, 14 days = 1,209,600 s:

    >>> round(throughput_for_deadline(1_281_167, 90, 1_209_600), 1)
    95.3
    """
    return samples * epochs / deadline
