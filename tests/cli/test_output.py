"""Files that appear whole, and the progress line."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from simulator.cli import output
from simulator.cli.output import (
    check_writable,
    complain,
    counting_line,
    progress_line,
    write_file,
    write_files,
)
from simulator.errors import InputError


def test_a_new_file_gets_plain_permissions(tmp_path: Path) -> None:
    """A file is readable as one a shell would have made."""
    previous = os.umask(0o022)
    try:
        write_file(tmp_path / "a.json", "text", "--trace")
    finally:
        os.umask(previous)
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "text"
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o644


def test_an_old_file_keeps_its_permissions_and_links(tmp_path: Path) -> None:
    """Writing through a symbolic link replaces what it points to, not the link."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    link.symlink_to(target)
    write_file(link, "new", "--trace")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last step fails, the old content stays and nothing lies beside it."""
    path = tmp_path / "a.json"
    path.write_text("old", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match=r"--trace: cannot be written: No space left on device"):
        write_file(path, "new", "--trace")
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text(encoding="utf-8") == "old"


def test_devices_are_written_in_place() -> None:
    """The null device stays a device."""
    write_file(Path(os.devnull), "text", "--trace")
    assert not Path(os.devnull).is_file()


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder, and a file in a folder that is not there, are refused at once."""
    with pytest.raises(InputError, match="is a folder"):
        check_writable(tmp_path, "--trace")
    with pytest.raises(InputError, match="lies in a folder that does not exist"):
        check_writable(tmp_path / "none" / "a.json", "--trace")
    check_writable(tmp_path / "a.json", "--trace")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_closed_folders_are_refused(tmp_path: Path) -> None:
    """Without permission the path is refused before the run."""
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="permission denied"):
        check_writable(tmp_path / "a.json", "--trace")


class Terminal(io.StringIO):
    """Standard error of a person who watches."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_progress_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log file gets no line of a short run, and whole lines of a long one."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress_line("working") as show:
        show(0.5)
    assert log.getvalue() == ""
    monkeypatch.setattr(output, "WITHOUT_TERMINAL", -1.0)
    with progress_line("working") as show:
        show(0.01)
    assert log.getvalue() == "working: 1%\n"


def test_short_runs_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the first second the terminal stays clean."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_line("working") as show:
        show(0.5)
    assert terminal.getvalue() == ""


def test_long_runs_show_a_line_and_wipe_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while a bar shows how far it is, and it is gone in the end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "QUIET_FOR", -1.0)
    with progress_line("working") as show:
        show(0.5)
        show(0.6)
    assert terminal.getvalue() == f"\rworking [{'#' * 20}{'.' * 20}]  50%\r\x1b[2K"


def test_a_search_off_a_terminal_writes_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log gets whole lines with counts, not one for every candidate."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with counting_line("searching") as show:
        show(0.1, "3 predicted")
    assert log.getvalue() == ""
    moments = iter([0.0, 20.0, 21.0, 40.0])
    monkeypatch.setattr(output.time, "monotonic", lambda: next(moments))
    with counting_line("searching") as show:
        show(0.25, "1 of 4 settled")
        show(0.4, "2 of 4 settled")
        show(0.5, "2 of 4 settled")
    assert log.getvalue().splitlines() == [
        "searching: 25%, 1 of 4 settled, 60 s left",
        "searching: 50%, 2 of 4 settled, 40 s left",
    ]


def test_several_files_are_written_or_none(tmp_path: Path) -> None:
    """Where the last cannot be, old files hold what they held and new ones are gone."""
    old, new, closed = tmp_path / "old", tmp_path / "a" / "b" / "new", tmp_path / "file" / "in it"
    old.write_text("before", encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="--output: cannot be written"):
        write_files({old: "after", new: "after", closed: "after"}, "--output")
    assert old.read_text(encoding="utf-8") == "before"
    assert not (tmp_path / "a").exists()
    write_files({old: "after", new: "after"}, "--output")
    assert (old.read_text(encoding="utf-8"), new.read_text(encoding="utf-8")) == ("after",) * 2


def test_a_message_is_broken_at_spaces_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file or a pipe gets one line a message."""
    message = "word " * 60 + "end"
    complain(message)
    assert capsys.readouterr().err == f"plan: {message}\n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    complain(message)
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 80 for line in lines)
    assert " ".join(" ".join(lines).split()) == f"plan: {message}"
