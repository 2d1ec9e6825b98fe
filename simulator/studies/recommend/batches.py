"""Which micro-batches a search tries: the same samples a step in as large parts as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a number, the largest first.

    Examples
    --------
    >>> divisors(12)
    (12, 6, 4, 3, 2, 1)
    """
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}, reverse=True))


def splits(
    share: int, most: int, fits: Callable[[int], bool], tried: int
) -> Iterator[tuple[int, int]]:
    """Micro-batch and accumulation that make up what a rank takes in a step.

    Parameters
    ----------
    share : int
        Samples of one rank in one optimizer step.
    most : int
        The largest micro-batch wanted.
    fits : callable
        Whether a micro-batch fits into memory; what does, fits in smaller parts too.
    tried : int
        How many of those that fit, the largest first, each at most half of the one before. Where
        not even one sample fits, the smallest is given all the same: the search says why.

    Examples
    --------
    >>> list(splits(256, 256, lambda batch: batch <= 64, 2))
    [(64, 4), (32, 8)]
    """
    possible = [batch for batch in divisors(share) if batch <= most]
    found, below = 0, most
    for batch in possible:
        if batch <= below and fits(batch):
            yield batch, share // batch
            found, below = found + 1, batch // 2
        if found == tried:
            return
    if found == 0:
        yield possible[-1], share // possible[-1]
