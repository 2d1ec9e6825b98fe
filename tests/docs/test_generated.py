"""Pages made of docstrings are what the docstrings say; Python examples on pages run.

``<!-- made of: formulas -->`` (or python) until ``<!-- end -->`` is written by
``pytest tests/docs --update-golden``.
"""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest
from support.docstrings import formula_sheet, formulas, python_api

import simulator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {
    "formulas": (DOCS / "reference" / "equations.md", formula_sheet),
    "python": (DOCS / "reference" / "python.md", python_api),
}
WITH_PYTHON = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *DOCS.rglob("*.md"))
    if "\n>>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("what", MADE)
def test_made_pages_are_up_to_date(what: str, request: pytest.FixtureRequest) -> None:
    """The part between the markers is what the docstrings say now."""
    path, make = MADE[what]
    text = path.read_text(encoding="utf-8")
    start, end = f"<!-- made of: {what} -->\n", "<!-- end -->"
    before, found, rest = text.partition(start)
    assert found
    after = rest.partition(end)[2]
    real = f"{before}{start}\n{make()}\n{end}{after}"
    if request.config.getoption("--update-golden"):
        path.write_text(real, encoding="utf-8")
        return
    assert text == real


def test_every_formula_and_argument_is_listed() -> None:
    """No public function of the formula sheet is left out, and no argument of one."""
    parts = dict(
        re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", formula_sheet(), re.MULTILINE | re.DOTALL)
    )
    known = list(formulas())
    assert len(known) > 50
    for one in known:
        of = re.search(r"^- \*Of\*: (.*)$", parts[f"{one.module}.{one.name}"], re.MULTILINE)
        listed = re.findall(r"`(\w+)`", of[1]) if of else []
        assert listed == list(inspect.signature(one.function).parameters)


def test_every_public_name_is_described() -> None:
    """What `simulator` exports has a section, but for the version."""
    page = python_api()
    for name in set(simulator.__all__) - {"__version__"}:
        assert re.search(rf"^## (class )?{name}$", page, re.MULTILINE), name


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_examples_run(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every ``>>>`` on a page gives what the page says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAN_STORE", str(tmp_path / "results.sqlite"))
    found = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0
