"""``plan calibrate``, and ``--calibration`` of the verbs that predict."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.calibration import fitting
from simulator.cli.output import Exit
from simulator.predict import predict
from simulator.reading.scenario import load_scenario

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or arranges how it runs."""

BASE = "cpu-starved-p4d"
TRUTH = 0.7
SET = """\
schema = 1
name = "own"
title = "A made-up set"
data = "own.csv"
base = "cpu-starved-p4d"
family = "own"
source = "made up"
date = "2026-11"
metrics = ["step_time_s.mean"]
split = "given"
configuration = ["input.workers"]
"""


@pytest.fixture(scope="module")
def rows() -> list[str]:
    """Lines of a table, as measured on a machine whose cores are slower than described."""
    lines = ["id,input.workers,train.epochs,measured.step_time_s.mean,split"]
    for workers, noise, split in (
        (1, 1.01, "fit"),
        (2, 0.99, "fit"),
        (4, 1.0, "fit"),
        (8, 9.0, "test"),
    ):
        overrides = (f"input.workers={workers}", "train.epochs=1", f"calibration.cpu={TRUTH}")
        step = predict(load_scenario(BASE, overrides=overrides)).timing.step_time.mean
        lines.append(f"w{workers},{workers},1,{step * noise},{split}")
    return lines


@pytest.fixture
def own(tmp_path: Path, rows: list[str]) -> Path:
    """A set of one's own."""
    path = tmp_path / "own.toml"
    path.write_text(SET, encoding="utf-8")
    (tmp_path / "own.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Callable[[], set[str]]]:
    """Names of what lies beside the set, hidden files too."""

    def names() -> set[str]:
        return {path.name for path in tmp_path.iterdir()}

    return names


@pytest.mark.slow
def test_from_rows_to_a_calibrated_prediction(plan: Run, own: Path) -> None:
    """Fit, write an overlay, predict with it; a file that exists is only replaced by force."""
    over = own.with_name("over.toml")
    arguments = ("calibrate", str(own), "--fit", "cpu", "--folds", "2", "--jobs", "1")
    outcome = plan(*arguments, "-o", str(over))
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    assert "Calibration on 3 rows of 3 configurations in own" in outcome.out
    assert "80% interval" in outcome.out
    assert f"--calibration{over}" in "".join(outcome.out.split())
    said = json.loads(plan("simulate", BASE, "--calibration", str(over), "--json").out)
    (note,) = [a for a in said["assumptions"] if a["what"] == "calibration.cpu, calibrated"]
    value = note["value"].split()[0]
    assert float(value) == pytest.approx(TRUTH, rel=0.02)
    assert "fitted to own: 3 rows" in note["source"]
    same = json.loads(plan("simulate", BASE, "--set", f"calibration.cpu={value}", "--json").out)
    assert said["step_time_s"] == same["step_time_s"]
    explained = plan("explain", BASE, "--calibration", str(over))
    assert "calibration.cpu" in explained.out
    refused = plan(*arguments, "-o", str(over))
    assert (refused.code, refused.out) == (Exit.BAD_INPUT, "")
    assert "--force" in refused.err


@pytest.mark.slow
def test_json_is_one_object(plan: Run, own: Path) -> None:
    """Numbers in SI units; an existing file is replaced when forced."""
    over = own.with_name("over.toml")
    over.write_text("old", encoding="utf-8")
    outcome = plan(
        *("calibrate", str(own), "--fit", "cpu", "--jobs", "1", "--json"),
        *("--folds", "2", "-o", str(over), "--force"),
    )
    tree = json.loads(outcome.out)
    assert (tree["schema"], tree["rows"], tree["folds"], tree["written"]) == (1, 3, 2, str(over))
    (one,) = tree["parameters"]
    assert one["p10"] < one["value"] < one["p90"]
    assert {r["row"] for r in tree["residuals"]} == {"w1", "w2", "w4"}
    assert tree["errors"]["fitted"]["mean"] < tree["errors"]["before"]["mean"]
    assert over.read_text(encoding="utf-8").startswith("# Written by plan calibrate")


def test_ctrl_c_leaves_nothing(
    plan: Run, own: Path, files: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted fit ends quietly, without an overlay or a part of one."""
    before, calls = files(), []

    def interrupted(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return predict(*arguments, **options)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(fitting, "predict", interrupted)
    outcome = plan(
        "calibrate", str(own), "--fit", "cpu", "--jobs", "1", "-o", str(own.with_name("o.toml"))
    )
    assert (outcome.code, outcome.out) == (Exit.INTERRUPTED, "")
    assert len(calls) == 5
    assert files() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--start", "cpu=1"), "say what to fit"),
        (("--fit", "cpus"), "is not a key of a scenario"),
        (("--fit", "input.workers"), "is set by|counts, names and switches"),
        (("--fit", "train.epochs"), "is set by 3 of 3 rows"),
        (("--fit", "cpu", "--low", "cpu=2"), "does not lie between its bounds"),
        (("--fit", "cpu", "--low", "cpu"), "has no value"),
        (("--fit", "cpu", "--start", "storage=1"), "is not fitted"),
        (("--fit", "cpu", "-o", "none/over.toml"), "folder that does not exist"),
        (("--fit", "cpu", "-o", "."), "is a folder"),
    ],
)
def test_a_mistake_is_one_message(
    plan: Run, own: Path, files: Callable[[], set[str]], arguments: tuple[str, ...], said: str
) -> None:
    """Exit code 2, no traceback, nothing written."""
    before = files()
    outcome = plan("calibrate", str(own), *arguments)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert any(part in outcome.err for part in said.split("|"))
    assert "Traceback" not in outcome.err
    assert files() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((",fit", ",test"), "no row that may be fitted to"),
        (("w1,1,1,", "w1,1,1,-"), "own.csv:2: measured.step_time_s.mean"),
        (("measured.step_time_s.mean", "step"), "no measured column"),
    ],
)
def test_a_bad_set_leaves_nothing(
    plan: Run, own: Path, files: Callable[[], set[str]], change: tuple[str, str], said: str
) -> None:
    """The set's mistakes are named and no overlay appears."""
    table = own.with_suffix(".csv")
    text = table.read_text(encoding="utf-8")
    assert change[0] in text
    table.write_text(text.replace(*change), encoding="utf-8")
    before = files()
    over = own.with_name("over.toml")
    outcome = plan("calibrate", str(own), "--fit", "cpu", "--jobs", "1", "-o", str(over))
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert any(part in outcome.err for part in said.split("|"))
    assert files() == before


@pytest.mark.parametrize("verb", ["simulate", "explain"])
def test_an_overlay_that_is_none_is_refused(plan: Run, own: Path, verb: str) -> None:
    """A missing file, and a file that is something else."""
    missing = plan(verb, BASE, "--calibration", str(own.with_name("none.toml")))
    assert (missing.code, missing.out) == (Exit.BAD_INPUT, "")
    assert "does not exist" in missing.err
    other = plan(verb, BASE, "--calibration", str(own))
    assert (other.code, other.out) == (Exit.BAD_INPUT, "")
    assert "own.toml" in other.err


@pytest.mark.slow
def test_a_few_runs_need_no_second_file(plan: Run, rows: list[str], tmp_path: Path) -> None:
    """A table of runs and the job: what explains them is found, fitted and written."""
    table = tmp_path / "mine.csv"
    plain = [",".join(line.split(",")[1:4]) for line in rows[:-1]]
    plain[0] = "workers,train.epochs,step"
    table.write_text("\n".join(plain) + "\n", encoding="utf-8")
    over = tmp_path / "over.toml"
    outcome = plan("calibrate", str(table), "--scenario", BASE, "--jobs", "1", "-o", str(over))
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    assert "What explains these runs" in outcome.out
    assert "calibration.cpu" in over.read_text(encoding="utf-8")


SERVICE = """\
schema = 1
mode = "serve"

[hardware]
machine = "instance/lambda/gpu_1x_h100_sxm5"

[model]
name = "llama-3.1-8b"

[load]
arrivals = "closed"
concurrency = 1
requests = 8
prompt = { tokens = 500 }
output = { tokens = 20 }
"""


def test_runs_of_a_service_fit_its_factors(plan: Run, tmp_path: Path) -> None:
    """A table of latencies leads to a service that extends the first and is nearer to them."""
    base, table, fitted = (tmp_path / name for name in ("s.toml", "runs.csv", "fitted.toml"))
    base.write_text(SERVICE, encoding="utf-8")
    table.write_text("concurrency,ttft,tpot\n1,80 ms,12 ms\n4,150 ms,15 ms\n", encoding="utf-8")
    arguments = ("calibrate", str(table), "--scenario", str(base))
    outcome = plan(*arguments, "-o", str(fitted))
    assert outcome.code == Exit.FINE
    assert "calibration.request" in outcome.out
    assert 'extends = "s.toml"' in fitted.read_text(encoding="utf-8")
    times = [
        json.loads(plan("simulate", str(path), "--json").out)["per_token_s"]["mean"]
        for path in (base, fitted)
    ]
    assert times[0] < times[1] < 0.0125
    refused = plan(*arguments, "--fit", "cpu")
    assert "--fit is not available for services" in refused.err
