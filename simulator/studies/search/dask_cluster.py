"""Workers of a Dask cluster: one that runs somewhere, or one started on this machine.

The scheduler gives the task of a worker that is lost to another one by itself, and up only after
several were lost over it. The library is imported when a cluster is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from simulator.errors import PlanError
from simulator.studies.search.workers import DEATHS, Workers

LOCAL: Final = "local"
"""In place of an address: a cluster of this machine's processes."""
IN_FLIGHT: Final = 512
"""Tasks the scheduler holds at a time."""
PATIENCE: Final = 10.0
"""How long to wait for the scheduler [s]."""


@contextmanager
def dask_workers(address: str, processes: int) -> Iterator[Workers]:
    """Workers of a cluster, left when this is; one that was started here ends with it.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``, or `LOCAL`.
    processes : int
        Of a local cluster.

    Raises
    ------
    PlanError
        If the library is missing, or there is no scheduler.
    """
    with _connected(address, processes) as client:
        made = Workers(_Cluster(client), worth=0.0)
        try:
            yield made
        finally:
            made.end()


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The workers that a client's scheduler has."""

    client: Any

    @property
    def window(self) -> int:
        return IN_FLIGHT

    def start(self) -> Executor:
        executor: Executor = self.client.get_executor()
        return executor

    def stop(self, executor: Executor) -> None:
        # A scheduler that is gone has nothing left to cancel.
        with suppress(Exception):
            executor.shutdown(wait=False, cancel_futures=True)

    def deaths(self, error: BaseException) -> int:
        if isinstance(error, ModuleNotFoundError):
            msg = f"the cluster's workers lack '{error.name}'; install the same plan on all of them"
            raise PlanError(msg) from error
        return DEATHS if isinstance(error, _library().KilledWorker) else 0


@contextmanager
def _connected(address: str, processes: int) -> Iterator[Any]:
    distributed = _library()
    options: dict[str, Any] = {"set_as_default": False, "timeout": PATIENCE}
    if address != LOCAL:
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
