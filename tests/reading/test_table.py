"""CSV files: rows with their lines, and every way a file can be no table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator.errors import MAX_PROBLEMS, InputError
from simulator.reading.table import LARGEST_TABLE, parse_table, read_table


def refused(content: bytes) -> list[str]:
    """The messages that a content is refused with."""
    with pytest.raises(InputError) as caught:
        parse_table(content, "x.csv")
    return [str(problem) for problem in caught.value.problems]


def test_rows_keep_their_lines() -> None:
    """Blank lines, quoted line ends, Windows line ends and a byte-order mark don't shift lines."""
    text = '\ufeffid, what \r\n\r\na, one \r\nb,"two\nlines"\r\n\r\nc,\u2028\r\n'
    table = parse_table(text.encode(), "x.csv")
    assert table.columns == ("id", "what")
    assert [(line.number, line.cells["id"]) for line in table.lines] == [
        (3, "a"),
        (5, "b"),
        (7, "c"),
    ]
    assert table.lines[0].cells["what"] == "one"
    assert table.lines[1].cells["what"] == "two\nlines"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.csv: is empty; the first line names the columns"),
        (b"a,b\n", "x.csv: has columns but no rows"),
        (b"a;b\n1;2\n", "x.csv:1: is separated by semicolons; separate cells by commas"),
        (b"a\tb\n1\t2\n", "x.csv:1: is separated by tabs; separate cells by commas"),
        (b"a,,c\n1,2,3\n", "x.csv:1: has no name for column 2"),
        (b"a,b,a\n1,2,3\n", "x.csv:1: a: names two columns"),
        (b"a,b\n1,2\n3\n", "x.csv:3: has 1 cells; the heading has 2; is the file cut off?"),
        (
            b"a,b\n1,2,000\n3,4\n",
            "x.csv:2: has 3 cells; the heading has 2; a cell with a comma in it needs quotes",
        ),
        (b'a,b\n1,"2\n', "x.csv:2: ends within a quoted cell; is the file cut off?"),
        (b'a,b\n1,"2"x\n', "x.csv:2: is not valid CSV: ',' expected after '\"'"),
        (b"a,b\n1,\xff\n", "x.csv:2: is not UTF-8 text (byte 0xff); save it as UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "x.csv: is UTF-16 text; save it as UTF-8"),
        (b"PK\x03\x04\0\0\x01\x02\0", "x.csv: is a binary file, not CSV text"),
    ],
)
def test_no_table(content: bytes, message: str) -> None:
    """One clear message says what is wrong and what to do."""
    assert refused(content) == [message]


def test_all_short_rows_are_told_up_to_a_limit() -> None:
    """Each bad row has its message; of very many the number is told."""
    some = refused(b"a,b\n" + b"1\n" * 3 + b"1,2\n")
    assert [text.split(":")[1] for text in some] == ["2", "3", "4"]
    many = refused(b"a,b\n" + b"1\n" * 1000 + b"1,2\n")
    assert len(many) == MAX_PROBLEMS + 1
    assert many[-1] == f"x.csv: has {1000 - MAX_PROBLEMS} more problems"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    """A file of 1 GB is refused by its size, before anything of it is read."""
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(10**9)
    before = os.times().user
    with pytest.raises(InputError, match=r"is larger than 64 MB \(1 GB\)"):
        read_table(path)
    assert os.times().user - before < 0.1
    assert LARGEST_TABLE < 10**8


@pytest.mark.parametrize(("name", "message"), [("no.csv", "does not exist"), (".", "is a folder")])
def test_no_file(tmp_path: Path, name: str, message: str) -> None:
    """A missing file and a folder are named."""
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)


def test_a_pipe_or_device_is_refused(tmp_path: Path) -> None:
    """What is not a regular file could keep the reader waiting for ever."""
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        with pytest.raises(InputError, match="is not a regular file"):
            read_table(path)
