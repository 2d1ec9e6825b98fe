"""What holds for every function of the formula sheet."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from support.catalogue import each
from support.docstrings import formula_of

from simulator import equations
from simulator.terms import units_of
from simulator.units import BYTE

HERE = Path(__file__).parent
ALLOWED_IMPORTS = {"__future__", "collections.abc", "math", "numpy", "numpy.typing", "typing"}
ALLOWED_IMPORTS |= {"scipy.special", "simulator.units", "simulator.schema.provenance"}
NAMES = sorted(info.name for info in pkgutil.iter_modules(equations.__path__))
FIXED: dict[str, Any] = {
    "servers:int": 3,
    "optimizer": "adam",
    "batch_sizes": (0.3, 0.6),
    "seconds:Annotated[Points, SECOND]": (0.2, 0.5),
    "ends:tuple[Bytes, ...]": (0.2, 0.5),
    "prices:tuple[UsdPerByte, ...]": (0.3, 0.2, 0.1),
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


CASES = {f"{m}.{n}": f for m in NAMES for n, f in public(m).items()}
PLACE = re.compile(r'https?://|ISBN|@[0-9a-f]{7}|".+"|\w+/[\w-]+', flags=re.DOTALL)
"""What a source can be found by: an address, a repository or a title."""


def gaps(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """What the docstring and the annotations of a function of the formula sheet lack."""
    formula = formula_of(name.partition(".")[0], function)
    if not formula.summary.startswith("Return ") or "``" not in formula.text:
        yield f"{name}: no imperative summary, or no formula"
    if not formula.sources or not all(PLACE.search(source) for source in formula.sources):
        yield f"{name}: a source that cannot be found"
    if ">>>" not in (function.__doc__ or ""):
        yield f"{name}: no worked example"
    known = set(inspect.signature(function).parameters)
    said = set(re.findall(r"(?<!`)`(\w+)`(?!`)", formula.text)) - {
        n.partition(".")[2] for n in CASES
    }
    unknown = {word for word in said - known if not word.isupper()}
    if unknown:
        yield f"{name}: explains {sorted(unknown)}, which it does not take"
    hints = typing.get_type_hints(function, include_extras=True)
    if hints.keys() != known | {"return"}:
        yield f"{name}: a quantity without a type"


def test_every_equation_has_its_formula_source_example_and_units() -> None:
    """Each function says what it returns, by which formula, from which source, in which units."""
    assert len(CASES) > 100
    assert [gap for name, function in CASES.items() for gap in gaps(name, function)] == []
    units = {u.symbol for f in CASES.values() for u in units_of(f).values() if u is not None}
    assert units > {"s", "B", "B/s", "FLOP", "FLOP/s", "/s", "$", "$/s", "J", "W"}
    assert units_of(CASES["collectives.ring_wire_bytes"]) == {
        "size": BYTE,
        "ranks": None,
        "return": BYTE,
    }


@each("name", NAMES)
def test_every_function_has_a_test(name: str) -> None:
    """The mirrored test file uses every public function."""
    text = (HERE / f"test_{name}.py").read_text(encoding="utf-8")
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    assert sorted(set(public(name)) - used) == []


@each("name", NAMES)
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


@each("name", CASES)
def test_a_batch_gives_what_its_members_give(name: str) -> None:
    """An array of candidates gives an array of the answers each would get alone, as floats."""
    function = CASES[name]
    sets = arguments(function, 5)
    alone = [function(**chosen) for chosen in sets]
    batch = {n: v for n, v in sets[0].items() if any(s[n] != v for s in sets)}
    columns = {n: np.array([s[n] for s in sets]) for n in batch}
    together = function(**(sets[0] | columns))
    assert all(isinstance(value, float) for value in alone)
    np.testing.assert_allclose(np.broadcast_to(together, 5), alone, rtol=1e-10)
