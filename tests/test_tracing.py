"""Coverage counts the first moment of a test, and nothing of what comes later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.stages import sampled

TESTS = """
import sys
import time

import counted


def deep(levels):
    return deep(levels - 1) if levels else busy()


def busy():
    end = time.process_time() + 1.0
    while time.process_time() < end:
        if sys.gettrace() is None:
            counted.late()
            return True
    return False


def test_a_long_one_goes_on_untraced():
    assert sys.gettrace() is not None
    assert deep(20)


def test_the_next_one_is_traced_anew():
    assert sys.gettrace() is not None
    counted.early()
"""
COUNTED = """
def early():
    return 1


def late():
    return 2
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="coverage needs no tracer there")
@pytest.mark.parametrize("processes", sampled(["0", "2"], 1))
def test_what_is_counted(tmp_path: Path, root: Path, processes: str) -> None:
    """Lines of the first moment, in one process and in several; the others are missing."""
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "counted.py").write_text(COUNTED, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = (
        "-p",
        "support.tracing",
        "-n",
        processes,
        "--cov=counted",
        "--cov-report=term-missing",
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-m", "pytest", "-q", *options, "test_it.py"],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONPATH": f"{root / 'tests'}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("counted.py")]
    assert line.split()[-1] == "7"
