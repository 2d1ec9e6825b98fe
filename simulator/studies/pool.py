"""A pool of processes that ends with its user: progress as parts are done, and Ctrl-C ends all."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Final, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Progress = Callable[[float], None]

WORTH_A_PROCESS: Final = 24
"""Tasks below which starting processes takes longer than it saves."""


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """Answers to tasks in their order, from this process or from several.

    Processes start when there is enough to do, and are kept for the next call.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._executor: ProcessPoolExecutor | None = None

    def map(
        self,
        function: Callable[[Task], Answer],
        tasks: Sequence[Task],
        progress: Progress | None = None,
        weights: Sequence[float] | None = None,
    ) -> list[Answer]:
        """`function` of every task; `progress` is told the share of the `weights` that is done."""
        weights = weights or [1.0] * len(tasks)
        whole = sum(weights) or 1.0
        tell = progress or (lambda _: None)
        if self._processes == 1 or (whole < WORTH_A_PROCESS and self._executor is None):
            return list(_one_by_one(function, tasks, weights, tell))
        if self._executor is None:
            self._executor = _start(self._processes)
        futures = [self._executor.submit(function, task) for task in tasks]
        _watch(futures, weights, tell)
        return [future.result() for future in futures]

    def end(self) -> None:
        """Let the processes go, those at work too."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        processes = list((executor._processes or {}).values())  # noqa: SLF001 - no public way to end them
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


@contextmanager
def pool(processes: int) -> Iterator[Pool]:
    """A pool whose processes are gone when it is left, whatever happened."""
    made = Pool(processes)
    try:
        yield made
    finally:
        made.end()


def _start(processes: int) -> ProcessPoolExecutor:
    # A forked child would inherit the threads' locks of numerical libraries.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_signals)


def _leave_signals() -> None:
    """Ctrl-C reaches every process of a terminal; only the first one answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one_by_one(
    function: Callable[[Task], Answer],
    tasks: Sequence[Task],
    weights: Sequence[float],
    tell: Progress,
) -> Iterator[Answer]:
    done, whole = 0.0, sum(weights) or 1.0
    for task, weight in zip(tasks, weights, strict=True):
        yield function(task)
        done += weight
        tell(done / whole)


def _watch(futures: Sequence[Future[Answer]], weights: Sequence[float], tell: Progress) -> None:
    weight = dict(zip(futures, weights, strict=True))
    done, whole = 0.0, sum(weights) or 1.0
    for future in as_completed(futures):
        future.result()
        done += weight[future]
        tell(done / whole)
