"""Chains from a printed number to its formula, and what of them a run confirms."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from simulator.cli.main import main

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "simulator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A number of the screen: the functions and fields from where it is printed to its formula."""

    number: str
    command: tuple[str, ...]
    chain: tuple[str, ...]

    @property
    def hops(self) -> int:
        """Steps from one entry to the next."""
        return len(self.chain) - 1


def chains() -> list[Chain]:
    """Return the committed chains."""
    text = (ROOT / "tests" / "hops.toml").read_text(encoding="utf-8")
    return [
        Chain(
            number=one["number"],
            command=("simulate", one["scenario"], "--no-actions", *(["--full"] * one["full"])),
            chain=tuple(one["chain"]),
        )
        for one in tomllib.loads(text)["numbers"]
    ]


def problems(chain: Chain) -> Iterator[str]:
    """Yield what of a chain is not so: an entry that does not run, or a step that is none."""
    run, calls = traced(chain.command)
    for entry in chain.chain:
        if source(entry) is None:
            yield f"{chain.number}: {entry} is gone"
        elif is_function(entry) and entry not in run:
            yield f"{chain.number}: {entry} does not run"
    for here, there in zip(chain.chain, chain.chain[1:], strict=False):
        if not ({(here, there), (there, here)} & calls or _names(here, there)):
            yield f"{chain.number}: {here} neither calls nor names {there}"


def _names(here: str, there: str) -> bool:
    """Whether one of two entries names the other: a field by what reads or fills it in."""
    return _mentions(here, there) or (not is_function(here) and _mentions(there, here))


def _mentions(entry: str, named: str) -> bool:
    name = named.rpartition(":")[2].strip('"')
    name = name if '"' in named else name.rpartition(".")[2]
    return re.search(rf"\b{re.escape(name)}\b", source(entry) or "", re.IGNORECASE) is not None


def is_function(entry: str) -> bool:
    """Whether an entry is a function or method: no field of a class, no row of a table."""
    return isinstance(_node(entry), ast.FunctionDef)


@cache
def source(entry: str) -> str | None:
    """Return the code of an entry: a function, a class, its member, or a row of a table."""
    node = _node(entry)
    return None if node is None else ast.unparse(node)


@cache
def _node(entry: str) -> ast.AST | None:
    file, _, name = entry.partition(":")
    path = PACKAGE / file
    if not path.exists():
        return None
    node: ast.AST | None = ast.parse(path.read_text(encoding="utf-8"))
    if name.startswith('"'):
        return next((one for one in ast.walk(node) if _is_row(one, name.strip('"'))), None)
    for part in name.split("."):
        body: Sequence[ast.AST] = getattr(node, "body", ())
        node = next((one for one in body if _called(one) == part), None)
    return node


def _is_row(node: ast.AST, name: str) -> bool:
    """Whether a node is a call with this name as its first or its `name` argument."""
    if not isinstance(node, ast.Call):
        return False
    named = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "name")]
    return any(isinstance(one, ast.Constant) and one.value == name for one in named)


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.AnnAssign):
        return getattr(node.target, "id", "")
    return getattr(node, "name", "")


@cache
def traced(command: tuple[str, ...]) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Return the functions that a command runs, and who calls whom."""
    run: set[CodeType] = set()
    calls: set[tuple[CodeType, CodeType]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            run.add(frame.f_code)
            if frame.f_back is not None:
                calls.add((frame.f_back.f_code, frame.f_code))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        main([*command])
    finally:
        sys.setprofile(before)
    named = {code: _entry(code) for code in run}
    found = {(named.get(a), named.get(b)) for a, b in calls}
    return (
        frozenset(name for name in named.values() if name),
        frozenset((a, b) for a, b in found if a and b and a != b),
    )


def _entry(code: CodeType) -> str | None:
    """Return a function as chains name it; code inside of one counts as that one."""
    path = Path(code.co_filename)
    if PACKAGE not in path.parents:
        return None
    name = code.co_qualname.partition(".<locals>")[0]
    return f"{path.relative_to(PACKAGE).as_posix()}:{name}"
