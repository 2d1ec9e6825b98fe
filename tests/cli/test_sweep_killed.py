"""``plan sweep`` is killed, interrupted and run twice at once: nothing finished is lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.search import BASE, SHORT

from simulator.cli.output import Exit

Spawn = Callable[..., subprocess.Popen[str]]
"""A fixture that starts ``plan``."""

OVER = ("input.workers=1..6", "train.batch_size=16,24,32,40,48,56,64")
CANDIDATES = 42


def arguments(store: Path, *more: str) -> list[str]:
    """A sweep of the short scenario into a store."""
    given = [part for value in SHORT for part in ("--set", value)]
    over = [part for value in OVER for part in ("--over", value)]
    return ["sweep", BASE, *given, *over, "--exhaustive", "--store", str(store), *more]


def rows(store: Path) -> dict[str, str]:
    """All of a store; each key once, or this fails."""
    if not store.exists():
        return {}
    reading = sqlite3.connect(store, timeout=30.0)
    try:
        if not reading.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return {}
        assert reading.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        found = reading.execute("SELECT key, outcome FROM outcomes").fetchall()
    finally:
        reading.close()
    assert len({key for key, _ in found}) == len(found)
    return dict(found)


def finished(run: subprocess.Popen[str]) -> tuple[str, str]:
    """Output of a run that ends by itself."""
    out, err = run.communicate(timeout=300.0)
    assert run.returncode == Exit.FINE, err
    return out, err


def kill(run: subprocess.Popen[str], *, alone: bool) -> None:
    """End a run without warning, with all its processes or before them."""
    if alone:
        run.send_signal(signal.SIGKILL)
    else:
        os.killpg(run.pid, signal.SIGKILL)
    run.communicate()


def survives(folder: Path, spawn: Spawn, kills: int, seed: int) -> None:
    """Kill a sweep again and again; whenever it has finished, compare and begin anew."""
    draw, done, completed = random.Random(seed), 0, 0  # noqa: S311 - moments, not secrets
    calm_table = folder / "calm.csv"
    started = time.monotonic()
    calm, _ = finished(spawn(*arguments(folder / "calm.sqlite", "--csv", str(calm_table))))
    usual = time.monotonic() - started
    while done < kills or not completed:
        store, table = folder / f"{completed}.sqlite", folder / f"{completed}.csv"
        before: dict[str, str] = {}
        for _ in range(draw.randint(2, 6)):
            jobs = str(draw.randint(1, 2))
            run = spawn(*arguments(store, "--jobs", jobs), start_new_session=True)
            time.sleep(draw.uniform(0.2, 1.0) * usual)
            kill(run, alone=draw.random() < 0.3)
            done += 1
            after = rows(store)
            assert before.items() <= after.items()
            before = after
        out, _ = finished(spawn(*arguments(store, "--csv", str(table))))
        assert out == calm
        assert table.read_bytes() == calm_table.read_bytes()
        assert before.items() <= rows(store).items()
        assert len(rows(store)) == CANDIDATES
        completed += 1


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path: Path, spawn: Spawn) -> None:
    """A dozen kills at random moments: no row lost, none twice, every end the same."""
    survives(tmp_path, spawn, kills=12, seed=2)


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, spawn: Spawn) -> None:
    """The message counts what is kept and names the store; the code is that of an interrupt."""
    store = tmp_path / "s.sqlite"
    run = spawn(*arguments(store, "--jobs", "2"), start_new_session=True)
    while not rows(store):
        assert run.poll() is None
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=60.0)
    if run.returncode == Exit.FINE:
        pytest.skip("it was done before the signal came")
    assert run.returncode == Exit.INTERRUPTED
    assert "stopped; " in err
    assert f"stored in {store}; the same command continues from there" in err
    assert "Traceback" not in err
    assert rows(store)


@pytest.mark.slow
def test_two_sweeps_on_one_store(tmp_path: Path, spawn: Spawn) -> None:
    """Both end well with the same output, and every row is there once."""
    store = tmp_path / "s.sqlite"
    both = [spawn(*arguments(store, "--jobs", "1")) for _ in range(2)]
    first, second = (finished(run) for run in both)
    assert first == second
    assert len(rows(store)) == CANDIDATES
