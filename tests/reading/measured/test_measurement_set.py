"""Measurement sets: what a row becomes, how sets are split, and every mistake with its place."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.catalogue import each

from simulator.errors import InputError, UnknownName
from simulator.reading.measured.measurement_set import load_set, parse_set
from simulator.reading.shipped import set_folder
from simulator.schema.measurement import Baseline, MeasurementSet, Split

TOML = """
schema = 1
name = "mine"
title = "A test"
data = "mine.csv"
base = "resnet50-m40"
source = "measured by hand"
date = "2026-11"
metrics = ["step_time_s.mean"]
split = "given"
"""
CSV = """id,machine,input.workers,train.batch_size,measured.step_time_s.mean,split
a,m1,1,,0.2,fit
b,m2,2,16,0.1,test
"""


def read(toml: str = TOML, rows: str = CSV, folder: Path = Path()) -> MeasurementSet:
    """A set from texts."""
    return parse_set(toml, rows, "mine.toml", folder)


def refused(toml: str = TOML, rows: str = CSV) -> list[str]:
    """The messages that texts are refused with."""
    with pytest.raises(InputError) as caught:
        read(toml, rows)
    return [str(problem) for problem in caught.value.problems]


def test_a_row_is_a_base_with_overrides() -> None:
    """Keys become overrides, empty cells leave the base, plain columns are labels."""
    first, second = read().rows
    assert first.overrides == ("input.workers=1",)
    assert second.overrides == ("input.workers=2", "train.batch_size=16")
    assert Path(first.base).name == "resnet50-m40.toml"
    assert (first.measured, first.labels) == ({"step_time_s.mean": 0.2}, {"machine": "m1"})
    assert (first.split, second.split) == (Split.FIT, Split.TEST)
    assert (first.family, first.source) == ("mine", "measured by hand")


def test_counts_may_be_written_as_fractions() -> None:
    """Other programs write 8.0 for 8 where a column has gaps; a count that is none is refused."""
    first, second = read(rows=CSV.replace(",1,,", ",1.0,,").replace(",2,16,", ",2.00,16.0,")).rows
    assert first.overrides == ("input.workers=1",)
    assert second.overrides == ("input.workers=2", "train.batch_size=16")
    for cell in ("1.5", "1.", "01.0", "1.0.0", "1e0", "9999.0"):
        assert (
            "mine.csv:2: input.workers: is " in refused(rows=CSV.replace(",1,,", f",{cell},,"))[0]
        )


def test_a_number_that_may_be_a_fraction_stays_as_it_is() -> None:
    """Only counts lose their zero fraction."""
    rows = CSV.replace("input.workers", "train.epochs").replace(",1,,", ",1.0,,")
    assert read(rows=rows).rows[0].overrides == ("train.epochs=1.0",)


def test_cells_win_over_the_set() -> None:
    """A row's own base, family and source replace those of the set; a reason excludes it."""
    rows = (
        "id,base,family,source,exclude,split,measured.first_step_s,measured.step_time_s.mean\n"
        "a,resnet18-imagenet-serial,f,s,,test,3,1\n"
        "b,,,,too noisy,,,\n"
    )
    first, second = read(rows=rows).rows
    assert Path(first.base).name == "resnet18-imagenet-serial.toml"
    assert (first.family, first.source) == ("f", "s")
    assert first.measured == {"first_step_s": 3.0, "step_time_s.mean": 1.0}
    assert (second.excluded, second.measured) == ("too noisy", {})


def test_a_base_beside_the_set_comes_first(tmp_path: Path) -> None:
    """A scenario file in the set's folder hides a shipped one of its name."""
    own = tmp_path / "resnet50-m40.toml"
    own.write_text("schema = 1\n", encoding="utf-8")
    assert {row.base for row in read(folder=tmp_path).rows} == {str(own)}


def test_configurations_are_split_by_their_hash() -> None:
    """All rows of one configuration fall on the side that SHA-256 says; anchors are fit."""
    toml = TOML.replace('"given"', '"configuration"')
    toml += 'configuration = ["machine", "input.workers"]\n'
    cells = [(f"m{i}", w) for i in range(40) for w in (1, 2)]
    lines = [f"{m}-{w}-{n},{m},{w},0.1," for m, w in cells for n in range(2)]
    head = "id,machine,input.workers,measured.step_time_s.mean,anchor\n"
    rows = read(toml, head + "\n".join([*lines, "z,m1,1,0.1,yes"])).rows
    assert rows[-1].split is Split.FIT
    for row, (machine, workers) in zip(rows[::2], cells, strict=False):
        digest = hashlib.sha256(f"{machine}|{workers}".encode()).hexdigest()
        expected = Split.TEST if int(digest, 16) % 10 < 4 else Split.FIT
        assert row.split is expected
    assert [r.split for r in rows[:-1:2]] == [r.split for r in rows[1::2]]
    tested = sum(row.split is Split.TEST for row in rows)
    assert 0.25 < tested / len(rows) < 0.55


def test_a_split_cell_wins_over_the_rule() -> None:
    """A row that says fit or test is that, whatever the set's rule."""
    toml = TOML.replace('"given"', '"test"')
    first, second = read(toml).rows
    assert (first.split, second.split) == (Split.FIT, Split.TEST)
    assert read(toml, CSV.replace("fit", "")).rows[0].split is Split.TEST


def test_what_the_set_declares() -> None:
    """Groups, constants to fit, tolerances and the baseline are carried over."""
    toml = (
        TOML.replace('split = "given"', 'split = "test"')
        + """
absolute = []
group_by = ["machine"]
anchor = "one worker"
baseline = "slowest part"
baseline_by = ["machine"]

[[fit]]
key = "hardware.storage_bandwidth"
start = "2 GB/s"
low = "10 MB/s"
high = "1 TB/s"

[[tolerance]]
metric = "step_time_s.mean"
mean = 0.05
target_mean = 0.03

[notes]
anything = [1, 2]
"""
    )
    rows = CSV.replace(",split", ",anchor").replace("fit", "yes").replace("test", "no")
    found = read(toml, rows)
    assert (found.group_by, found.anchor) == (("machine",), "one worker")
    assert [p.key for p in found.fit] == ["hardware.storage_bandwidth"]
    assert (found.tolerance[0].mean, found.tolerance[0].target_mean) == (0.05, 0.03)
    assert found.baseline is Baseline.SLOWEST_PART
    assert [row.anchor for row in found.rows] == [True, False]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("180 ms", "is not a bare number, found '180 ms'; write 0.18, in s"),
        ("180 MB", "is not a bare number, found '180 MB'; write the number in s, with a point"),
        ("0,2", "is not a bare number, found '0,2'; write the number in s"),
        ("-1", "is negative, found '-1'"),
        ("0", "is zero, found '0'; an error relative to it means nothing"),
        ("nan", "is not a finite number, found 'nan'; leave it empty"),
        ("1e7", "is too large to be meant, found '1e7'; at most 24 h; bare numbers are in s"),
        ("1e-12", "is too small to be meant, found '1e-12'; at least 1 ns"),
    ],
)
def test_a_measured_cell_that_cannot_be_meant(cell: str, message: str) -> None:
    """A unit, a sign or a size that makes no sense is named with what is allowed."""
    rows = CSV.replace("0.1,test", f'"{cell}",test')
    assert [text.partition(message)[1] for text in refused(rows=rows)] == [message]
    assert refused(rows=rows)[0].startswith("mine.csv:3: measured.step_time_s.mean: ")


@pytest.mark.parametrize(
    ("metric", "cell", "message"),
    [
        ("accelerator_utilization", "93", "is above 1, found '93'; write a share"),
        ("accelerator_utilization", "93%", "is not a bare number, found '93%'; write a share"),
        ("utilization.gpu.mean", "1.2", "is above 1"),
        ("mlperf_storage.accelerator_utilization", "93", "is above 1, found '93'; write a share"),
        ("gpu_memory_bytes.total", "18.3", "is too small to be meant, found '18.3'; at least 1 MB"),
        ("step_split_s.data_stall", "0", "is zero"),
    ],
)
def test_a_share_or_size_in_the_wrong_unit(metric: str, cell: str, message: str) -> None:
    """Per cent for a share and gigabytes for bytes are unit mix-ups."""
    toml = TOML.replace("step_time_s.mean", metric)
    rows = CSV.replace("step_time_s.mean", metric).replace("0.2", cell).replace("0.1", "0.1")
    assert any(message in text for text in refused(toml, rows))


def test_a_share_may_be_zero_where_errors_are_differences() -> None:
    """A metric in `absolute` needs no measured value to divide by."""
    toml = TOML.replace("step_time_s.mean", "accelerator_utilization")
    rows = CSV.replace("step_time_s.mean", "accelerator_utilization").replace("0.2", "0")
    assert "is zero" in refused(toml, rows)[0]
    toml += 'absolute = ["accelerator_utilization"]\n'
    assert read(toml, rows).rows[0].measured["accelerator_utilization"] == 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id,", "name,", "mine.csv:1: id: is missing"),
        ("input.workers", "input.worker", "input.worker: is not a key of a scenario; did you mean"),
        (
            "step_time_s.mean",
            "step_time.mean",
            "is not a metric that can be measured; did you mean",
        ),
        ("measured.step", "measured_step", "mine.csv:1: has no measured column"),
        ("machine", "Anchor", "Anchor: is nearly a column with a meaning; 'anchor'?"),
        ("split", "spread.first_step_s", "is the spread of a metric without a measured column"),
        (",1,,", ",one,,", "mine.csv:2: input.workers: is not a whole number, found 'one'"),
        (",1,,", ",5000,,", "mine.csv:2: input.workers: is out of range, found 5000"),
        ("b,m2", "a,m2", "mine.csv:3: id: is given twice, found 'a'; first on line 2"),
        ("b,m2", ",m2", "mine.csv:3: id: is empty; give every row a name"),
        ("fit", "train", "mine.csv:2: split: is not a valid choice, found 'train'; allowed"),
        ("fit", "", "mine.csv:2: split: is empty; write fit or test"),
        ("0.2,fit", ",fit", "mine.csv:2: measures nothing; fill in one of the set's metrics"),
    ],
)
def test_a_broken_table(old: str, new: str, message: str) -> None:
    """Each mistake is named with its line, its column and what is allowed."""
    assert old in CSV
    told = refused(rows=CSV.replace(old, new, 1))
    assert any(message in text for text in told), told


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('base = "resnet50-m40"', "", "mine.csv:2: base: is empty; fill it in"),
        (
            "resnet50-m40",
            "resnet50-m4",
            "base: unknown scenario, found 'resnet50-m4'; did you mean",
        ),
        ('split = "given"', 'split = "hash"', "mine.toml:10: split: is not a valid choice"),
        ('split = "given"', 'split = "configuration"', "mine.toml: configuration: is missing"),
        ("metrics", "metrix", "metrix: is not a known key, found a list; did you mean 'metrics'"),
        ("step_time_s.mean", "first_step_s", "mine.toml:9: metrics[0]: has no measured column"),
        ("schema = 1", "schema = 2", "is an unknown file format"),
        ('date = "2026-11"', "", "mine.toml: date: is missing"),
    ],
)
def test_a_broken_declaration(old: str, new: str, message: str) -> None:
    """Each mistake of the TOML file is named with its line."""
    assert old in TOML
    told = refused(TOML.replace(old, new))
    assert any(message in text for text in told), told


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('group_by = ["machines"]', "group_by[0]: is not a column of the table, found 'machines'"),
        ('[[fit]]\nkey = "input.workers"\nstart = "1"\nlow = "1"\nhigh = "2"', "has no anchors"),
        ('[[fit]]\nkey = "input.workers"\nstart = "1"\nlow = "1"\nhigh = "2"', "continuous"),
        ('[[fit]]\nkey = "input.decode"\nstart = "1"\nlow = "1 ms"\nhigh = "2 ms"', "has no unit"),
        (
            '[[fit]]\nkey = "input.decode"\nstart = "5 ms"\nlow = "1 ms"\nhigh = "2 ms"',
            "fit[0].start: does not lie between its bounds",
        ),
        ('[[tolerance]]\nmetric = "first_step_s"\nmean = 0.1', "is not judged in this set"),
        ('[[tolerance]]\nmetric = "step_time_s.mean"', "tolerance[0]: allows nothing"),
        (
            '[[tolerance]]\nmetric = "step_time_s.mean"\nmean = 0.1\nfamily = "other"',
            "is not a family of the set, found 'other'",
        ),
    ],
)
def test_a_declaration_that_does_not_hold(extra: str, message: str) -> None:
    """Columns, constants and tolerances that don't belong to the rows are refused."""
    assert any(message in text for text in refused(TOML + extra)), refused(TOML + extra)


@pytest.mark.parametrize(
    ("toml", "rows", "message"),
    [
        (TOML, CSV.replace("step_time_s", "step_tim_s"), "mine.csv:1: measured.step_tim_s.mean: "),
        (
            TOML,
            CSV.replace("measured.step_time_s.mean", "step"),
            "mine.csv:1: has no measured column",
        ),
        (
            f'{TOML}[[tolerance]]\nmetric = "step_time_s.mean"\nmean = 0.1\n'.replace(
                'metrics = ["step_time_s', 'metrics = ["step_tim_s'
            ),
            CSV,
            "mine.toml:9: metrics[0]: has no measured column, found 'step_tim_s.mean'; did you",
        ),
        (
            TOML,
            CSV.replace("step_time_s", "step_tim_s").replace("machine", "spread.step_time_s.mean"),
            "mine.csv:1: measured.step_tim_s.mean: is not a metric that can be measured; did you",
        ),
    ],
)
def test_one_mistake_gets_one_message(toml: str, rows: str, message: str) -> None:
    """What follows from a misspelt or missing metric is not told as mistakes of its own."""
    (told,) = refused(toml, rows)
    assert told.startswith(message)
    assert "nothing is allowed" not in told


def test_an_anchor_cannot_be_held_out() -> None:
    """Constants are fitted to anchors, so a test row is none; anchors are yes or no."""
    rows = CSV.replace("machine", "anchor").replace("m1", "maybe").replace("m2", "yes")
    told = refused(rows=rows)
    assert "mine.csv:2: anchor: is neither yes nor no, found 'maybe'" in told
    assert (
        "mine.csv:3: split: holds out an anchor, found 'test'; constants are fitted to it" in told
    )


def test_every_mistake_is_told_at_once() -> None:
    """Mistakes of different rows and columns come together, by line."""
    rows = CSV.replace("0.2,fit", "-1,fitt").replace("0.1", "").replace("b,", "a,")
    told = refused(rows=rows)
    assert len(told) == 4
    assert told == sorted(told, key=lambda text: text.split(":")[1])


def test_a_pipe_is_no_set(tmp_path: Path) -> None:
    """A declaration that is not a regular file is refused, not waited for."""
    pipe = tmp_path / "mine.toml"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is not a regular file"):
        load_set(str(pipe))


def test_no_such_set(tmp_path: Path) -> None:
    """A name that leads nowhere, and a CSV file in place of its TOML file, are explained."""
    with pytest.raises(UnknownName, match="there is no measurement set 'nothing'"):
        load_set("nothing")
    table = tmp_path / "x.csv"
    table.write_text(CSV, encoding="utf-8")
    with pytest.raises(InputError, match="name the TOML file that describes it"):
        load_set(str(table))
    (tmp_path / "x.toml").write_text(TOML, encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.csv: does not exist"):
        load_set(str(tmp_path / "x.toml"))


@pytest.mark.parametrize("name", ["mine.toml", "mine", "mine.csv"])
def test_a_set_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    """The TOML file, its name without the ending, and the CSV file beside it are one set."""
    (tmp_path / "mine.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "mine.csv").write_text(CSV, encoding="utf-8")
    assert load_set(str(tmp_path / name)).name == "mine"


@each("path", sorted(set_folder().glob("*.toml")))
def test_shipped_sets_are_sound(path: Path) -> None:
    """Every set that ships is read without a problem and is named like its file."""
    found = load_set(path.stem)
    assert found.name == path.stem
    assert found.rows


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_is_broken_is_told(data: st.DataObject) -> None:
    """Any cut, insertion or exchange in either file gives a set or messages, never a crash."""
    texts = [TOML, CSV]
    which = data.draw(st.integers(0, 1))
    text = texts[which]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 30)))
    put = data.draw(st.text(alphabet="az09 .,=\"'\n\r-%µ[]{}\x00\u2028#", max_size=6))
    texts[which] = text[:start] + put + text[end:]
    said = None
    try:
        read(*texts)
    except InputError as error:
        said = str(error).strip()
    assert said is None or said


def test_regimes_are_named_in_a_label() -> None:
    """A column of the table, or the mistake is told with the nearest name."""
    toml = TOML + 'regime = "machine"\n'
    assert read(toml).regime == "machine"
    assert any("regime: is not a label" in text for text in refused(TOML + 'regime = "machin"\n'))
