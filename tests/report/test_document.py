"""Tables in every form, and only in the form that was asked for."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.report.document import (
    Actions,
    Bar,
    Bars,
    Cell,
    Code,
    Document,
    Format,
    Notes,
    Rows,
    Table,
    as_csv,
    render,
    section,
)
from simulator.report.markdown import as_markdown
from simulator.report.prediction.rows import metric_table
from simulator.report.text import table_lines as as_columns
from simulator.results.prediction import Prediction

WORDS = st.text(alphabet=st.characters(exclude_characters="\r\x00", codec="utf-8"), max_size=8)
CELLS = st.one_of(st.none(), WORDS, st.floats(allow_nan=False), st.integers())


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_csv_reads_back(rows: list[tuple[Cell, Cell]]) -> None:
    """What csv reads is what was written, floats to the last bit."""
    text = as_csv(Table(head=("a", "b"), rows=tuple(rows)))
    found = list(csv.reader(io.StringIO(f"{text}\n", newline="")))
    assert found == [
        ["a", "b"],
        *(["" if cell is None else str(cell) for cell in row] for row in rows),
    ]
    for row, given_row in zip(found[1:], rows, strict=True):
        for cell, was in zip(row, given_row, strict=True):
            if isinstance(was, float):
                assert float(cell) == was


def test_markdown_cannot_be_broken_by_a_name() -> None:
    """A bar or a line end in a cell stays in its cell."""
    lines = as_markdown(Table(head=("a",), rows=(("x | y\nz",),))).splitlines()
    assert len(lines) == 3
    assert lines[2].count(" | ") == 0 or "\\|" in lines[2]


def test_numbers_stand_to_the_right() -> None:
    """Columns of numbers end together."""
    lines = as_columns(Table(head=("name", "n"), rows=(("a", 5), ("b", 1234))))
    assert len({len(line) for line in lines}) == 1


def test_only_what_is_asked_for_is_made() -> None:
    """The other forms cost nothing."""

    def never() -> Any:
        pytest.fail("not asked for")

    table = Table(head=("a",), rows=((1,),))
    assert render(Document(data=never, table=lambda: table), Format.CSV) == "a\n1"
    assert render(Document(data=dict, table=never), Format.JSON) == "{}"
    assert render(Document(title="t", data=never, table=never), Format.TABLE) == "t"


def test_every_item_is_rendered_as_text_and_markdown() -> None:
    """A section of each kind of item: labels, numbers and texts stand in both."""
    items = (
        Rows(rows=(("label", "text"),)),
        Table(head=("n", "m"), rows=(("1", "2"),), align=">>"),
        Bars(bars=(Bar(label="part", value="2 ms", share="50%", start=0.0, length=0.5),)),
        Notes(texts=("a note",)),
        Actions(texts=("first", "second")),
        Code(lines=("plan models",)),
    )
    document = Document(
        title="Title",
        question=(("Asked", "what"),),
        verdict=("Yes.",),
        sections=section("Section", *items),
        data=dict,
        table=lambda: Table(head=(), rows=()),
    )
    for form in (Format.TABLE, Format.MARKDOWN):
        shown = render(document, form)
        for word in ("Title", "Asked", "Yes.", "Section", "label", "part", "50%", "a note"):
            assert word in shown
        assert "2. second" in shown
        assert "plan models" in shown


def test_a_section_of_nothing_is_left_out() -> None:
    """Empty items make no section."""
    assert section("Title", Notes(texts=()), None, Code(lines=())) == ()


def test_metrics_with_one_value_are_listed(prediction: Prediction) -> None:
    """Each once, in SI units, with its interval where there is one."""
    rows = {row[0]: row[1:] for row in metric_table(prediction).rows}
    assert rows["step_time_s.mean"][0] == prediction.timing.step_time.mean
    assert rows["step_time_s.mean"][1] == "s"
    assert "gpu_memory_bytes.items" not in rows
