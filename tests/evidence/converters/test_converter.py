"""`evidence/convert.py`: the converter of all converters, with a converter made up here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import convert
from converters import Columns, TableRow, converter
from converters.converter import import_table, table_names
from simulator.errors import InputError, UnknownName
from simulator.reading.measured.measurement_set import load_set
from simulator.schema.measurement import Split

DECLARED = """
schema = 1
name = "made_up"
title = "Steps of a made-up machine"
data = "made_up.csv"
base = "resnet50-m40"
family = "made up"
source = "made up"
date = "2026-11"
metrics = ["step_time_s.mean"]
configuration = ["machine", "input.workers"]
group_by = ["machine"]
anchor = "one worker"

[[fit]]
key = "input.decode"
start = "5 ms"
low = "1 ms"
high = "1 s"
why = 'a "slow" one'

[[tolerance]]
metric = "step_time_s.mean"
mean = 0.05
"""
TABLE = """machine,workers,step_ms,extra
m1,1,200,x
m1,2,110,x
m2,1,300,x
m2,2,,x
m2,4,90,x
m2,4,91,x
"""


class MadeUp:
    """A converter."""

    SHIPPED = "made_up"
    COLUMNS = Columns(
        required=("machine", "workers", "step_ms"),
        filled=("machine",),
        numbers=("workers", "step_ms"),
        measured=("step_*",),
    )

    def convert(self, rows: Sequence[TableRow]) -> list[dict[str, str]]:
        """One row a row."""
        return [self._row(row) for row in rows]

    def _row(self, row: TableRow) -> dict[str, str]:
        step = row.number("step_ms")
        return {
            "id": f"{row.text('machine')}-{row.text('workers')}",
            "machine": row.text("machine"),
            "input.workers": row.text("workers"),
            "measured.step_time_s.mean": "" if step is None else f"{step / 1000:.6g}",
            "anchor": "yes" if row.number("workers") == 1 else "",
            "exclude": "nothing was measured" if step is None else "",
        }


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of shipped sets with one declaration, and the converter in place."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "made_up.toml").write_text(DECLARED, encoding="utf-8")
    monkeypatch.setattr(converter, "set_folder", lambda: folder)
    monkeypatch.setattr(converter, "converter", lambda _: MadeUp())
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    """Write a table."""

    def write(text: str = TABLE) -> Path:
        path = tmp_path / "table.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


Write = Callable[..., Path]


@pytest.mark.usefixtures("shipped")
def test_every_row_but_anchors_is_held_out(table: Write, tmp_path: Path) -> None:
    """Without a rule only anchors are fitted to; the rest is taken from the shipped set."""
    made = import_table("made_up", table(), tmp_path / "mine.toml", by_configuration=False)
    rows = made.found.rows
    assert [row.id for row in rows] == ["m1-1", "m1-2", "m2-1", "m2-2", "m2-4", "m2-4~2"]
    assert [row.split is Split.FIT for row in rows] == [True, False, True, False, False, False]
    assert [row.anchor for row in rows] == [True, False, True, False, False, False]
    assert rows[3].excluded == "nothing was measured"
    assert made.found.name == "mine"
    assert (made.found.group_by, made.found.anchor) == (("machine",), "one worker")
    assert made.found.fit[0].why == 'a "slow" one'
    assert made.found.tolerance[0].mean == 0.05
    assert {row.family for row in rows} == {"made up"}


@pytest.mark.usefixtures("shipped")
def test_configurations_are_held_out_by_their_hash(table: Write, tmp_path: Path) -> None:
    """With the rule, SHA-256 of the configuration decides, for all rows of it equally."""
    lines = [f"m{i},{w},100,x" for i in range(20) for w in (2, 4)]
    text = "\n".join(["machine,workers,step_ms,extra", *lines, *lines])
    made = import_table("made_up", table(text), tmp_path / "mine.toml", by_configuration=True)
    assert {row.split for row in made.found.rows} == {Split.FIT, Split.TEST}
    for row in made.found.rows:
        key = f"{row.labels['machine']}|{row.overrides[0].partition('=')[2]}"
        tested = int(hashlib.sha256(key.encode()).hexdigest(), 16) % 10 < 4
        assert (row.split is Split.TEST) == tested


@pytest.mark.parametrize("by_configuration", [False, True])
@pytest.mark.usefixtures("shipped")
def test_a_split_column_wins(table: Write, tmp_path: Path, *, by_configuration: bool) -> None:
    """What the table says of a row is so, but an anchor is fit."""
    text = "machine,workers,step_ms,split\nm1,1,200,test\nm1,2,110,fit\nm1,3,90,test\n"
    made = import_table(
        "made_up", table(text), tmp_path / "mine.toml", by_configuration=by_configuration
    )
    assert [row.split for row in made.found.rows] == [Split.FIT, Split.FIT, Split.TEST]


def test_the_shipped_declaration_is_kept(shipped: Path, table: Write) -> None:
    """Writing the shipped set again leaves its TOML file, comments and all, as it is."""
    output = shipped / "made_up.toml"
    made = import_table("made_up", table(), output, by_configuration=True)
    assert made.declared
    assert made.found.name == "made_up"
    assert made.csv_path == shipped / "made_up.csv"


@pytest.mark.usefixtures("shipped")
def test_the_command_writes_a_set_that_reads(
    table: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both files are written, and what `plan validate` reads is what was converted."""
    output = tmp_path / "mine"
    assert convert.main(["made_up", str(table()), "-o", str(output)]) == 0
    out = capsys.readouterr().out
    assert "6 rows, 1 left out, 2 anchors, 2 fit, 4 test" in out
    assert "left out: nothing was measured (m2-2)" in out
    assert len(load_set(f"{output}.toml").rows) == 6


@pytest.mark.usefixtures("shipped")
def test_reasons_are_told_together(
    table: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line a reason, with how many rows; of very many reasons the commonest."""
    lines = [f"m{i},{9000 + i},100,x" for i in range(20)] + ["m0,9000,100,x"]
    path = table("\n".join(["machine,workers,step_ms,extra", "m0,2,100,x", *lines]))
    assert convert.main(["made_up", str(path), "-o", str(tmp_path / "mine")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "found 9000 (at least 0 and at most 4,096) (2 rows, the first m0-9000)" in out
    assert "left out: 8 rows more for other reasons" in out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("workers,", "worker,", "table.csv:1: workers: is missing; did you mean 'worker'?"),
        ("m1,1,", ",1,", "table.csv:2: machine: is empty"),
        ("200", "2O0", "table.csv:2: step_ms: is not a number, found '2O0'"),
        ("m1,2,110", "m1,two,110", "table.csv:3: workers: is not a number"),
        ("extra\n", "split\n", "table.csv:2: split: is not a valid choice, found 'x'"),
    ],
)
@pytest.mark.usefixtures("shipped")
def test_a_broken_table_is_told_and_nothing_written(  # noqa: PLR0913, PLR0917 - fixtures, a case
    table: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    message: str,
) -> None:
    """Mistakes are reported with the line of the user's file, and no file appears."""
    path = table(TABLE.replace(old, new, 1))
    assert convert.main(["made_up", str(path), "-o", str(tmp_path / "mine.toml")]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("mine*"))


@pytest.mark.parametrize(
    ("old", "new", "row", "reason"),
    [
        ("200", "inf", 0, "step_ms is not a finite number, found 'inf'"),
        ("m1,2,110", "m1,2,-110", 1, "measured.step_time_s.mean is negative, found '-0.11'"),
        ("m1,2,110", "m1,2,0", 1, "measured.step_time_s.mean is zero"),
        ("m1,2,", "m1,9999,", 1, "input.workers is out of range, found 9999"),
    ],
)
@pytest.mark.usefixtures("shipped")
def test_an_odd_row_is_left_out_with_its_reason(  # noqa: PLR0913, PLR0917 - fixtures and a case
    table: Write, tmp_path: Path, old: str, new: str, row: int, reason: str
) -> None:
    """One row that cannot be meant does not keep the others from being converted."""
    path = table(TABLE.replace(old, new, 1))
    made = import_table("made_up", path, tmp_path / "mine.toml", by_configuration=False)
    excluded = [one.excluded for one in made.found.rows]
    assert excluded[row].startswith(reason)
    assert [bool(reason) for reason in excluded].count(True) == 2


@pytest.mark.usefixtures("shipped")
def test_many_odd_rows_are_left_out_at_once(table: Write, tmp_path: Path) -> None:
    """More of them than are ever listed one by one."""
    lines = [f"m{i},9999,100,x" for i in range(100)]
    path = table("\n".join(["machine,workers,step_ms,extra", "m0,2,100,x", *lines]))
    made = import_table("made_up", path, tmp_path / "mine.toml", by_configuration=False)
    assert [bool(row.excluded) for row in made.found.rows] == [False] + [True] * 100


@pytest.mark.usefixtures("shipped")
def test_nothing_but_odd_rows(table: Write, tmp_path: Path) -> None:
    """A file of them converts too; each has its reason."""
    path = table("machine,workers,step_ms\nm1,9999,100\nm1,2,0\n")
    made = import_table("made_up", path, tmp_path / "mine.toml", by_configuration=False)
    assert all(row.excluded for row in made.found.rows)


def test_an_odd_row_is_no_anchor(
    table: Write, tmp_path: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the smallest run is left out, the smallest of the others is the anchor."""
    assert shipped.is_dir()

    class Smallest(MadeUp):
        def convert(self, rows: Sequence[TableRow]) -> list[dict[str, str]]:
            least = min(row.number("workers") or 0.0 for row in rows)
            anchor = ["yes" if row.number("workers") == least else "" for row in rows]
            cells = super().convert(rows)
            return [{**one, "anchor": yes} for one, yes in zip(cells, anchor, strict=True)]

    monkeypatch.setattr(converter, "converter", lambda _: Smallest())
    path = table("machine,workers,step_ms\nm1,1,0\nm1,2,110\nm1,4,60\n")
    made = import_table("made_up", path, tmp_path / "mine.toml", by_configuration=False)
    assert [row.anchor for row in made.found.rows] == [False, True, False]


def test_tolerances_of_families_that_a_file_lacks_are_dropped(
    shipped: Path, table: Write, tmp_path: Path
) -> None:
    """What is said of other families, of all together and of each stays."""
    tolerances = "".join(
        f'[[tolerance]]\nmetric = "step_time_s.mean"\nfamily = "{name}"\nmean = 0.1\n'
        for name in ("another", "*", "made up")
    )
    (shipped / "made_up.toml").write_text(f"{DECLARED}\n{tolerances}", encoding="utf-8")
    made = import_table("made_up", table(), tmp_path / "mine.toml", by_configuration=False)
    assert [one.family for one in made.found.tolerance] == ["", "*", "made up"]


@pytest.mark.usefixtures("shipped")
def test_rows_may_be_chosen_by_a_cell(table: Write, tmp_path: Path) -> None:
    """Only rows whose cell begins as asked for are read; a column that is missing is reported."""
    output = tmp_path / "mine.toml"
    made = import_table("made_up", table(), output, only={"machine": "m2"})
    assert {row.labels["machine"] for row in made.found.rows} == {"m2"}
    with pytest.raises(InputError, match="machin: is not a column of the table"):
        import_table("made_up", table(), output, only={"machin": "m2"})


@pytest.mark.parametrize("name", ["table_machines", "llm"])
def test_what_converters_share_is_no_table(name: str) -> None:
    """A module next to the converters has no table's name."""
    assert name not in table_names()
    with pytest.raises(UnknownName, match="there is no table"):
        converter.converter(name)


def test_an_unknown_table(table: Write, tmp_path: Path) -> None:
    """A table without a converter is named, with those that there are."""
    with pytest.raises(UnknownName, match="there is no table 'no_such'"):
        import_table("no_such", table(), tmp_path / "mine.toml", by_configuration=False)


@pytest.mark.parametrize("name", table_names())
def test_every_converter_has_its_declaration(name: str) -> None:
    """A converter says what columns it reads and which shipped set declares its table."""
    module = converter.converter(name)
    assert set(module.COLUMNS.filled) <= set(module.COLUMNS.required)
    assert module.COLUMNS.measured
    assert load_set(module.SHIPPED).metrics
