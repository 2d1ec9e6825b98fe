"""Time of a batch of a model that answers in one forward pass: images, rankings, embeddings.

It is the forward pass of the device model that training uses, on an accelerator or on cores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.physics.device_time import device_time
from simulator.physics.forward_pass import Iteration
from simulator.schema.hardware.link import LinkKind
from simulator.schema.scenario import Scenario
from simulator.schema.serving import OnePass
from simulator.units import Bytes, Seconds

Array = NDArray[np.float64]
SMALL: Final = 64
"""Batches up to this are all worked out, larger ones at points of a grid."""
STEP: Final = 1.2
"""Of the grid: each batch over the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPass:
    """The forward pass of batches, by their samples: a token of an iteration is one.

    `grid` are numbers of samples, `by_samples` the seconds of a batch of each. `copied` is what the
    copy of a sample's inputs to the device takes of that, over its link to the host [s].
    """

    grid: Array
    by_samples: Array
    weights_bytes: Bytes
    activation_bytes_per_token: Bytes
    kv_bytes_per_token: Bytes = 0.0
    copied: Seconds = 0.0

    def link_seconds(self, prompts: float, answers: float) -> dict[str, Seconds]:
        """Time in which the link to the host carries the inputs of so many samples [s]."""
        del answers
        return {str(LinkKind.PCIE): prompts * self.copied} if self.copied else {}

    def seconds(self, work: Iteration) -> Seconds:
        """Time of a batch [s]."""
        return float(np.interp(work.prefill_tokens, self.grid, self.by_samples))

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Nothing is decoded: no time [s]."""
        del decoding, context_tokens, iterations
        return 0.0


def batch_pass(asked: OnePass, most: int) -> BatchPass:
    """The forward pass of batches up to `most` samples on one device.

    Parameters
    ----------
    asked : OnePass
        The model on its machine.
    most : int
        Samples of the largest batch.
    """
    sizes = _sizes(most)
    model = asked.job.job.model
    if model is None:
        msg = "a model that is served is known"
        raise TypeError(msg)
    precision = asked.job.job.train.precision
    memory = model.forward_memory(float(most), precision)
    return BatchPass(
        grid=np.concatenate(([0.0], sizes)),
        by_samples=np.concatenate(([0.0], [seconds(asked, float(size)) for size in sizes])),
        weights_bytes=model.parameters * precision.bytes_per_element,
        activation_bytes_per_token=float(memory.live) / most + model.input_bytes,
        copied=_copied(asked.job),
    )


def _sizes(most: int) -> Array:
    """Batches that are worked out: small ones all, then each a share larger than the last."""
    found = [*range(1, min(SMALL, most) + 1)]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + 1, round(STEP * found[-1]))))
    return np.asarray(found, dtype=float)


def seconds(asked: OnePass, samples: float) -> Seconds:
    """Time of a batch: its inputs go to the device, and through the model [s]."""
    scenario = with_batch(asked.job, samples)
    found = device_time(scenario)
    if found is None:
        msg = "no time of a batch is known"
        raise TypeError(msg)
    return float(found.forward) + samples * _copied(scenario)


def _copied(scenario: Scenario) -> Seconds:
    """Time of a sample's inputs on the link between host and device [s]; none on cores."""
    model, link = scenario.job.model, scenario.cluster.trainers.host.device_rate
    return 0.0 if model is None or link is None else model.input_bytes / link


def with_batch(scenario: Scenario, samples: float) -> Scenario:
    """The scenario with another batch size."""
    job = scenario.job
    return replace(scenario, jobs=(replace(job, train=replace(job.train, batch_size=samples)),))
