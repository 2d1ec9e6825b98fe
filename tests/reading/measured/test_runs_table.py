"""A table of one's own runs is read without a file that describes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError, UnknownName
from simulator.reading.measured.measurement_set import load_set
from simulator.schema.measurement import MeasurementSet, Split

JOB = "resnet50-imagenet-p4d"


def read(tmp_path: Path, text: str) -> MeasurementSet:
    """The set that a table of runs of `JOB` is."""
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return load_set(str(path), JOB)


def test_columns_are_what_people_call_things(tmp_path: Path) -> None:
    """Short keys, a nickname, values with commas, units and per cent; notes are kept unread."""
    found = read(
        tmp_path,
        "workers,Batch size,machines,samples/s,step,utilization,note\n"
        '8,256,1,"3,900",120 ms,45%,first try\n',
    )
    (row,) = found.rows
    assert set(row.overrides) == {
        "input.workers=8",
        "train.batch_size=256",
        "hardware.count=1",
    }
    assert row.measured == {
        "throughput_samples_per_s": 3900.0,
        "step_time_s.mean": 0.12,
        "accelerator_utilization": 0.45,
    }
    assert row.split is Split.FIT
    assert row.id == "line 2"
    assert set(found.metrics) == set(row.measured)


def test_the_job_beside_a_table_is_no_description_of_it(tmp_path: Path) -> None:
    """my-job.csv with --scenario my-job.toml: what is said to be the job is the job."""
    job, table = tmp_path / "mine.toml", tmp_path / "mine.csv"
    job.write_text(f'schema = 1\nextends = "{JOB}"\n', encoding="utf-8")
    table.write_text("workers,samples/s\n8,100\n", encoding="utf-8")
    assert len(load_set(str(table), str(job)).rows) == 1


def test_a_table_that_is_not_there_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the same name and another ending does not stand for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(f'schema = 1\nextends = "{JOB}"\n', encoding="utf-8")
    with pytest.raises(UnknownName, match=r"no measurement set 'mine\.csv'"):
        load_set("mine.csv", "mine.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wokers,samples/s\n4,100\n", "did you mean 'workers'?"),
        ("workers,input.workers,samples/s\n4,4,100\n", "means the same as workers"),
        ("workers\n4\n", "has no measured column"),
        ("workers,samples/s\n4,fast\n", "write a number"),
        ("workers,utilization\n4,145%\n", "is above 1"),
        ("workers,samples/s\nfour,100\n", "input.workers"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """A misspelt or doubled column, nothing measured, and cells that are no values."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)


def test_a_table_alone_asks_what_it_is_of(tmp_path: Path) -> None:
    """Without a scenario nobody can predict its rows."""
    path = tmp_path / "mine.csv"
    path.write_text("workers,samples/s\n4,100\n", encoding="utf-8")
    with pytest.raises(InputError, match="--scenario"):
        load_set(str(path))


def test_runs_of_a_service_have_its_own_words(tmp_path: Path) -> None:
    """Requests at once and latencies as people call them; a word of jobs means nothing there."""
    path = tmp_path / "mine.csv"
    path.write_text("concurrency,tensor,ttft,tpot\n8,1,120 ms,9.5 ms\n", encoding="utf-8")
    found = load_set(str(path), "nightly-summaries")
    (row,) = found.rows
    assert found.serves
    assert set(row.overrides) == {"load.concurrency=8", "serving.tensor=1"}
    assert row.measured == {"first_token_s.mean": 0.12, "per_token_s.mean": 0.0095}
    path.write_text("workers,ttft\n8,120 ms\n", encoding="utf-8")
    with pytest.raises(InputError, match="workers"):
        load_set(str(path), "nightly-summaries")
