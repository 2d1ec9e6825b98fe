"""MLPerf training logs as measured runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.refusals import refusal

from simulator.importers.mlperf_training import read, set_files
from simulator.reading.measured.measurement_set import parse_set

Refused = Callable[..., list[str]]
DATA = Path(__file__).parent / "data"
EPOCHS = DATA / "mlperf-epochs-invented.log"
SAMPLES = DATA / "mlperf-samples-invented.log"


def altered(folder: Path, old: str, new: str) -> Path:
    """The log of epochs with every `old` changed."""
    text = EPOCHS.read_text(encoding="utf-8")
    assert old in text
    path = folder / "run.log"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_epochs_are_counted() -> None:
    """Four epochs of 60 s, evaluation apart: samples over the time spent training."""
    run = read(EPOCHS)
    rate = 4 * 1281167 / 240.0
    assert run.measured["throughput_samples_per_s"] == pytest.approx(rate)
    assert run.measured["step_time_s.mean"] == pytest.approx(3264 / rate)
    assert run.overrides == ("train.global_batch_size=3264",)
    assert run.labels == {"status": "success", "benchmark": "resnet", "submitter": "Example"}
    assert run.source.date == "2026-01-05"
    assert run.warnings == ()
    assert run.summary[0] == "time        4.333 min, status success"


def test_progress_in_samples_wins_over_a_free_form_rate() -> None:
    """3,840 samples in 20 minutes; tracked_stats counts tokens, and that is said."""
    run = read(SAMPLES)
    assert run.measured["throughput_samples_per_s"] == pytest.approx(3840 / 1200.0)
    assert "it counts something else" in run.warnings[0]


def test_epoch_numbers_may_be_samples(tmp_path: Path) -> None:
    """An epoch number in the thousands is a count of samples."""
    text = SAMPLES.read_text(encoding="utf-8").replace("samples_count", "epoch_num")
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    run = read(path)
    assert run.measured["throughput_samples_per_s"] == pytest.approx(3840 / 1200.0)
    assert "epoch_num, which counts samples here" in run.summary[-1]


def test_a_tracked_rate_is_better_than_none(tmp_path: Path) -> None:
    """Without progress the median of tracked_stats counts, with an uncertainty."""
    text = SAMPLES.read_text(encoding="utf-8").replace("samples_count", "other")
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    run = read(path)
    assert run.measured["throughput_samples_per_s"] == pytest.approx(5019.4)
    assert "may count tokens" in run.warnings[0]


def test_a_run_without_success_is_no_score(tmp_path: Path) -> None:
    """The rate is kept, the status is reported."""
    run = read(altered(tmp_path, '"status": "success"', '"status": "aborted"'))
    assert run.labels["status"] == "aborted"
    assert "the run ended with status 'aborted': its time is not a score" in run.warnings


def test_output_behind_the_object_is_skipped(tmp_path: Path) -> None:
    """Another process's text on the same line does no harm."""
    text = EPOCHS.read_text(encoding="utf-8").replace("}}\n", "}} [rank3] hello\n")
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    assert read(path).measured == read(EPOCHS).measured


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"run_stop"', '"other"', "is cut off: it has no run_stop"),
        ('"run_start"', '"other"', "has no run_start"),
        ('"epoch_stop"', '"run_stop"', "holds 5 runs"),
        ("1767600320000", "1767500000000", "ends 100060 s before it starts"),
        ('"key": "submission_org"', '"name": "x"', "run.log:4: has no 'key'"),
        ('"time_ms": 1767600320000', '"time_ms": -5', "time_ms: is negative, found -5"),
        ('"time_ms": 1767600320000', '"time_ms": "noon"', "time_ms: is not a number"),
        ('"value": 3264', '"value": "many"', "value: is not a number, found 'many'"),
        ('"value": 1281167', '"value": 1e28', "which nothing trains"),
        ('"value": 1281167', '"value": 1e-28', "which nothing trains"),
        ('"value": 1281167', '"value": 1e-320', "is not a possible number"),
        ('"epoch_stop"', '"other"', ""),
    ],
)
def test_broken_logs(tmp_path: Path, problems: Refused, old: str, new: str, message: str) -> None:
    """What is missing, twice there or impossible has a message."""
    path = altered(tmp_path, old, new)
    if message:
        assert any(message in told for told in problems(read, path))
    else:
        assert "epoch_num 4 x train_samples" in read(path).summary[-1]


@pytest.mark.parametrize("count", ["1e999", "1e308", "NaN", "Infinity", "1" + "0" * 400])
def test_a_count_without_end_is_none(tmp_path: Path, problems: Refused, count: str) -> None:
    """What JSON of other programs calls a number need not be one."""
    text = SAMPLES.read_text(encoding="utf-8")
    path = tmp_path / "run.log"
    path.write_text(text.replace('"samples_count": 384', f'"samples_count": {count}'), "utf-8")
    assert problems(read, path)


def test_a_log_that_says_no_samples(tmp_path: Path, problems: Refused) -> None:
    """Times without progress are not a rate."""
    lines = [
        ':::MLLOG {"key": "run_start", "time_ms": 1000, "value": null}',
        ':::MLLOG {"key": "run_stop", "time_ms": 2000, "value": null}',
    ]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert "doesn't say how many samples were trained" in problems(read, path)[0]


def test_other_text(tmp_path: Path, problems: Refused) -> None:
    """Old logs and other files are said to be none."""
    path = tmp_path / "run.log"
    path.write_text(":::MLPv0.5.0 resnet 154 (x) run_start\n", encoding="utf-8")
    assert "has no line with :::MLLOG" in problems(read, path)[0]


def test_runs_become_a_set() -> None:
    """Both files read back; rows of the same name are numbered."""
    run = read(EPOCHS)
    toml, rows = set_files([run, run], "resnet50-imagenet-p4d", "mine")
    short = rows.replace("train.global_batch_size", "label")
    found = parse_set(toml, short, "mine.toml", DATA)
    assert [row.id for row in found.rows] == ["mlperf-epochs-invented", "mlperf-epochs-invented~2"]
    assert found.rows[0].measured == run.measured


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0.0, 0.9), which=st.sampled_from([EPOCHS, SAMPLES]))
def test_cut_off_anywhere(tmp_path: Path, share: float, which: Path) -> None:
    """Without its run_stop a log is refused with one message for each line or end missing."""
    whole = which.read_bytes()
    path = tmp_path / "cut.log"
    path.write_bytes(whole[: int(share * len(whole))])
    assert len(refusal(read, path)) == 1


VALUES = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(
            [
                "run_start",
                "run_stop",
                "global_batch_size",
                "tracked_stats",
                "eval_start",
                "eval_stop",
            ]
        )
        | VALUES,
        "time_ms": st.integers(-10, 10**6) | VALUES,
        "value": VALUES | st.dictionaries(st.just("throughput"), VALUES),
        "metadata": VALUES
        | st.dictionaries(st.sampled_from(["epoch_num", "samples_count", "status"]), VALUES),
    },
)


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(EVENTS, min_size=1, max_size=6))
def test_any_events_are_read_or_refused(tmp_path: Path, events: list[dict[str, object]]) -> None:
    """Events of anything lead to a run or to messages."""
    path = tmp_path / "any.log"
    path.write_text("\n".join(f":::MLLOG {json.dumps(each)}" for each in events))
    assert "no problem told" not in refusal(read, path)
