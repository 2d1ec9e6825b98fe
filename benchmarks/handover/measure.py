"""What taking a batch over from a worker process costs: by tensors, by bytes, and by what is done.

One worker makes batches of a given size in a given number of tensors; the main process lets it
finish, takes a batch, copies it to memory in use or not, and frees it. Medians over batches, the
least of three rounds: what else the machine does only adds.
Run: ``python benchmarks/handover/measure.py > benchmarks/handover/results.toml``
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

MEBIBYTE = 2**20
FLOAT = 4
BATCHES = 15
ROUNDS = 3
SKIPPED = 3
READY = 0.25
"""Pause in which the worker finishes a batch [s]."""
CASES = ((4, 1), (64, 1), (64, 9), (64, 114))
"""Size of a batch [MiB] and its tensors."""


class Batches(Dataset[list[torch.Tensor]]):
    """Batches of equal tensors that were written to."""

    def __init__(self, size: int, tensors: int) -> None:
        self.tensors = tensors
        self.floats = size * MEBIBYTE // tensors // FLOAT

    def __len__(self) -> int:
        """How many batches."""
        return BATCHES

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        """One batch."""
        return [torch.full((self.floats,), float(index)) for _ in range(self.tensors)]


def measure(size: int, tensors: int, *, copy: bool) -> tuple[float, float]:
    """Seconds to take a ready batch, and to copy (where asked) and free it."""
    batches = Batches(size, tensors)
    target = [torch.zeros(batches.floats) for _ in range(tensors)]
    taking, using = [], []
    loader = iter(DataLoader(batches, batch_size=None, num_workers=1, prefetch_factor=2))
    for _ in range(BATCHES):
        time.sleep(READY)
        asked = time.perf_counter()
        batch = next(loader)
        taken = time.perf_counter()
        if copy:
            for there, here in zip(target, batch, strict=True):
                there.copy_(here)
        del batch
        taking.append(taken - asked)
        using.append(time.perf_counter() - taken)
    return statistics.median(taking[SKIPPED:]), statistics.median(using[SKIPPED:])


def best(size: int, tensors: int, *, copy: bool) -> tuple[float, float]:
    """The least of some rounds."""
    rounds = [measure(size, tensors, copy=copy) for _ in range(ROUNDS)]
    return min(taken for taken, _ in rounds), min(used for _, used in rounds)


def main() -> None:
    """Print all cases as TOML."""
    torch.set_num_threads(1)
    out = sys.stdout.write
    out("# Written by measure.py: medians in seconds, least of three.\n")
    out(f'torch = "{torch.__version__}"\n')
    for size, tensors in CASES:
        freed, copied = (best(size, tensors, copy=copy) for copy in (False, True))
        out(
            f"\n[[batch]]\nmebibytes = {size}\ntensors = {tensors}\ntake = {freed[0]:.5f}\n"
            f"free = {freed[1]:.5f}\ncopy_and_free = {copied[1]:.5f}\n"
        )


if __name__ == "__main__":
    main()
