"""No machine, source or case of a known answer is named in the code of the model.

Documentation and citations may name them, and so may data files; what runs may not.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "simulator").rglob("*.py"))
WORDS_OF_THE_TRADE = {"memory", "assumed", "derived", "pcie"}
"""Keys of sources that are words as well."""
DATA_SETS = {"imagenet", "mnist", "cifar", "coco"}
CASE = re.compile(r"[A-E]\d{1,2}")


def names() -> set[str]:
    """All machines, processors and accelerators, sources, and scenarios that are shipped."""
    profiles = ROOT / "hardware_profiles"
    found = {
        path.stem
        for kind in ("gpu", "cpu", "node", "instance")
        for path in (profiles / kind).rglob("*.toml")
    }
    found |= set(tomllib.loads((profiles / "sources.toml").read_text(encoding="utf-8")))
    found |= {path.stem for path in (ROOT / "scenarios").glob("*.toml")}
    lowered = {name.lower() for name in found if name != "schema"}
    return (lowered | DATA_SETS) - WORDS_OF_THE_TRADE


NAMED = re.compile(
    r"(?<![\w.-])("
    + "|".join(sorted(map(re.escape, names()), key=len, reverse=True))
    + r")(?![\w-])",
    re.IGNORECASE,
)


def told(module: ast.Module) -> set[int]:
    """Ids of what documents or cites: strings that stand alone, and all of a `Source`."""
    nodes = list(ast.walk(module))
    alone = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    cited = {
        id(part)
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Source"
        for part in ast.walk(node)
    }
    return alone | cited


def words(module: ast.Module) -> Iterator[str]:
    """Every string and name of the code that runs."""
    ignored = told(module)
    for node in ast.walk(module):
        if id(node) in ignored:
            continue
        values = (getattr(node, key, None) for key in ("value", "id", "attr", "arg", "name"))
        yield from (value for value in values if isinstance(value, str))


def found_in(text: str) -> list[str]:
    """Words of a file that name something they must not."""
    return sorted(filter(is_named, set(words(ast.parse(text)))))


@cache
def is_named(word: str) -> bool:
    """Whether a word names something that it must not."""
    return bool(NAMED.search(word) or CASE.fullmatch(word))


def test_no_name_steers_the_code() -> None:
    """Machines, sources and cases are data."""
    assert len(FILES) > 100
    found = {path.relative_to(ROOT).as_posix(): found_in(path.read_text("utf-8")) for path in FILES}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize(
    "text",
    [
        'x = host == "p4d.24xlarge"',
        'x = "instance/aws-managed/ml.c5.18xlarge"',
        'x = {"FFCV": 0.014}',
        'if name.startswith("a100-sxm4-40gb"): pass',
        "case = 'A12'",
        "def f(): return mnist",
    ],
)
def test_a_name_is_found(text: str) -> None:
    """The search sees names in strings and in the code."""
    assert found_in(text)


def test_there_are_names_to_look_for() -> None:
    """The catalogue and the sources were read."""
    assert {"ml.p4d.24xlarge", "ffcv", "dgx-a100-80gb", "v100-sxm2-16gb"} <= names()
