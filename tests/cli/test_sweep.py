"""``plan sweep``: what it prints and writes, what it refuses, and with which exit code."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.search import BASE, SHORT

from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""

ON = [part for value in SHORT for part in ("--set", value)]
PRICED = ["--set", "cost.price=$2/h"]
OVER = ["--over", "input.workers=1..4", "--over", "train.batch_size=32,64"]


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a store of its own."""
    monkeypatch.setenv("PLAN_STORE", str(tmp_path / "results.sqlite"))


@pytest.fixture
def sweep(plan: Run) -> Run:
    """Sweep the short scenario in this process."""

    def run(*arguments: str) -> Any:
        return plan("sweep", BASE, *ON, *PRICED, "--jobs", "1", *arguments)

    return run


def test_report(sweep: Run, golden: Callable[[str, str], None]) -> None:
    """Counts, reasons, the front and the best, as committed."""
    outcome = sweep(*OVER, "--top", "3", "--margin", "20%", "--where", "input.workers != 3")
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    golden("sweep-short", outcome.out)


def test_listed_prices_carry_their_dates(plan: Run, sweep: Run) -> None:
    """Those of the machines in the tables; a price that the user states has none."""
    found = plan("sweep", "cpu-starved-p4d", "--over", "hardware.count=1,2", "--jobs", "1")
    _, _, told = found.out.partition("\nPrices\n")
    assert told.strip() == "ml.p4d.24xlarge on-demand in us-east-1, 2022-10"
    stated = sweep("--over", "input.workers=1,2").out.partition("\nPrices\n")[2]
    assert "ebs-gp3" in stated
    assert "instance" not in stated


def test_json_holds_every_candidate_in_order(sweep: Run) -> None:
    """Settings, status, reason and metrics; the front by index."""
    tree = json.loads(sweep("--over", "input.workers=1..24", *OVER[2:], "--json").out)
    found = tree["candidates"]
    assert [one["candidate"] for one in found] == list(range(48))
    assert found[3]["settings"] == {"input.workers": 2, "train.batch_size": 64}
    assert sum(tree["counts"].values()) == 48
    best = min(
        (one for one in found if one["status"] == "predicted"),
        key=lambda one: one["metrics"]["total_time_s"],
    )
    assert tree["front"][0]["candidate"] == best["candidate"]
    screened = [one for one in found if one["status"] == "screened"]
    assert screened
    assert all(one["reason"] and one["metrics"]["cost.usd_per_h"] == 2.0 for one in screened)


def test_files(sweep: Run, tmp_path: Path) -> None:
    """CSV and Parquet hold the same rows as --format csv, and floats to the last bit."""
    pytest.importorskip("pyarrow")
    table, frame = tmp_path / "all.csv", tmp_path / "all.parquet"
    printed = sweep(*OVER, "--csv", str(table), "--parquet", str(frame), "--format", "csv").out
    assert table.read_text(encoding="utf-8") == printed
    rows = list(csv.DictReader(io.StringIO(printed)))
    back = pd.read_parquet(frame)
    assert [row["index"] for row in rows] == [str(index) for index in back.index]
    for row, (_, other) in zip(rows, back.iterrows(), strict=True):
        assert row["status"] == other["status"]
        if row["status"] == "predicted":
            assert float(row["total_time_s"]) == other["total_time_s"]
            assert float(row["host_ram_bytes.items.workers"]) > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_plot(sweep: Run, tmp_path: Path, kind: str) -> None:
    """Each format is written, and the same sweep gives the same bytes."""
    one, other = tmp_path / f"one.{kind}", tmp_path / f"other.{kind}"
    for path in (one, other):
        assert sweep(*OVER, "--plot", str(path)).code == Exit.FINE
    assert one.read_bytes() == other.read_bytes()
    assert one.read_bytes()[:4] in {b"\x89PNG", b"<?xm", b"%PDF"}


def test_markdown_is_the_front(sweep: Run) -> None:
    """One line for each candidate of the front, under the keys and the objectives."""
    blocks = sweep(*OVER, "--format", "markdown").out.split("\n\n")
    title = next(block for block in blocks if block.startswith("## Pareto front"))
    front = blocks[blocks.index(title) + 1].splitlines()
    assert front[0].startswith("| candidate | workers | batch_size | run time |")
    assert len(front) == 3


def test_a_sweep_section(plan: Run, tmp_path: Path) -> None:
    """Axes come from the file; --over takes the place of an axis with its key."""
    text = f'schema = 1\nextends = "{BASE}"\n[data]\nsamples = 4096\n[train]\nepochs = 1\n'
    path = tmp_path / "mine.toml"
    path.write_text(
        text + '[sweep.over]\n"input.workers" = [1, 2]\n"train.batch_size" = "32, 64"\n',
        encoding="utf-8",
    )
    full = json.loads(plan("sweep", str(path), "--jobs", "1", "--json").out)
    assert full["keys"] == ["input.workers", "train.batch_size"]
    assert len(full["candidates"]) == 4
    fewer = plan("sweep", str(path), "--jobs", "1", "--json", "--over", "input.workers=3").out
    settings = [one["settings"] for one in json.loads(fewer)["candidates"]]
    assert [one["input.workers"] for one in settings] == [3, 3]


def test_drawn_points(sweep: Run) -> None:
    """So many as asked for, of a continuous range, and the same for the same seed."""
    drawn = ["--over", "input.decode=1 ms..9 ms", "--sample", "sobol", "--points", "5", "--json"]
    one, same, other = sweep(*drawn).out, sweep(*drawn).out, sweep(*drawn, "--seed", "7").out
    assert one == same != other
    assert len(json.loads(one)["candidates"]) == 5


def test_objectives_can_be_chosen(sweep: Run) -> None:
    """A metric by its usual way, and an expression with the way said."""
    out = sweep(
        *("--over", "input.workers=1..4", "--by", "throughput_samples_per_s"),
        *("--by", "min:host_ram_bytes.total + 0", "--json"),
    ).out
    tree = json.loads(out)
    assert [one["sense"] for one in tree["objectives"]] == ["maximize", "minimize"]
    # More workers are faster and take more memory, so each is on the front.
    assert [one["candidate"] for one in tree["front"]] == [3, 2, 1, 0]


def test_nothing_can_run(sweep: Run) -> None:
    """The exit code is 1, and the commonest reason is told."""
    outcome = sweep("--over", "train.batch_size=3000000,4000000")
    assert outcome.code == Exit.DOES_NOT_FIT
    assert "2 infeasible" in outcome.out
    assert "no candidate can run; 2 infeasible, most often: " in outcome.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing to vary"),
        (["--over", "input.worker=1,2"], "input.workers"),
        (["--over", "input.workers=1", "--by", "cost.usd"], "cost.usd_"),
        (["--over", "input.workers=1", "--by", "bottleneck"], "is not a number"),
        (["--over", "input.workers=1", "--by", "total_time_s + 1"], "min:"),
        (["--over", "input.workers=1", "--by", "mni:total_time_s"], "'min:'"),
        (["--over", "input.workers=1", "--margin", "much"], "write it like 5%"),
        (["--over", "input.workers=1", "--where", "total_time_s"], "is not a condition"),
        (["--over", "input.workers=1", "--points", "3"], "--sample"),
        (["--over", "input.workers=1", "--plot", "x.doc"], "png"),
        (["--over", "input.workers=1", "--csv", "no/such/folder.csv"], "--csv"),
    ],
)
def test_mistakes(sweep: Run, arguments: list[str], told: str) -> None:
    """One message, nothing on standard output, exit code 2."""
    outcome = sweep(*arguments)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert told in outcome.err


def test_a_store_that_cannot_be_used(sweep: Run, tmp_path: Path) -> None:
    """It is refused before anything is predicted."""
    path = tmp_path / "notes.txt"
    path.write_text("no database, however long one looks at it\n" * 40, encoding="utf-8")
    outcome = sweep(*OVER, "--store", str(path))
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert str(path) in outcome.err


def test_a_home_that_cannot_be_written(
    sweep: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a store of its own a search goes on, says so, and answers the same."""
    kept = sweep("--over", "input.workers=1,2")
    monkeypatch.delenv("PLAN_STORE")
    (tmp_path / "cache").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outcome = sweep("--over", "input.workers=1,2")
    assert (outcome.code, outcome.out) == (Exit.FINE, kept.out)
    assert "continuing without it: results are not stored" in outcome.err


def test_a_damaged_row_is_predicted_again(sweep: Run, tmp_path: Path) -> None:
    """It stops nobody: the answer is the same, and its loss is told once."""
    over = ("--over", "input.workers=1,2")
    first = sweep(*over)
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as store:
        store.execute("UPDATE outcomes SET outcome = 'no JSON'")
        store.commit()
    again = sweep(*over)
    assert (again.code, again.out) == (Exit.FINE, first.out)
    assert "2 damaged rows of" in again.err
    assert "were predicted again" in again.err
    assert sweep(*over).err == ""


@pytest.mark.slow
def test_the_same_bytes_at_any_number_of_processes(
    spawn: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """One, two and three processes, each with a store of its own."""
    outs = set()
    for jobs in ("1", "2", "3"):
        store = str(tmp_path / f"{jobs}.sqlite")
        run = spawn("sweep", BASE, *ON, *PRICED, *OVER, "--json", "--jobs", jobs, "--store", store)
        out, err = run.communicate(timeout=120.0)
        assert (run.returncode, err) == (Exit.FINE, "")
        outs.add(out)
    assert len(outs) == 1


def test_what_is_not_known_ranks_nothing(plan: Run) -> None:
    """No profile states the power of this accelerator, so energy is refused as what to rank by."""
    outcome = plan(
        *("sweep", "gpus-under-one-switch", "--set", "train.precision=bf16"),
        *("--set", "hardware.machine=instance/aws/trn1.32xlarge"),
        *("--set", "hardware.storage=storage/ebs-gp3", "--over", "input.workers=2,4"),
        *("--by", "cost.energy_j_per_step", "--exhaustive"),
    )
    assert outcome.code == Exit.BAD_INPUT
    assert "cost.energy_j_per_step is unknown for all configurations" in outcome.err
