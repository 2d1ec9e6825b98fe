"""What can be wrong with a file before its content counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator.errors import MAX_PROBLEMS, InputError, Problem
from simulator.reading.document import parse_document, read_document
from simulator.reading.reading import LARGEST
from simulator.reading.scenario import load_scenario


def told(content: bytes) -> str:
    """What is said about a file of this content."""
    with pytest.raises(InputError) as caught:
        parse_document(content, "s.toml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "s.toml: is empty; begin with schema = 1"),
        (b" \n\t\r\n", "s.toml: is empty; begin with schema = 1"),
        (b"\xef\xbb\xbf", "s.toml: is empty; begin with schema = 1"),
        ("schema = 1\n".encode("utf-16"), "s.toml: is UTF-16 text; save it as UTF-8"),
        ("schema = 1\n".encode("utf-16-be"), "s.toml: looks like UTF-16 text; save it as UTF-8"),
        ("schema = 1\n".encode("utf-16-le"), "s.toml: looks like UTF-16 text; save it as UTF-8"),
        ("schema = 1\n".encode("utf-32"), "s.toml: is UTF-32 text; save it as UTF-8"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\x80\0", "s.toml: is a binary file, not TOML text"),
        (
            "schema = 1\ntitle = 'é'\n".encode("latin-1"),
            "s.toml:2: is not UTF-8 text (byte 0xe9); save it as UTF-8",
        ),
        (b"a" * (LARGEST + 1), "s.toml: is larger than 2 MB; this is not a file of plan's"),
        (b"x = " + b"[" * 100_000, "s.toml: is nested too deeply; at most 32 levels are read"),
        (b"a." * 60_000 + b"b = 1", "s.toml:1: is nested too deeply; at most 32 levels are read"),
        (b"[a]\n" + b"[a.b" + b".c" * 32 + b"]", "s.toml:2: is nested too deeply"),
        (b"x = " + b"9" * 5000, "s.toml: holds a value that cannot be read"),
        (b"x = 2024-13-45\n", "s.toml:1: is not valid TOML"),
        (b"a = 1\n\nb = 2\na = 3\n", "s.toml:4: a: is given twice; first on line 1"),
        (b"[a]\n'x y' = 1\n'x y' = 2\n", "s.toml:3: a.'x y': is given twice; first on line 2"),
        (b"[[a]]\nb = 1\n[[a]]\nb = 1\nb = 2\n", "s.toml:5: a[1].b: is given twice"),
        (b"a = {b = 1, b = 2}\n", "s.toml:1: a.b: is given twice; first on line 1"),
        (b"a.b = 1\na = 2\n", "s.toml:2: is not valid TOML: cannot overwrite a value"),
        (b"x = 'unclosed", "s.toml:1: is not valid TOML"),
        (b"precision = bf16 # fast\n", 'text needs quotes: precision = "bf16"'),
        (b"just words\n", "s.toml:1: is not valid TOML"),
        (b"a = 1\rb = 2\r", "s.toml:1: is not valid TOML"),
    ],
)
def test_each_kind_of_broken_text_gets_one_clear_message(content: bytes, message: str) -> None:
    """One line that names the file, and the line where there is one."""
    said = told(content)
    assert message in said
    assert said.count("\n") == 0


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfschema = 1\n[a]\nb = 2\n",
        b"schema = 1\r\n[a]\r\nb = 2\r\n",
        b"\xef\xbb\xbfschema = 1\r\n[a]\r\nb = 2",
    ],
)
def test_windows_line_ends_and_byte_order_marks_are_accepted(content: bytes) -> None:
    """Data and lines are those of the plain file."""
    document = parse_document(content, "s.toml")
    assert document.data == {"schema": 1, "a": {"b": 2}}
    assert document.where(("a", "b")) == ("s.toml", 3)


def test_windows_line_ends_within_long_text_become_plain() -> None:
    """A multi-line text doesn't keep the carriage returns of the file."""
    document = parse_document(b'a = """x\r\ny"""\r\nb = 1\r\n', "s.toml")
    assert document.data["a"] == "x\ny"
    assert document.where(("b",)) == ("s.toml", 3)


def test_a_missing_file_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    """The neighbour's name is offered."""
    (tmp_path / "scenario.toml").write_text("schema = 1\n")
    with pytest.raises(InputError, match=r"senario\.toml: does not exist; did you mean '.*/scen"):
        read_document(tmp_path / "senario.toml")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Whoever mistypes a folder learns that it is the folder."""
    with pytest.raises(InputError, match=r"does not exist; the folder .*nowhere does not exist"):
        read_document(tmp_path / "nowhere" / "s.toml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Said as such, not as an error of the operating system."""
    with pytest.raises(InputError, match=r": is a folder, not a file$"):
        read_document(tmp_path)


@pytest.mark.parametrize("name", ["a\0b.toml", "x" * 5000, "s.toml/inside"])
def test_names_no_file_can_have(tmp_path: Path, name: str) -> None:
    """A zero byte, an endless name and a file used as a folder are input mistakes too."""
    (tmp_path / "s.toml").write_text("schema = 1\n")
    with pytest.raises(InputError, match=r"cannot be read|does not exist"):
        read_document(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """Permissions are named."""
    path = tmp_path / "s.toml"
    path.write_text("schema = 1\n")
    path.chmod(0)
    with pytest.raises(InputError, match="permission denied"):
        read_document(path)


def test_an_endless_file_is_given_up_on() -> None:
    """/dev/zero has no size; it is not even begun."""
    zeros = Path("/dev/zero")
    if not zeros.exists():
        pytest.skip("no /dev/zero here")
    with pytest.raises(InputError, match="is not a regular file"):
        read_document(zeros)


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be read for ever."""
    path = tmp_path / "job.toml"
    os.mkfifo(path)
    with pytest.raises(InputError, match="is not a regular file; write it to a file first"):
        load_scenario(str(path))


def test_very_many_mistakes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first are told, each with a search for the nearest name; of the others how many."""
    asked: list[str] = []
    monkeypatch.setattr("simulator.reading.document.slip_of", lambda key, _: asked.append(key))
    path = tmp_path / "job.toml"
    keys = "".join(f"unknown_{number} = 1\n" for number in range(25_000))
    path.write_text(f'schema = 1\nextends = "resnet50-m40"\n[input]\n{keys}', "utf-8")
    with pytest.raises(InputError) as refused:
        load_scenario(str(path))
    told = [str(problem) for problem in refused.value.problems]
    assert len(told) == MAX_PROBLEMS + 1
    assert "input.unknown_0: is not a known key" in told[0]
    assert told[-1].endswith("has 24,980 more problems")
    assert asked == [f"unknown_{number}" for number in range(MAX_PROBLEMS)]


def test_a_name_in_the_message_is_not_repeated() -> None:
    """Found text follows the message only if the message does not hold it."""
    told = {
        str(Problem(origin="x", message=message, found=found))
        for message, found in (
            ("there is no model 'ab'", "'ab'"),
            ("there is no model 'abc'", "'ab'"),
            ("is above 3", "3"),
        )
    }
    assert told == {
        "x: there is no model 'ab'",
        "x: there is no model 'abc', found 'ab'",
        "x: is above 3, found 3",
    }


def test_long_names_and_many_problems_are_cut() -> None:
    """Words of more than 80 characters are cut, and 20 problems are printed of 1,000."""
    problem = Problem(origin="x", key="k" * 1000, message="m" * 100 + " ok", found="f" * 500)
    assert str(problem) == f"x: {'k' * 80}...: {'m' * 80}... ok, found {'f' * 80}..."
    lines = str(InputError((problem,) * 1000)).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "x: has 980 more problems"
