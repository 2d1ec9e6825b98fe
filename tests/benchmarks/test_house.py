"""Counters of the house stay below their committed ceilings."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.house import HOUSE


def test_no_counter_is_above_its_ceiling() -> None:
    """Lines, files, classes, twins, levers, words and golden texts only become fewer."""
    assert not "\n".join(HOUSE["over_the_ceiling"](HOUSE["static_counters"]()))


@pytest.mark.slow
def test_a_prediction_runs_no_more_functions_than_its_ceiling() -> None:
    """One `plan simulate` runs no more functions, and imports no more modules."""
    assert not "\n".join(HOUSE["over_the_ceiling"](HOUSE["run_counters"]()))


def test_twins_are_found_by_their_names(tmp_path: Path) -> None:
    """A function of the same name in `a_service` and `a`, or three in modules of other names."""
    package = tmp_path / "simulator"
    package.mkdir()
    texts = {
        "a": "def read(): ...\n",
        "a_service": "def read_service(): ...\n",
        "b": "def one(): ...\ndef two(): ...\ndef three(): ...\n",
        "serving": "class Door:\n    def one(): ...\n    def two(): ...\n    def three(): ...\n",
        "c_service": "def one(): ...\ndef two(): ...\n",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    assert HOUSE["twins"](tmp_path) == [("a_service.py", "a.py"), ("serving.py", "b.py")]


def test_a_module_of_many_keys_defines_levers(tmp_path: Path) -> None:
    """Seven keys of settings in a module of studies, beyond the one home of levers."""
    studies = tmp_path / "simulator" / "studies"
    (studies / "levers").mkdir(parents=True)
    keys = [f"train.{name}" for name in ("a", "b", "c", "d", "e", "f", "g")]
    for name, number in {"levers/catalogue": 7, "other": 7, "few": 6}.items():
        (studies / f"{name}.py").write_text(f"KEYS = {keys[:number]!r}\n", encoding="utf-8")
    assert HOUSE["lever_modules"](tmp_path) == ["studies/other.py"]
