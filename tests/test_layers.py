"""The import layers hold, and the check that says so can fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)

PLANTED = {
    "equations/planted.py": "import simulator.engine",
    "engine/planted.py": "import simulator.reading",
    "schema/planted.py": "import simulator.results",
    "pipeline/stages/planted.py": "import simpy",
    "report/planted.py": "import click\nimport matplotlib",
    "predict.py": "import pandas",
}
BROKEN = (
    "simulator.equations is not allowed to import simulator.engine",
    "simulator.engine is not allowed to import simulator.reading",
    "simulator.schema is not allowed to import simulator.results",
    "simulator.pipeline.stages.planted -> simpy",
    "simulator.report.planted -> click",
    "simulator.report.planted -> matplotlib",
    "simulator.predict -> pandas",
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the copy in `folder`."""
    return subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A copy of the package and its contracts."""
    pytest.importorskip("importlinter", reason="import-linter is an extra: pip install '.[test]'")
    shutil.copytree(
        root / "simulator", tmp_path / "simulator", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(root / ".importlinter", tmp_path)
    return tmp_path


def test_the_layers_hold(copy: Path) -> None:
    """No module imports from a layer above its own, and libraries stay where they belong."""
    done = lint(copy)
    assert done.returncode == 0, done.stdout


def test_planted_violations_are_found(copy: Path) -> None:
    """Every kind of forbidden import breaks the contract that forbids it."""
    for name, text in PLANTED.items():
        with (copy / "simulator" / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    done = lint(copy)
    assert done.returncode != 0
    missed = [line for line in BROKEN if line not in done.stdout]
    assert not missed, done.stdout


def test_an_unplaced_module_is_found(copy: Path) -> None:
    """A new top-level module has to be given a layer."""
    (copy / "simulator" / "unplaced.py").write_text('"""Nowhere."""\n', encoding="utf-8")
    done = lint(copy)
    assert done.returncode != 0
    assert "unplaced" in done.stdout
