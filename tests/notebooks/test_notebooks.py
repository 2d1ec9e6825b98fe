"""Notebooks run from the first cell to the last, and the shipped outputs belong to their sources.

``pytest -m slow tests/notebooks --update-golden`` executes them and writes the outputs anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulator.version import __version__

jupytext: Any = pytest.importorskip(
    "jupytext", reason="jupytext is not installed (extra: notebooks)"
)
nbclient: Any = pytest.importorskip(
    "nbclient", reason="nbclient is not installed (extra: notebooks)"
)

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
LIMIT = 400
"""Seconds that a cell may take: a hang ends, a busy machine is forgiven."""


def cells(notebook: Any) -> list[tuple[str, str]]:
    """Kind and text of every cell."""
    return [(cell["cell_type"], cell["source"].strip()) for cell in notebook["cells"]]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_outputs_belong_to_the_source(source: Path) -> None:
    """The notebook with outputs has the cells of the text it is paired with, all executed."""
    written = jupytext.read(source.with_suffix(".ipynb"))
    assert cells(written) == cells(jupytext.read(source))
    ran = [cell["execution_count"] for cell in written["cells"] if cell["cell_type"] == "code"]
    assert ran == list(range(1, len(ran) + 1))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_it_runs(source: Path, request: pytest.FixtureRequest) -> None:
    """Every cell does, in a fresh kernel."""
    notebook = jupytext.read(source)
    nbclient.NotebookClient(
        notebook,
        timeout=LIMIT,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER.parent)}},
    ).execute()
    failed = [
        output
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]
    assert failed == []
    if request.config.getoption("--update-golden"):
        for cell in notebook["cells"]:
            cell["metadata"].pop("execution", None)  # when it ran changes every time
        notebook["metadata"]["plan"] = __version__
        jupytext.write(notebook, source.with_suffix(".ipynb"))
