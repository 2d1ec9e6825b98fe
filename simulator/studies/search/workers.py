"""Workers of a study: this process, several processes of this machine, or a Dask cluster.

All of them are `concurrent.futures.Executor`s: answers go by their task's number, and a task whose
worker died is given to another one. The scheduler of a Dask cluster gives the task of a lost worker
to another one by itself, and gives up only after several were lost; the library is imported when a
cluster is requested.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from dataclasses import field
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from simulator.errors import PlanError
from simulator.records import dataclass

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Progress = Callable[[float], None]

MIN_TASKS: Final = 24
"""Number of tasks below which starting processes takes longer than it saves."""
BORROWED_WINDOW: Final = 512
"""Number of tasks submitted to a borrowed executor at a time, enough for large pools."""
MAX_DEATHS: Final = 3
"""Number of workers that may die over a task before it is given up."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Result of a task that was given up because `deaths` workers died over it."""

    deaths: int = MAX_DEATHS


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Source of worker processes.

    `window` is the number of tasks submitted at a time. `start` returns a new executor when there
    is none or it is broken, and `stop` ends an executor and its tasks. `deaths` returns the number
    of workers that died according to an exception; 0 for any other exception.
    """

    window: int
    start: Callable[[], Executor]
    stop: Callable[[Executor], None]
    deaths: Callable[[BaseException], int]


class Workers:
    """Executor of tasks; processes start when there are enough tasks, and are reused.

    Parameters
    ----------
    team : Team or None
        Source of the processes; with None, tasks run in this process.
    worth : float
        Total weight of tasks from which processes are started.
    """

    def __init__(self, team: Team | None, worth: float = MIN_TASKS) -> None:
        self._team = team
        self._worth = worth
        self._executor: Executor | None = None

    def map(
        self,
        function: Callable[[Task], Answer],
        tasks: Sequence[Task],
        progress: Progress | None = None,
        weights: Sequence[float] | None = None,
    ) -> list[Answer]:
        """Return the results of `function` for all tasks; `progress` gets the finished share.

        Raises
        ------
        RuntimeError
            If workers keep dying over a task.
        """
        weights = weights or [1.0] * len(tasks)
        done, whole = 0.0, sum(weights) or 1.0
        found: dict[int, Answer] = {}
        for number, answer in self.answers(function, tasks, weight=whole):
            if isinstance(answer, Lost):
                msg = f"{answer.deaths} processes died, one after another, over the same task"
                raise RuntimeError(msg)  # noqa: TRY004 - a death is no wrong type
            found[number] = answer
            done += weights[number]
            if progress is not None:
                progress(done / whole)
        return [found[number] for number in range(len(tasks))]

    def answers(
        self,
        function: Callable[[Task], Answer],
        tasks: Sequence[Task],
        *,
        weight: float | None = None,
    ) -> Iterator[tuple[int, Answer | Lost]]:
        """Yield the index and result of every task, in order of completion.

        `weight` is the total work, in tasks of usual length. Exceptions of `function` are raised
        here; it must not raise an exception that means a dead worker.
        """
        weight = len(tasks) if weight is None else weight
        if self._team is None or (weight < self._worth and self._executor is None):
            yield from ((number, function(task)) for number, task in enumerate(tasks))
            return
        round_ = _Batch(team=self._team, function=function, tasks=tasks)
        while round_.unfinished:
            if self._executor is None:
                self._executor = self._team.start()
            yield from round_.until_broken(self._executor)
            if round_.unfinished:
                self.end()

    def end(self) -> None:
        """Stop the processes, including their running tasks."""
        executor, self._executor = self._executor, None
        if executor is not None and self._team is not None:
            self._team.stop(executor)


@dataclass(slots=True, kw_only=True)
class _Batch(Generic[Task, Answer]):
    """Tasks in progress: waiting, running, and suspected of having killed a worker.

    If a process dies, its task is unknown, so all running tasks are suspects: each is retried
    alone, and only then is a death attributed to it.
    """

    team: Team
    function: Callable[[Task], Answer]
    tasks: Sequence[Task]
    waiting: deque[int] = field(init=False)
    suspects: deque[int] = field(default_factory=deque)
    deaths: dict[int, int] = field(default_factory=dict)
    flying: dict[Future[Answer], int] = field(default_factory=dict)
    broken: bool = False

    def __post_init__(self) -> None:
        self.waiting = deque(range(len(self.tasks)))

    @property
    def unfinished(self) -> bool:
        return bool(self.waiting or self.suspects or self.flying)

    def until_broken(self, executor: Executor) -> Iterator[tuple[int, Answer | Lost]]:
        """Yield results as they finish, until all tasks are done or the executor is broken."""
        self.broken = False
        while self.unfinished and not self.broken:
            self._submit(executor)
            done, _ = wait(self.flying, return_when=FIRST_COMPLETED)
            for future in done:
                yield from self._settled(future)
        for future in tuple(self.flying):
            yield from self._settled(future)

    def _submit(self, executor: Executor) -> None:
        """Submit tasks up to the window; suspects last, one at a time."""
        try:
            while self.waiting and len(self.flying) < self.team.window:
                self._give(executor, self.waiting)
            if self.suspects and not self.flying:
                self._give(executor, self.suspects)
        except BrokenExecutor:
            self.broken = True

    def _give(self, executor: Executor, queue: deque[int]) -> None:
        self.flying[executor.submit(self.function, self.tasks[queue[0]])] = queue[0]
        queue.popleft()

    def _settled(self, future: Future[Answer]) -> Iterator[tuple[int, Answer | Lost]]:
        number = self.flying.pop(future)
        error = future.exception()
        if error is None:
            yield number, future.result()
            return
        died = self.team.deaths(error)
        if not died:
            raise error
        self.broken = self.broken or isinstance(error, BrokenExecutor)
        self.deaths[number] = self.deaths.get(number, 0) + died
        if self.deaths[number] < MAX_DEATHS:
            self.suspects.append(number)
        else:
            yield number, Lost()


def _processes(number: int) -> Team:
    """Return a source of processes of this machine, with two submitted tasks for each."""

    def start() -> ProcessPoolExecutor:
        # A forked child would inherit the threads' locks of numerical libraries.
        context = multiprocessing.get_context("spawn")
        after = gc.get_threshold()[0]
        return ProcessPoolExecutor(
            number, mp_context=context, initializer=_enter, initargs=(after,)
        )

    return Team(
        window=2 * number,
        start=start,
        stop=_terminate,
        deaths=lambda error: int(isinstance(error, BrokenExecutor)),
    )


def _terminate(executor: Executor) -> None:
    processes = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


def borrowed_workers(executor: Executor) -> Workers:
    """Return workers that use any `concurrent.futures.Executor`; its owner shuts it down.

    Processes of a pool must be able to import this package; a pool that breaks ends the study
    with its own error, and what was finished stays in the store.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     borrowed_workers(pool).map(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    team = Team(
        window=BORROWED_WINDOW, start=lambda: executor, stop=lambda _: None, deaths=lambda _: 0
    )
    return Workers(team, worth=0.0)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def local_workers(processes: int, worth: float = MIN_TASKS) -> Iterator[Workers]:
    """Start worker processes on this machine and stop them on exit; with 1, use this process."""
    made = Workers(None if processes == 1 else _processes(processes), worth)
    try:
        yield made
    finally:
        made.end()


def _enter(collected_after: int) -> None:
    """Initialize a worker process: ignore Ctrl-C, which only the first process handles.

    The threshold of the garbage collector is set to that of the first process.
    """
    gc.set_threshold(collected_after)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this process when its parent process has ended, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


LOCAL_CLUSTER: Final = "local"
"""Instead of an address: a cluster of this machine's processes."""
IN_FLIGHT: Final = 512
"""Maximum number of tasks submitted to the scheduler at a time."""
CONNECT_TIMEOUT: Final = 10.0
"""Maximum time to wait for the scheduler [s]."""


@contextmanager
def dask_workers(address: str, processes: int) -> Iterator[Workers]:
    """Connect to the workers of a Dask cluster; a cluster started here is stopped on exit.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``, or `LOCAL_CLUSTER`.
    processes : int
        Number of processes of a local cluster.

    Raises
    ------
    PlanError
        If the library is missing, or there is no scheduler at the address.
    """
    with _connected(address, processes) as client:
        made = Workers(_cluster(client), worth=0.0)
        try:
            yield made
        finally:
            made.end()


def _cluster(client: Any) -> Team:  # noqa: ANN401 - of a library that carries few types
    """Return a source of processes that submits tasks to a Dask client."""

    def stop(executor: Executor) -> None:
        # A scheduler that is gone has nothing left to cancel.
        with suppress(Exception):
            executor.shutdown(wait=False, cancel_futures=True)

    def deaths(error: BaseException) -> int:
        if isinstance(error, ModuleNotFoundError):
            msg = f"the cluster's workers lack '{error.name}'; install the same plan on all of them"
            raise PlanError(msg) from error
        return MAX_DEATHS if isinstance(error, _library().KilledWorker) else 0

    return Team(window=IN_FLIGHT, start=client.get_executor, stop=stop, deaths=deaths)


@contextmanager
def _connected(address: str, processes: int) -> Iterator[Any]:
    distributed = _library()
    options: dict[str, Any] = {"set_as_default": False, "timeout": CONNECT_TIMEOUT}
    if address != LOCAL_CLUSTER:
        try:
            client = distributed.Client(address, **options)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            msg = f"--cluster {address}: no scheduler answers there: {reason}"
            raise PlanError(msg) from error
        with client:
            yield client
        return
    with (
        distributed.LocalCluster(
            n_workers=processes, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, **options) as client,
    ):
        yield client


def _library() -> Any:  # noqa: ANN401 - an extra that need not be there, and carries few types
    try:
        return import_module("distributed")
    except ImportError as error:
        msg = "--cluster needs the package 'distributed': pip install 'plan-simulator[dask]'"
        raise PlanError(msg) from error
