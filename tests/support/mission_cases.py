"""Rows of published articles, answered by `plan` itself from the scenarios in tests/mission/cases.

A row is one command, run in this process as a user would type it; its figures come from the JSON
that the command prints, and nothing else is computed here than what the row says of them.
"""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from simulator.cli.main import main
from simulator.cli.output import Exit

FOLDER = Path(__file__).resolve().parents[1] / "mission" / "cases"
ANSWERED = {Exit.FINE, Exit.DOES_NOT_FIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of `cases.toml`, which says what its keys mean."""

    id: str
    what: str
    scenario: str
    command: Literal["simulate", "compare", "explain"] = "simulate"
    beside: str = ""
    set: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    over: str = ""
    times: float = 1.0
    invert: bool = False
    published: float = 1.0
    within: float | None = None
    digits: str = "{:,.4g}"
    least: float | None = None
    says: str = ""
    passes: tuple[str, ...] = ()
    known: bool = False
    short: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command as it is typed after ``plan``."""
        files = [_path(name) for name in (self.scenario, self.beside) if name]
        metric = [self.of[0]] if self.command == "explain" and self.of else []
        keys = [word for key in self.set for word in ("--set", key)]
        return (self.command, *files, *metric, *keys, "--json")

    @property
    def ours(self) -> float:
        """What the command answers; 1 for a yes, 0 for a no."""
        tree = answer(self.arguments)
        if self.says:
            return float(any(self.says in text for text in tree["warnings"]))
        if self.passes:
            stages = [t["of"] for t in tree["terms"] if t["kind"] == "demand"]
            found = [stage for stage in dict.fromkeys(stages) if stage in self.passes]
            return float(found == list(self.passes))
        value = sum(_figure(tree, name) for name in self.of)
        value = value / _figure(tree, self.over) if self.over else value
        return self.times * (1.0 / value if self.invert else value)

    @property
    def yes_or_no(self) -> bool:
        """Whether the row is no figure but a fact."""
        return bool(self.says or self.passes)

    @property
    def holds(self) -> bool:
        """Whether our answer is as close to the published one as the row asks."""
        if self.least is not None:
            return self.ours >= self.least
        if self.yes_or_no:
            return self.ours == 1.0
        if self.within is not None:
            return abs(self.ours / self.published - 1.0) <= self.within
        return self.digits.format(self.ours) == self.digits.format(self.published)


@cache
def cases() -> tuple[Case, ...]:
    """All rows, in the order of the file."""
    read = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    return tuple(
        Case(**{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()})
        for row in read["case"]
    )


@cache
def answer(arguments: tuple[str, ...]) -> Mapping[str, Any]:
    """The JSON that a command prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    assert code in ANSWERED, (arguments, err.getvalue())
    tree: Mapping[str, Any] = json.loads(out.getvalue())
    return tree


def _path(name: str) -> str:
    return str(FOLDER / name) if name.endswith(".toml") else name


def _figure(tree: Mapping[str, Any], name: str) -> float:
    """A number at a dotted path, by places in lists and by names that hold dots themselves."""
    if "terms" in tree:
        return float(next(t["value"] for t in tree["terms"] if t["name"] == name))
    found = _at(tree, name)
    assert isinstance(found, int | float), (name, found)
    return float(found)


def _at(tree: Any, path: str) -> Any:
    """What lies at a path, the longest key first."""
    if not path:
        return tree
    if isinstance(tree, list):
        head, _, rest = path.partition(".")
        return _at(tree[int(head)], rest)
    words = path.split(".")
    for count in range(len(words), 0, -1):
        key = ".".join(words[:count])
        if isinstance(tree, Mapping) and key in tree:
            return _at(tree[key], ".".join(words[count:]))
    return None
