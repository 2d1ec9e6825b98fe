"""The definitions of MLPerf Storage for an epoch of emulated accelerators.

The benchmark (DLIO) runs one process for each accelerator. A step loads a batch, waits as long as
the accelerator would compute, and meets all others at a barrier. Step 1 of an epoch stands apart:
while it loads, all workers fill their queues. What is reported differs by version:

- v1.0 (DLIO ``mlperf_storage_v1.0``, ``utils/statscounter.py``): utilization is the nominal compute
  time of all steps but the first over the epoch less the first step; throughput counts all
  samples over the whole epoch.
- v2.0 and later: utilization is the measured compute time over the same reduced time, here the
  nominal one; throughput is counted over the reduced time too, with two steps' samples left out
  although one step's time is.

The first step is what the average rank itself takes for it, without the barrier, so waiting for the
slowest rank's first batch counts against the utilization. All are means over epochs.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.physics.device_time import device_time
from simulator.results.prediction import Prediction
from simulator.units import PerSecond, Seconds


def utilization(prediction: Prediction) -> float | None:
    """Compute time of all steps but the first over the epoch without it (v1.0 and v2.0), 0 to 1."""
    return _mean(prediction, lambda epoch: epoch.compute * (epoch.steps - 1) / epoch.reduced)


def throughput_v1(prediction: Prediction) -> PerSecond | None:
    """Return samples of all steps over the whole epoch, over all ranks [/s]."""
    return _mean(prediction, lambda epoch: epoch.samples * epoch.steps / epoch.time)


def throughput_v2(prediction: Prediction) -> PerSecond | None:
    """Return samples of all steps but two over the epoch without its first step [/s]."""
    return _mean(prediction, lambda epoch: epoch.samples * (epoch.steps - 2) / epoch.reduced)


def first_step(prediction: Prediction) -> Seconds | None:
    """Return the time of the first step of an epoch, mean over ranks and epochs [s]."""
    return _mean(prediction, lambda epoch: epoch.first)


def step_time(prediction: Prediction) -> Seconds | None:
    """Return the mean of all steps of an epoch but the first [s], with waiting for other ranks."""
    return _mean(prediction, lambda epoch: epoch.reduced / (epoch.steps - 1))


class _Epoch:
    """An epoch as the benchmark counts it: times [s], and samples of a step over all ranks."""

    def __init__(self, prediction: Prediction, *, first: bool) -> None:
        scenario, timing = prediction.scenario, prediction.timing
        train, compute = scenario.job.train, device_time(scenario)
        self.steps = prediction.steps_per_epoch
        self.compute = 0.0 if compute is None else float(compute.total) * train.accumulation
        self.samples = train.batch_size * train.accumulation * scenario.ranks
        self.time = timing.first_epoch_time if first else timing.epoch_time
        self.first = timing.first_steps[0 if first else 1]
        self.reduced = self.time - self.first


def _mean(prediction: Prediction, figure: Callable[[_Epoch], float]) -> float | None:
    """Return the mean of a figure over the epochs; None without emulation or with too few steps."""
    scenario = prediction.scenario
    gpu, epochs = scenario.cluster.trainers.host.gpu, scenario.job.train.epochs
    if gpu is None or not gpu.emulated or prediction.steps_per_epoch < _LEAST_STEPS:
        return None
    first = figure(_Epoch(prediction, first=True))
    if epochs <= 1.0:
        return first
    return (first + (epochs - 1.0) * figure(_Epoch(prediction, first=False))) / epochs


_LEAST_STEPS = 3
