"""Searches of commands: options, worker processes and the store of results."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simulator.cli.options import jobs_option, near
from simulator.cli.output import check_writable, complain, counting_line, progress_line
from simulator.records import dataclass

if TYPE_CHECKING:
    from simulator.results.prediction import Prediction
    from simulator.schema.scenario import Scenario
    from simulator.studies.recommend.search_problem import SearchBackend
    from simulator.studies.search.explore import Request, Standing
    from simulator.studies.search.outcome import Outcome
    from simulator.studies.search.store import Store
    from simulator.studies.search.workers import Workers
    from simulator.validation.local_coverage import Neighbourhood

Verb = TypeVar("Verb", bound=Callable[..., Any])


def search_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the options ``--store``, ``--resume``, ``--jobs`` and ``--cluster``.

    Their values are passed together as the argument `means`.
    """

    @functools.wraps(verb)
    def searching(
        *,
        store: Path | None,
        resume: bool,
        jobs: int | None,
        cluster: str | None,
        **options: Any,  # noqa: ANN401 - those of the verb
    ) -> Any:  # noqa: ANN401 - that of the verb
        means = Means(store=store, resume=resume, jobs=jobs, cluster=cluster)
        return verb(means=means, **options)

    for add in (
        click.option(
            "--cluster",
            "cluster",
            metavar="ADDRESS",
            help="Dask scheduler to run on (tcp://host:port), or local to start a local cluster.",
        ),
        jobs_option,
        click.option(
            "--resume/--no-resume",
            "resume",
            default=True,
            show_default=True,
            help="Reuse results in the store.",
        ),
        click.option(
            "--store",
            "store",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="File of saved results. Default: $PLAN_STORE, or one in your cache folder.",
        ),
    ):
        searching = add(searching)
    return searching


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Values of the search options: store of results, processes and cluster."""

    store: Path | None = None
    resume: bool = True
    jobs: int | None = None
    cluster: str | None = None


def run_search(request: Request, means: Means) -> tuple[Outcome, ...]:
    """Run a search with a progress line; Ctrl-C prints the number of stored predictions.

    Raises
    ------
    PlanError
        If the store, the cluster or the request cannot be used.
    """
    from simulator.studies.search.explore import explore

    with _searching(means) as (store, workers, tell):
        return explore(
            request,
            workers=workers,
            store=store,
            progress=lambda standing: tell(standing.done, standing),
        )


@contextmanager
def search_backend(means: Means, *, stored_only: bool) -> Iterator[SearchBackend]:
    """Context manager: yield a search backend whose searches share workers and store.

    `stored_only`: use stored results, without new simulations. Ctrl-C prints the number of stored
    predictions.

    Raises
    ------
    PlanError
        If the store or the cluster cannot be used.
    """
    from simulator.studies.recommend.search_problem import SearchBackend as Backend

    with _searching(means) as (store, workers, tell):
        yield Backend(workers, store, tell, stored_only=stored_only)


@contextmanager
def _searching(
    means: Means,
) -> Iterator[tuple[Store, Workers, Callable[[float, Standing], None]]]:
    """Context manager: yield store, workers and a function that shows the progress of a search."""
    last: list[Standing] = []
    with open_store(means) as store, _workers(means) as workers, counting_line("searching") as show:

        def tell(done: float, standing: Standing) -> None:
            last[:] = [standing]
            show(done, _counts(standing))

        try:
            yield store, workers, tell
        except KeyboardInterrupt:
            complain(f"stopped; {_kept(last, store)}")
            raise


def in_full(
    scenario: Scenario,
    *,
    seed: int,
    jobs: int | None,
    profiles: tuple[Path, ...],
    evidence: bool,
) -> tuple[Prediction, Neighbourhood | None]:
    """Predict the best candidate of a search in detail, for a page that shows it.

    Returns the prediction and, with `evidence`, the most similar measured runs. `jobs` is the
    number of processes.
    """
    from simulator.predict import predict

    with progress_line("predicting the best in full") as progress:
        prediction = predict(scenario, seed=seed, progress=progress)
    return prediction, near(scenario, jobs, profiles) if evidence else None


@contextmanager
def open_store(means: Means) -> Iterator[Store]:
    """Context manager: yield the store of the options; at the end, report damaged rows."""
    with _opened(means) as store:
        yield store
        if store.damaged:
            complain(f"{store.damaged:,} damaged rows of {store.path} were predicted again")


def _opened(means: Means) -> Store:
    """Open the store; one in memory if none is named and the default one cannot be used."""
    from simulator.studies.search.store import MEMORY, VARIABLE, Store, StoreError, default_path

    if means.store is not None:  # only the default folder is created, not a mistyped one
        check_writable(means.store, "--store")
        return Store(means.store, resume=means.resume)
    try:
        return Store(default_path(), resume=means.resume)
    except StoreError as error:
        if os.environ.get(VARIABLE):
            raise
        complain(f"warning: {error}; continuing without it: results are not stored")
        return Store(MEMORY, resume=means.resume)


@contextmanager
def _workers(means: Means) -> Iterator[Workers]:
    from simulator.studies.search.workers import cores, dask_workers, local_workers

    processes = means.jobs or cores()
    opened = (
        local_workers(processes)
        if means.cluster is None
        else dask_workers(means.cluster, processes)
    )
    with opened as workers:
        yield workers


def _counts(standing: Standing) -> str:
    if standing.read < standing.candidates:
        return f"{standing.read:,} of {standing.candidates:,} read"
    stored = f", {standing.stored:,} from the store" if standing.stored else ""
    return (
        f"{standing.settled:,} of {standing.candidates:,} settled, "
        f"{standing.predicted:,} predicted{stored}"
    )


def _kept(last: list[Standing], store: Store) -> str:
    from simulator.studies.search.store import MEMORY

    predicted = last[0].predicted if last else 0
    if store.path == MEMORY:
        return f"{predicted:,} predictions of this run are lost: there was no store"
    return (
        f"{predicted:,} predictions of this run are stored in {store.path}; the same command "
        "continues from there"
    )
