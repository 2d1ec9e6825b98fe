"""Work on a batch: its samples, their sizes and lengths, and the batches of an epoch."""

from __future__ import annotations

import numpy as np

from simulator.equations.storage import Flag
from simulator.units import (
    Bytes,
    Real,
    Seconds,
    at_most,
)


def batch_work(
    batch_size: Real, per_sample: Seconds | Real, per_batch: Seconds | Real = 0.0, scale: Real = 1.0
) -> Seconds | Real:
    """Return the CPU work of one batch.

    ``(batch_size * per_sample + per_batch) * scale``. `scale` converts seconds of the machine where
    the work was measured.

    Source: PyTorch documentation, torch.utils.data, "Working with collated and batched data",
    https://pytorch.org/docs/stable/data.html.

    >>> batch_work(32, 0.002, 0.016)
    0.08
    """
    return (batch_size * per_sample + per_batch) * scale


def decode_work(
    batch_size: Real, decode: Seconds | Real, augment: Seconds | Real, scale: Real = 1.0
) -> Seconds | Real:
    """Return the CPU work of decoding and augmenting one batch.

    ``batch_size * (decode + augment) * scale``. `decode` and `augment` are per sample; `scale` is
    as in `batch_work`.

    Source: PyTorch documentation, torch.utils.data, "Working with collated and batched data",
    https://pytorch.org/docs/stable/data.html.

    >>> decode_work(32, 0.0625, 0.0625)
    4.0
    """
    return batch_size * (decode + augment) * scale


def batch_bytes(batch_size: Real, bytes_per_sample: Bytes | Real) -> Bytes | Real:
    """Return the size of the samples of a batch.

    ``batch_size * bytes_per_sample``.

    Source: PyTorch documentation, torch.utils.data, "Working with collated and batched data",
    https://pytorch.org/docs/stable/data.html.

    >>> batch_bytes(32, 602112)
    19267584
    """
    return batch_size * bytes_per_sample


def copied_bytes(size: Bytes | Real) -> Bytes | Real:
    """Return the memory traffic of a copy within memory.

    ``2 * size``: one read and one write.

    Source: McCalpin, "STREAM: Sustainable Memory Bandwidth in High Performance Computers",
    https://www.cs.virginia.edu/stream/ (kernel Copy: one read and one write an element).

    >>> copied_bytes(1e6)
    2000000.0
    """
    return 2.0 * size


def mean_square_length(mean: Real) -> Real:
    """Return the mean square of sequence lengths that are uniform about their mean.

    ``mean^2 + w^2 / 3``: the second moment of a uniform distribution that reaches w to both
    sides, with ``w`` the lesser of ``mean`` and ``1 - mean``. It is the widest one of that mean.
    Lengths are relative to the longest possible one. Work on pairs of positions, as in attention,
    grows with the square of a sequence's length, so that a few long sequences among short ones cost
    more than the same number of mean length.

    Source: Krell et al., "Efficient Sequence Packing without Cross-contamination", 2021,
    https://arxiv.org/abs/2107.02027 (how lengths differ; own derivation).

    All lengths equally frequent; all of them full:

    >>> round(float(mean_square_length(0.5)), 4)
    0.3333
    >>> float(mean_square_length(1.0))
    1.0
    """
    reach = at_most(mean, 1.0 - mean)
    square: Real = mean**2 + reach**2 / 3.0
    return square


def iterations_per_epoch(samples: Real, batch: Real, *, drop_last: Flag) -> Real:
    """Return the steps of one pass over the data.

    ``floor(samples / batch)`` if the last is dropped, else ``ceil(samples / batch)``. `batch` is
    that of all ranks.

    Source: PyTorch documentation, torch.utils.data.DataLoader, argument drop_last,
    https://pytorch.org/docs/stable/data.html

    >>> [float(iterations_per_epoch(1_281_167, 32, drop_last=drop)) for drop in (True, False)]
    [40036.0, 40037.0]
    """
    batches = samples / batch
    count: Real = np.where(drop_last, np.floor(batches), np.ceil(batches))[()]
    return count
