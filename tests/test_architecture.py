"""House rules of the code, read from its syntax trees."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "simulator"
FILES = sorted(path for path in PACKAGE.rglob("*.py"))

NESTING = 3

NO_PREFIX = {
    "engine/sharing.py: 1024.0": "how often marks are rebased, a count",
    "schema/fields.py: 1000000000000000.0": "the largest plausible number",
    "importers/huggingface_shape.py: 1024": "tokens of a sequence, a count",
    "reading/long_run/interruptions.py: 1024": "accelerators of the job that was measured, a count",
    "results/assumptions.py: 1024": "accelerators of the job that was measured, a count",
}
"""file: literal: what a number that looks like a prefix is instead."""

PREFIXES = frozenset(
    [1000.0**k for k in range(2, 7)] + [1024.0**k for k in range(1, 6)] + [1e-6, 1e-3, 1e3]
)
POWERS = {2: frozenset({10, 20, 30, 40, 50}), 10: frozenset({3, 6, 9, 12, 15, 18, -3, -6})}
FACTORS_ONLY = frozenset({1e3, 1e-3, 1e-6})
"""Read as prefixes only where something is multiplied or divided by them: they may be counts."""

CASES = re.compile(
    r"\b(p3dn|p[2-6]|g[3-6]|g[56]e|trn[12]n?|inf[12]|dl1|[cmr][4-8][agin]*)\.(\d*xlarge|\d*xl|metal)"
    r"|dgx[-_ ]?[1ahb]|\b(v100|a100|h100|h200|b200|p100|m40|k80|t4|l4|a10g?)\b"
    r"|us-(east|west)-\d|\b(aws|gcp|azure|sagemaker|lambda cloud)\b"
    r"|\b(dlio|mlperf|imread_benchmark|bloomtune|kort5|sc21t1|vtrain|mbridge|foundry|torchtitan)\b"
    r"|\b(imagenet|mnist|mobileye|cifar)\b",
    re.IGNORECASE,
)
"""Machines, shops, data sets and sources: data files name them, model code never does."""
NAMES_ALLOWED = ("cli/", "importers/", "data/", "report/launch.py")
"""`report/launch.py` writes files of SkyPilot, which knows clouds by their names."""


def relative(path: Path) -> str:
    """A file's name below simulator/."""
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's tree."""
    return tuple(ast.walk(tree(path)))


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """All functions and methods of a file."""
    yield from (node for node in nodes(path) if isinstance(node, ast.FunctionDef))


def docstrings(module: ast.Module) -> set[int]:
    """Ids of the constants that document something: a string that stands alone."""
    return {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def depth(node: ast.AST) -> int:
    """How deep blocks nest below `node`; an elif is no deeper than its if."""
    blocks = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
    deepest = 0
    for name, value in ast.iter_fields(node):
        inner = value if isinstance(value, list) else [value]
        for child in inner:
            if not isinstance(child, ast.AST) or isinstance(child, ast.FunctionDef | ast.ClassDef):
                continue
            chained = name == "orelse" and isinstance(node, ast.If) and isinstance(child, ast.If)
            step = 1 if isinstance(child, blocks) and not chained else 0
            deepest = max(deepest, step + depth(child))
    return deepest


def number(node: ast.AST) -> float | None:
    """The value of a number literal, signed or not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return None if isinstance(node.value, bool) else float(node.value)
    return None


def limits(module: ast.Module) -> set[int]:
    """Ids of numbers given as ``low=`` or ``high=``: the range of what is plausible."""
    return {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.keyword) and node.arg in {"low", "high"}
    }


def prefix_literals(module: ast.Module) -> list[str]:
    """Literals that scale a unit: 1e9, 2**30, 1024, and 1000 or 1e-3 as factors."""
    found = []
    plausible = limits(module)
    for node in ast.walk(module):
        if isinstance(node, ast.BinOp):
            left, right = number(node.left), number(node.right)
            if isinstance(node.op, ast.Pow) and right in POWERS.get(int(left or 0), ()):
                found.append(ast.unparse(node))
            if isinstance(node.op, ast.LShift) and left == 1.0 and right in POWERS[2]:
                found.append(ast.unparse(node))
            if isinstance(node.op, ast.Mult | ast.Div) and FACTORS_ONLY & {left, right}:
                found.append(ast.unparse(node))
        value = number(node)
        if value in PREFIXES - FACTORS_ONLY and id(node) not in plausible:
            found.append(ast.unparse(node))
    return found


def test_nesting_is_shallow() -> None:
    """No block lies deeper than three inside its function."""
    deep = {
        f"{relative(path)}:{function.name}": depth(function)
        for path in FILES
        for function in functions(path)
        if depth(function) > NESTING
    }
    assert deep == {}


def test_only_units_knows_a_prefix() -> None:
    """A power of 1000 or 1024 in code is a unit conversion done by hand."""
    found = [
        f"{relative(path)}: {literal}"
        for path in FILES
        for literal in prefix_literals(tree(path))
        if relative(path) != "units.py"
    ]
    assert [literal for literal in found if literal not in NO_PREFIX] == []


@pytest.mark.parametrize(
    "text",
    [
        "x = 1e9",
        "x = 2**30",
        "x = 10**6",
        "x = 1024",
        "x = y * 1024**3",
        "x = y / 1e3",
        "x = 1 << 20",
        "x = y * 1e-6",
        "x = 1_000_000",
    ],
)
def test_a_prefix_literal_is_found(text: str) -> None:
    """The scan sees every way to write a prefix."""
    assert prefix_literals(ast.parse(text))


@pytest.mark.parametrize(
    "text", ["f(high=1e6)", "x = 1000", "x = 1e-9", "x = 2**3", "x = 96 * y", "ok = True"]
)
def test_other_numbers_are_allowed(text: str) -> None:
    """Counts, tolerances and small powers are no prefixes."""
    assert prefix_literals(ast.parse(text)) == []


def cited(module: ast.Module) -> set[int]:
    """Ids of what stands in a `Source`: it says where a figure is from and steers nothing."""
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    sources = [call for call in calls if getattr(call.func, "id", "") == "Source"]
    return {id(node) for call in sources for node in ast.walk(call)}


def words(path: Path) -> list[str]:
    """Strings and names of a file's code, without documentation and citations."""
    module = tree(path)
    ignored = docstrings(module) | cited(module)
    found = [
        node.value if isinstance(node, ast.Constant) else getattr(node, "id", "")
        for node in ast.walk(module)
        if isinstance(node, ast.Constant | ast.Name) and id(node) not in ignored
    ]
    return [word for word in found if isinstance(word, str)]


def test_model_code_names_no_case() -> None:
    """No machine, shop, data set or source of a known answer steers the code."""
    model = [path for path in FILES if not relative(path).startswith(NAMES_ALLOWED)]
    said = [
        f"{relative(path)}: {word}" for path in model for word in words(path) if CASES.search(word)
    ]
    assert said == []


def test_model_code_names_no_scenario(root: Path) -> None:
    """No shipped scenario's name stands in the code."""
    names = {path.stem for path in (root / "scenarios").glob("*.toml")}
    assert names
    said = {word for path in FILES for word in words(path)}
    assert [name for name in sorted(names) if any(name in word for word in said)] == []


def test_suppressions_name_a_rule_and_a_reason() -> None:
    """``noqa`` and ``type: ignore`` say which rule and why."""
    mark = re.compile(r"#\s*(?:noqa|type:\s*ignore).*")
    marks = [
        (relative(path), found)
        for path in FILES
        for found in mark.findall(path.read_text(encoding="utf-8"))
    ]
    good = re.compile(r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[\w, -]+\]) ?(#|-) ?\S+")
    assert [(name, found) for name, found in marks if not good.match(found)] == []


def test_nothing_is_imported_wholesale() -> None:
    """No ``import *``, and no assert on the user's input."""
    every = [(relative(path), node) for path in FILES for node in nodes(path)]
    imports = [(name, node) for name, node in every if isinstance(node, ast.ImportFrom)]
    assert [name for name, node in imports if node.names[0].name == "*"] == []
    assert [(name, node.lineno) for name, node in every if isinstance(node, ast.Assert)] == []


def test_every_package_explains_itself() -> None:
    """Each package has a docstring that says what it is for."""
    packages = [path for path in FILES if path.name == "__init__.py"]
    assert [relative(path) for path in packages if not ast.get_docstring(tree(path))] == []


def test_the_version_has_one_home(root: Path) -> None:
    """pyproject.toml reads the version from the code."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "simulator/version.py"
