"""A pool of CPU cores shared by the runnable threads.

Processor sharing: all runnable threads progress at one rate. Up to the number of cores each
thread has a core to itself; beyond it, second hardware threads add a stated fraction of a core
each; beyond the number of hardware threads the operating system only slices time.

Not modeled: cache contention, memory bandwidth (memory traffic is a flow, see `flows`), clock
changes with load, migration, priorities.
"""

from __future__ import annotations

import math
from itertools import count

from simpy import Environment, Event

from simulator.engine.sharing import (
    Batch,
    Deadline,
    Late,
    OnChange,
    Signal,
    UnitKey,
    checked,
    clock_slack,
    succeed_in_order,
)


class CpuPool:
    """Cores shared equally by the runnable threads.

    Parameters
    ----------
    env : Environment
        The clock.
    cores : float
        Physical cores, above zero; a fraction where a container has a quota.
    threads : float
        Hardware threads, at least `cores`; a fraction where a container has a quota.
    smt_worth : float
        Throughput that a second hardware thread adds, as a fraction of a core, 0 to 1.
    contention : float, optional
        Relative increase of the time of work if all cores are busy: threads share memory
        bandwidth, cache and power.
    taken : float, optional
        Hardware threads that other programs occupy all the time.
    speed : float, optional
        Work that one thread alone on a core does [core-seconds/s].
    on_change : callable, optional
        Called with (time [s], `unit`, utilization 0..1) whenever the utilization changes.
    unit : str, optional
        Name of the pool in the calls of `on_change`.

    Examples
    --------
    Three threads on two cores whose second threads are worth a half: each gets 2.5 / 3.

    >>> env = Environment()
    >>> pool = CpuPool(env, cores=2, threads=4, smt_worth=0.5)
    >>> jobs = [pool.run(2.5) for _ in range(3)]
    >>> env.run(env.all_of(jobs)) and env.now, pool.busy()
    (3.0, 2.25)
    """

    def __init__(  # noqa: PLR0913 - each names a property of the pool
        self,
        env: Environment,
        *,
        cores: float,
        threads: float,
        smt_worth: float,
        contention: float = 0.0,
        taken: float = 0.0,
        speed: float = 1.0,
        on_change: OnChange | None = None,
        unit: UnitKey = "cpu",
    ) -> None:
        self._env = env
        self._cores = checked("cores", cores)
        checked("threads - cores", threads - cores, zero=True)
        self._threads = threads
        self._taken = checked("taken", taken, zero=True)
        self._free = checked("threads - taken", threads - taken)
        self._smt_worth = checked("smt_worth", smt_worth, zero=True)
        checked("1 - smt_worth", 1.0 - smt_worth, zero=True)
        self._contention = checked("contention", contention, zero=True) / cores
        self._speed = checked("speed", speed)
        self._on_change = on_change
        self._unit = unit
        self._jobs = Batch()
        self._numbers = count()
        self._runnable = 0.0
        self._served: dict[float, tuple[float, float]] = {}
        self._rate = 0.0
        self._utilization = 0.0
        self._busy = 0.0
        self._since = float(env.now)
        self._deadline = Deadline(env, self._complete)
        self._late = Late(env, self._settle)

    def run(self, core_seconds: float, *, threads: float = 1.0) -> Event:
        """Start a job and return an event that fires when its work is done.

        Parameters
        ----------
        core_seconds : float
            Work of the job [core-seconds], over all its threads.
        threads : float, optional
            Runnable threads of the job; it progresses at that many times the rate of one thread.
        """
        if not (core_seconds >= 0.0 and threads > 0.0):
            checked("core_seconds", core_seconds, zero=True)
            checked("threads", threads)
        done = Signal(self._env)
        if core_seconds == 0.0:
            return done.succeed()
        self._advance()
        self._jobs.join(core_seconds / threads, next(self._numbers), done, threads)
        self._runnable += threads
        self._late.ask()
        return done

    def capacity(self, runnable: float) -> float:
        """Return the combined speed of `runnable` threads [cores].

        Hardware threads that other programs occupy (`taken`) get their share of the cores.
        """
        own = min(runnable, self._free)
        running = own + self._taken
        capacity = running
        if running > self._cores:
            second = min(running, self._threads) - self._cores
            capacity = self._cores + self._smt_worth * second
        others = max(0.0, min(own, self._cores) - 1.0)
        return capacity * (own / running) / (1.0 + self._contention * others)

    def busy(self) -> float:
        """Return the integral of utilization up to now [s].

        Utilization is the one an operating system shows: the busy fraction of the hardware threads
        that other programs do not occupy.
        """
        self._advance()
        return self._busy

    def utilization(self) -> float:
        """Return the fraction of available hardware threads that run something, 0 to 1.

        Threads that other programs occupy are not available.
        """
        return self._utilization

    def _advance(self) -> None:
        now = self._env.now
        passed = now - self._since
        if passed > 0.0:
            self._jobs.progress += self._rate * passed
            self._busy += self._utilization * passed
            self._since = now

    def _complete(self) -> None:
        self._advance()
        jobs = self._jobs
        jobs.complete_next()
        gone = jobs.leave(self._rate * clock_slack(self._env.now))
        if not jobs.marks:
            self._runnable = 0.0
        elif len(gone) == 1:
            self._runnable -= gone[0][1]
        else:
            self._runnable -= math.fsum([threads for _, threads, _ in gone])
        succeed_in_order(gone)
        self._late.ask()

    def _serve(self, running: float) -> tuple[float, float]:
        """Return the pool's utilization, and the speed of each running thread [core-seconds/s]."""
        rate = self.capacity(running) / running * self._speed
        return min(1.0, running / self._free), rate

    def _settle(self, _: Event) -> None:
        """Update the speed of the threads and the time of the next completion.

        The caller has advanced all jobs up to now.
        """
        before, running = self._utilization, self._runnable
        if self._jobs.marks:
            served = self._served.get(running)
            if served is None:
                served = self._served[running] = self._serve(running)
            self._utilization, self._rate = served
            self._deadline.move(self._jobs.remaining() / self._rate)
        else:
            self._utilization = self._rate = 0.0
            self._deadline.move(math.inf)
        if self._on_change is not None and self._utilization != before:
            self._on_change(self._env.now, self._unit, self._utilization)
