"""What holds for every function of the formula sheet."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from simulator import equations

HERE = Path(__file__).parent
ALLOWED_IMPORTS = {"__future__", "collections.abc", "math", "numpy", "numpy.typing", "typing"}
ALLOWED_IMPORTS |= {"scipy.special", "simulator.units", "simulator.uncertainty.provenance"}
NAMES = sorted(info.name for info in pkgutil.iter_modules(equations.__path__))
UNIT = re.compile(r"\[[^\]\d][^\]]*\]|\[1\]|\[1/\$\]")
HEADLINES = ("Parameters", "Returns", "Notes", "References", "Examples")
FIXED: dict[str, Any] = {
    "servers:int": 3,
    "optimizer": "adam",
    "batch_sizes": (0.3, 0.6),
    "seconds:Points": (0.2, 0.5),
    "ends:Points": (0.2, 0.5),
    "prices:Points": (0.3, 0.2, 0.1),
    "sequential": True,
    "drop_last": False,
}


def module(name: str) -> ModuleType:
    """A module of the formula sheet."""
    return importlib.import_module(f"simulator.equations.{name}")


def public(name: str) -> dict[str, Callable[..., Any]]:
    """The functions a module defines, by name."""
    found = module(name)
    functions = inspect.getmembers(found, inspect.isfunction)
    own = {n: f for n, f in functions if f.__module__ == found.__name__}
    return {n: f for n, f in own.items() if not n.startswith("_")}


CASES = [pytest.param(f, id=f"{m}.{n}") for m in NAMES for n, f in public(m).items()]


def section(function: Callable[..., Any], headline: str) -> str:
    """The text under a headline of a function's docstring."""
    text = inspect.getdoc(function) or ""
    parts = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(headline, "")


def test_the_sheet_is_not_empty() -> None:
    """The walk over the package finds its functions."""
    assert len(CASES) > 60
    assert "page_cache" in NAMES


@pytest.mark.parametrize("function", CASES)
def test_every_section_is_there(function: Callable[..., Any]) -> None:
    """A formula comes with its parameters, result, formula, reference and worked example."""
    missing = [name for name in HEADLINES if not section(function, name).strip()]
    assert missing == []
    assert "``" in section(function, "Notes")
    assert ".. [1]" in section(function, "References")
    assert ">>>" in section(function, "Examples")


@pytest.mark.parametrize("function", CASES)
def test_every_quantity_has_a_unit(function: Callable[..., Any]) -> None:
    """Each parameter and the result say in square brackets what they are measured in."""
    blocks = re.split(r"^(\w+) : .*\n", section(function, "Parameters"), flags=re.MULTILINE)
    described = dict(zip(blocks[1::2], blocks[2::2], strict=True))
    assert list(described) == list(inspect.signature(function).parameters)
    assert [name for name, text in described.items() if not UNIT.search(text)] == []
    assert UNIT.search(section(function, "Returns"))


@pytest.mark.parametrize("function", CASES)
def test_references_can_be_found(function: Callable[..., Any]) -> None:
    """A reference names a place (URL, DOI, ISBN, repository) or a titled publication."""
    references = re.split(r"^\.\. \[\d+\] ", section(function, "References"), flags=re.MULTILINE)
    place = re.compile(r'https?://|ISBN|@[0-9a-f]{7}|".+"|\w+/[\w-]+', flags=re.DOTALL)
    assert [r for r in references[1:] if not place.search(r)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_function_has_a_test(name: str) -> None:
    """The mirrored test file uses every public function."""
    text = (HERE / f"test_{name}.py").read_text(encoding="utf-8")
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    assert sorted(set(public(name)) - used) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_sheet_imports_numbers_only(name: str) -> None:
    """Equations know no type of the layers above and no library but numpy."""
    source = inspect.getsource(module(name))
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    others = {i for i in imported - ALLOWED_IMPORTS if not i.startswith("simulator.equations.")}
    assert others == set()


def arguments(function: Callable[..., Any], count: int) -> list[dict[str, Any]]:
    """Sets of arguments between 0.1 and 0.9, which every formula is defined for."""
    rng = np.random.default_rng(7)
    drawn: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, parameter in inspect.signature(function).parameters.items():
        fixed = FIXED.get(f"{name}:{parameter.annotation}", FIXED.get(name))
        for chosen in drawn:
            chosen[name] = rng.uniform(0.1, 0.9) if fixed is None else fixed
    return drawn


@pytest.mark.parametrize("function", CASES)
def test_a_batch_gives_what_its_members_give(function: Callable[..., Any]) -> None:
    """An array of candidates gives an array of the answers each would get alone, as floats."""
    sets = arguments(function, 5)
    alone = [function(**chosen) for chosen in sets]
    batch = {n: v for n, v in sets[0].items() if any(s[n] != v for s in sets)}
    columns = {n: np.array([s[n] for s in sets]) for n in batch}
    together = function(**(sets[0] | columns))
    assert all(isinstance(value, float) for value in alone)
    np.testing.assert_allclose(np.broadcast_to(together, 5), alone, rtol=1e-10)
