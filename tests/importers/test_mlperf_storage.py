"""Result folders of MLPerf Storage as rows."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.importing import ANSWERS, DATA, call, refused

from converters.converter import import_table
from simulator.importers import mlperf_storage
from simulator.importers.mlperf_storage import COLUMNS

REAL = DATA / "mlperf-storage-v1-real"
V2 = DATA / "mlperf-storage-v2-invented"
V05 = DATA / "mlperf-storage-v05-invented"


def row(folder: Path, **names: str) -> dict[str, str]:
    """The only row of a folder."""
    rows = list(csv.DictReader(io.StringIO(mlperf_storage.read([folder], **names).text)))
    assert len(rows) == 1
    return rows[0]


def broken(folder: Path, name: str, change: Callable[[Any], object]) -> Path:
    """A copy of the real run with one of its JSON files changed."""
    copy = folder / "run"
    shutil.copytree(REAL, copy)
    data = json.loads((copy / name).read_text(encoding="utf-8"))
    change(data)
    (copy / name).write_text(json.dumps(data), encoding="utf-8")
    return copy


def test_a_real_run_of_version_1() -> None:
    """A run of DLIO 2.0.0 (PyPI) on two ranks: what it reported, and what its files describe."""
    found = row(REAL)
    expected = {
        "version": "1.0",
        "workload": "unet3d",
        "accelerator": "h100",
        "num_accelerators_total": "2",
        "num_hosts": "1",
        "au_pct_mean": "73.789409",
        "au_pct_epochs": "73.394;74.185",
        "throughput_samples_s": "251.12745",
        "throughput_MiB_s": "9.5797518",
        "num_files_train": "64",
        "record_length_bytes": "40000",
        "batch_size": "4",
        "read_threads": "1",
        "computation_time_s": "0.02",
        "epochs": "2",
        "data_loader": "pytorch",
        "pass": "fail",
        "steps_per_epoch": "8",
        "ideal_throughput_samples_s": "400",
    }
    assert {key: found[key] for key in expected} == expected
    assert found["au_definition"].startswith("v1.0")
    assert "workload=unet3d_h100" in found["overrides"]


def test_the_first_step_is_read_from_the_ranks() -> None:
    """The mean over ranks and epochs of what the first step took."""
    times = [
        json.loads((REAL / f"{rank}_output.json").read_text())[epoch]["proc"]["block1"][0]
        for rank in (0, 1)
        for epoch in ("1", "2")
    ]
    assert float(row(REAL)["first_step_s_est"]) == pytest.approx(sum(times) / 4)


def test_a_run_of_version_2() -> None:
    """Other folders; division, submitter and system from those of a submission; NaN unread."""
    found = row(V2)
    assert found["version"] == "2.0"
    assert found["au_definition"].startswith("v2.0+")
    assert (found["division"], found["submitter"], found["system"]) == ("closed", "Acme", "array1")
    assert found["run_id"] == "training/unet3d/run/20260105_100000"
    assert found["accelerators_per_host"] == "8"
    assert float(found["throughput_over_ideal"]) == pytest.approx(160.2 * 0.323 / 56)


def test_a_run_of_version_05() -> None:
    """The oldest layout has no configuration: what it lacks stays empty and is said."""
    found = mlperf_storage.read([V05])
    cells = row(V05)
    assert cells["version"] == "0.5"
    assert cells["au_pct_mean"] == "95.5"
    assert cells["batch_size"] == ""
    assert cells["num_hosts"] == ""
    assert any("no config.yaml" in warning for warning in found.warnings)


def test_names_given_win() -> None:
    """``--system``, ``--submitter`` and ``--version`` replace what folders tell."""
    found = row(V2, system="mine", submitter="us", version="3.0")
    assert (found["system"], found["submitter"], found["version"]) == ("mine", "us", "3.0")


def test_a_tree_of_runs_is_a_table(tmp_path: Path) -> None:
    """Every summary below a folder is a row, written whole."""
    for name, source in (("a", REAL), ("b", V05)):
        shutil.copytree(source, tmp_path / "in" / name)
    outcome = call("mlperf-storage", tmp_path / "in", "-o", tmp_path / "rows.csv")
    assert outcome.code == 0
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()))
    assert [each["version"] for each in rows] == ["1.0", "0.5"]
    assert set(rows[0]) == set(COLUMNS)
    assert "125.56" in outcome.out
    assert "convert.py mlperf_storage" in outcome.out


def test_the_rows_become_a_measurement_set(tmp_path: Path) -> None:
    """What is written is what ``evidence/convert.py`` takes."""
    assert call("mlperf-storage", REAL, V2, "-o", tmp_path / "rows.csv").code == 0
    made = import_table("mlperf_storage", tmp_path / "rows.csv", tmp_path / "set.toml")
    assert [row.excluded for row in made.found.rows] == ["", ""]


def test_a_missing_utilization_is_said(tmp_path: Path) -> None:
    """A run may report NaN: the cell stays empty."""
    folder = broken(
        tmp_path,
        "summary.json",
        lambda d: d["metric"].update(train_au_mean_percentage=float("nan"), train_au_percentage=[]),
    )
    found = mlperf_storage.read([folder])
    assert row(folder)["au_pct_mean"] == ""
    assert any("reports no utilization" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("summary.json", lambda d: d.pop("metric"), "has no 'metric'; the run did not finish"),
        ("summary.json", lambda d: d.pop("num_accelerators"), "has no 'num_accelerators'"),
        (
            "summary.json",
            lambda d: d["metric"].update(train_throughput_mean_samples_per_second=-1.0),
            "train_throughput_mean_samples_per_second: is negative",
        ),
        (
            "summary.json",
            lambda d: d["metric"].update(train_au_mean_percentage=7378.9),
            "train_au_mean_percentage: is above 100.5",
        ),
        (
            "summary.json",
            lambda d: d["metric"].update(train_au_mean_percentage=0.7379),
            "has a mean utilization of 0.7379%, but epochs of 73.79% on average",
        ),
        (
            "summary.json",
            lambda d: d["metric"].update(train_io_mean_MB_per_second=10.045),
            "reports 10.04 MiB/s, but 251.1 samples/s of 40000 B are 9.58 MiB/s",
        ),
        (
            "summary.json",
            lambda d: d["metric"].update(
                train_au_mean_percentage=None, train_throughput_mean_samples_per_second=None
            ),
            "has neither a utilization nor a throughput",
        ),
        (
            "0_output.json",
            lambda d: d["1"]["proc"].update(block1=[60.0] * 8),
            "has steps of 480 s in all, but the epoch took 0.33 s",
        ),
        ("0_output.json", lambda d: d["1"]["load"]["block1"].__setitem__(3, -0.1), "is negative"),
        ("1_output.json", lambda d: d["2"]["load"]["block1"].pop(), "has 8 steps, but 7 were"),
        ("1_output.json", lambda d: d["2"].pop("proc"), "2: has no 'proc'"),
        ("1_output.json", lambda d: [d.pop("1"), d.pop("2")], "notes no step"),
    ],
)
def test_one_message_says_what_is_wrong(
    name: str, change: Callable[[Any], object], message: str, tmp_path: Path
) -> None:
    """Each mistake is one message; nothing is written."""
    lines = refused("mlperf-storage", broken(tmp_path, name, change), "-o", tmp_path / "o.csv")
    assert len(lines) == 1
    assert message in lines[0]
    assert not (tmp_path / "o.csv").exists()


def test_problems_of_all_runs_are_told(tmp_path: Path) -> None:
    """Two broken runs are two messages, each with its file."""
    for name in ("a", "b"):
        broken(tmp_path / name, "summary.json", lambda d: d.pop("metric"))
    lines = refused("mlperf-storage", tmp_path)
    assert len(lines) == 2
    assert "/a/run/summary.json" in lines[0]


def test_folders_without_a_run_are_refused(tmp_path: Path) -> None:
    """An empty folder, a file and nothing at all are distinguished."""
    assert "holds no summary.json" in refused("mlperf-storage", tmp_path)[0]
    assert "is a file" in refused("mlperf-storage", REAL / "summary.json")[0]
    assert "does not exist" in refused("mlperf-storage", tmp_path / "none")[0]


@settings(max_examples=25, deadline=None)
@given(
    share=st.floats(0.0, 1.0),
    name=st.sampled_from(
        ["summary.json", "0_output.json", "per_epoch_stats.json", "configs/config.yaml"]
    ),
)
def test_a_prefix_is_read_or_refused(share: float, name: str) -> None:
    """A file of the folder cut off anywhere never ends in a traceback."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run"
        shutil.copytree(REAL, copy)
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[: int(share * len(content))])
        outcome = call("mlperf-storage", copy)
        assert outcome.code in ANSWERS, outcome
        assert "Traceback" not in outcome.err
