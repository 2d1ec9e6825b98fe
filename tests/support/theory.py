"""Formulas that no prediction calls: published rules that tests hold predictions against."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import BITS_PER_BYTE, HOUR, Real

ENCODING_128_OF_130: Final = 128.0 / 130.0
"""Payload of PCIe 3 to 5 after line encoding."""

FLIT_242_OF_256: Final = 242.0 / 256.0
"""Payload of a PCIe 6 flit: 242 of 256 bytes reach the transaction layer with its headers."""


def implied_price_ratio(time_saving: Real, cost_saving: Real) -> Real:
    """How much dearer an hour got, from what was saved in time and in cost.

    ``(1 - cost_saving) / (1 - time_saving)``, `cost_ratio` turned round.

    .. [1] "Improve price performance of your model training using Amazon SageMaker heterogeneous
       clusters", AWS Machine Learning Blog, 2022 (Mobileye: 40% less time, 30% less cost).
    """
    return (1.0 - cost_saving) / (1.0 - time_saving)


def hourly(price: Real) -> Real:
    """A price as people quote it.

    ``price * 3600``.

    .. [1] BIPM, "The International System of Units", 9th edition, 2019, table 8 (1 h = 3600 s),
       https://www.bipm.org/en/publications/si-brochure
    """
    return price * HOUR


def vcpus_per_gpu(vcpus: Real, gpus: Real) -> Real:
    """How many vCPUs stand behind each GPU.

    ``vcpus / gpus``. The blog prints 210 where 96 + 2 * 72 = 240; its ratio of 30 is that of 240.

    .. [1] "Improve price performance of your model training using Amazon SageMaker heterogeneous
       clusters", AWS Machine Learning Blog, 2022.
    """
    return vcpus / gpus


def fed_utilization(available: Real, per_gpu: Real, gpus: Real) -> Real:
    """Utilization of GPUs that wait for processors only.

    ``min(1, available / (per_gpu * gpus))``.

    .. [1] "Improve price performance of your model training using Amazon SageMaker heterogeneous
       clusters", AWS Machine Learning Blog, 2022.
    """
    busy: Real = np.minimum(1.0, available / (per_gpu * gpus))
    return busy


def lane_bandwidth(transfers: Real, lanes: Real, encoding: Real = 1.0) -> Real:
    """Rate of a link of several lanes in one direction.

    ``transfers * lanes * encoding / 8``.

    .. [1] PCI-SIG, PCI Express Base Specification, revisions 4.0 to 6.0 (16, 32 and 64 GT/s a
       lane; 128b/130b up to 5.0), https://pcisig.com/specifications
    .. [2] "A Hitchhiker's Guide to ML Training Infrastructure", SEI Blog, Carnegie Mellon
       University, 2022 (32, 63 and 121 GB/s; it calls the last one gen 5 once more).
    """
    return transfers * lanes * encoding / BITS_PER_BYTE


def transfer_time(size: Real, bandwidth: Real, latency: Real = 0.0) -> Real:
    """Time of one transfer that has the link to itself.

    ``latency + size / bandwidth``.

    .. [1] Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", 1994,
       https://doi.org/10.1016/S0167-8191(06)80021-9
    """
    return latency + size / bandwidth


def busy_threads(workers: Real, worker_time: Real, receive_time: Real) -> Real:
    """How many threads of a loader are busy on average: its workers and the receiver.

    Utilization law [1]_: rate times service, summed over both kinds of thread. All slow down
    alike, so it can be had from times alone: the slow-down cancels,
    ``(worker_time + receive_time) / max(worker_time / workers, receive_time)``.

    .. [1] Lazowska et al., "Quantitative System Performance", 1984, section 3.3,
       https://homes.cs.washington.edu/~lazowska/qsp/
    """
    busy: Real = (worker_time + receive_time) / np.maximum(worker_time / workers, receive_time)
    return busy


def loader_rate(workers: Real, worker_time: Real, receive_time: Real, slowdown: Real = 1.0) -> Real:
    """Images that a loader with worker processes delivers to a trainer that never waits.

    ``min(workers / worker_time, 1 / receive_time) / slowdown``: the bottleneck law [1]_. With
    two batches of credit per worker and batches of equal cost neither side waits for the other.
    At the receiver's ceiling and without full cores it is
    ``1 / (receive_time * (1 + c * worker_time / receive_time))``, `c` the contention over the
    cores: the ceiling falls with the cost of decoding, as measured [2]_.

    .. [1] Lazowska et al., "Quantitative System Performance", 1984, section 5.2,
       https://homes.cs.washington.edu/~lazowska/qsp/
    .. [2] imread_benchmark, output/linux_*/*_dataloader_results.json,
       https://github.com/ternaus/imread_benchmark
    """
    rate: Real = 1.0 / (np.maximum(worker_time / workers, receive_time) * slowdown)
    return rate


def requests_to_saturate(bandwidth: Real, request_rate: Real) -> Real:
    """Requests that must be open at once to fill a pipe.

    ``ceil(bandwidth / request_rate)``; one request feeds ``request_rate / bandwidth`` of the pipe.

    .. [1] Little, "A Proof for the Queuing Formula L = λW", 1961,
       https://doi.org/10.1287/opre.9.3.383
    """
    requests: Real = np.ceil(bandwidth / request_rate)
    return requests


def share_fed(request_rate: Real, bandwidth: Real, requests: Real = 1.0) -> Real:
    """Part of a pipe that some requests fill.

    ``min(1, requests * request_rate / bandwidth)``.

    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (utilization law).
    """
    share: Real = np.minimum(1.0, requests * request_rate / bandwidth)
    return share


def serial_step(load: Real, compute: Real) -> Real:
    """Step time where the trainer loads its own batches (no workers).

    ``load + compute``.

    .. [1] PyTorch documentation, torch.utils.data, "Single-process data loading",
       https://pytorch.org/docs/stable/data.html
    """
    return load + compute


def overlapped_step(load: Real, compute: Real, workers: Real = 1.0) -> Real:
    """Step time in the steady state where workers load ahead.

    ``max(load / workers, compute)``.

    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (bottleneck analysis).
    """
    step: Real = np.maximum(load / workers, compute)
    return step


def workers_needed(load: Real, compute: Real) -> Real:
    """Workers that keep a device busy, if they do not slow each other.

    ``ceil(load / compute)``, less a billionth so that an exact multiple stays one.

    .. [1] Denning, Buzen, "The Operational Analysis of Queueing Network Models", 1978,
       https://doi.org/10.1145/356733.356735 (bottleneck analysis).
    """
    workers: Real = np.ceil(load / compute * (1.0 - 1e-9))
    return workers


def training_time(step: Real, steps_per_epoch: Real, epochs: Real) -> Real:
    """Time of all epochs.

    ``step * steps_per_epoch * epochs``.

    .. [1] Frank Denneman, "Training vs Inference" (blog series; 100 epochs of 40,000
       iterations).
    """
    return step * steps_per_epoch * epochs


def throughput(batch: Real, step: Real) -> Real:
    """Samples per second.

    ``batch / step``.

    .. [1] Chaim Rand, "Instance Selection for Deep Learning".
    """
    return batch / step


def throughput_for_deadline(samples: Real, epochs: Real, deadline: Real) -> Real:
    """Throughput that finishes a training in time.

    ``samples * epochs / deadline``.

    .. [1] Frank Denneman, "Training vs Inference" (blog series; ResNet-50 on an M40: 90
       epochs in 14 days).
    """
    return samples * epochs / deadline
