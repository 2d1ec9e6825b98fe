"""A Dask cluster: the same outcomes, even when a worker dies in the middle."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.search import BASE, SHORT

from simulator.cli.output import Exit
from simulator.errors import PlanError
from simulator.studies.search import workers as module

OVER = ("input.workers=1..8", "train.batch_size=16,32,48,64")
needs_dask = pytest.mark.skipif(
    find_spec("distributed") is None, reason="the extra [dask] is not installed"
)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody without the library reads which extra to install."""

    def missing(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(module, "import_module", missing)
    told = r"pip install 'plan-simulator\[dask\]'"
    with pytest.raises(PlanError, match=told), module.dask_workers("local", 1):
        pass


def python(root: Path, *arguments: str) -> subprocess.Popen[str]:
    """One of our own interpreters, with its messages in a pipe."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def sweep(root: Path, store: Path, *more: str) -> subprocess.Popen[str]:
    """A sweep of the short scenario."""
    given = [part for value in SHORT for part in ("--set", value)]
    over = [part for value in OVER for part in ("--over", value)]
    call = "import sys; from simulator.cli.main import main; sys.exit(main())"
    asked = ["sweep", BASE, *given, *over, "--exhaustive", "--store", str(store), *more]
    return python(root, "-c", call, *asked)


def answer(run: subprocess.Popen[str]) -> str:
    """What a run printed that ended well."""
    out, _ = run.communicate(timeout=300.0)
    assert run.returncode == Exit.FINE, out
    return out


@pytest.fixture
def scheduler(root: Path) -> Iterator[str]:
    """The address of a real scheduler."""
    run = python(
        root, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
        "--host", "127.0.0.1",
    )  # fmt: skip
    assert run.stdout is not None
    found = None
    for line in run.stdout:
        found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
        if found:
            break
    assert found
    reading = drain(run)
    yield found[0]
    run.terminate()
    run.wait()
    reading.join()


@pytest.fixture
def worker(root: Path, scheduler: str, tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Starts a worker of the scheduler and returns the process to kill."""
    started: list[tuple[subprocess.Popen[str], threading.Thread]] = []

    def start() -> int:
        run = python(
            root, "-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1",
            "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path),
        )  # fmt: skip
        assert run.stdout is not None
        for line in run.stdout:
            if "Registered to" in line:
                break
        started.append((run, drain(run)))
        return run.pid

    yield start
    for run, reading in started:
        run.kill()
        run.wait()
        reading.join()


def drain(run: subprocess.Popen[str]) -> threading.Thread:
    """Read on, so that nobody waits for room in the pipe."""
    pipe = run.stdout
    assert pipe is not None

    def read() -> None:
        with pipe:
            pipe.read()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


@needs_dask
@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(
    root: Path, scheduler: str, worker: Callable[[], int], tmp_path: Path
) -> None:
    """One of two workers is killed during the sweep; the bytes are those of one process."""
    calm = answer(sweep(root, tmp_path / "calm.sqlite", "--jobs", "1", "--json"))
    worker()
    doomed = worker()
    store = tmp_path / "s.sqlite"
    run = sweep(root, store, "--cluster", scheduler, "--json")
    while not store.exists() or not rows(store):
        assert run.poll() is None
    os.kill(doomed, signal.SIGKILL)
    left = rows(store)
    assert answer(run) == calm
    assert left < rows(store)


def rows(store: Path) -> int:
    """How many are finished."""
    reading = sqlite3.connect(store, timeout=30.0)
    try:
        if not reading.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return 0
        return int(reading.execute("SELECT count(*) FROM outcomes").fetchone()[0])
    finally:
        reading.close()


@needs_dask
@pytest.mark.slow
def test_a_cluster_of_this_machine(root: Path, tmp_path: Path) -> None:
    """``--cluster local`` starts one, with the same bytes out."""
    calm = answer(sweep(root, tmp_path / "calm.sqlite", "--jobs", "1", "--json"))
    local = sweep(root, tmp_path / "s.sqlite", "--cluster", "local", "--jobs", "2", "--json")
    assert answer(local) == calm


@needs_dask
@pytest.mark.slow
def test_no_scheduler_there(root: Path, tmp_path: Path) -> None:
    """The address is named; the exit code is that of bad input."""
    run = sweep(root, tmp_path / "s.sqlite", "--cluster", "tcp://127.0.0.1:9")
    out, _ = run.communicate(timeout=120.0)
    assert run.returncode == Exit.BAD_INPUT
    assert "--cluster tcp://127.0.0.1:9: no scheduler answers there" in out
    assert "Traceback" not in out
