"""Expected problems of broken files: fields in the first lines of a file, sentences in one table.

A line reads ``# expect: line=7 key=train.epochs kind=range candidates=a,b found=0``. A problem of
another file begins with ``file=``; fields that do not apply are left out, and candidates that end
in ``...`` are the first of a longer list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import Problem

MARK = "# expect: "
MAX_CANDIDATES = 8
_QUOTED = re.compile(r"'([^']+)'")
_FIELDS = re.compile(
    r"(?:file=(?P<file>\S+) ?)?(?:line=(?P<line>\d+) ?)?(?:key=(?P<key>\S+) )?kind=(?P<kind>\S+)"
    r"(?: candidates=(?P<candidates>\S+))?(?: found=(?P<found>.*))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A problem without its sentence: place, what was found and which names are offered."""

    file: str | None
    line: int | None
    key: str | None
    found: str | None
    candidates: str | None

    def written(self, kind: str) -> str:
        """Return the line of a file that expects this."""
        fields = {
            "file": self.file,
            "line": self.line,
            "key": self.key,
            "kind": kind,
            "candidates": self.candidates,
            "found": self.found,
        }
        return MARK + " ".join(
            f"{name}={text}" for name, text in fields.items() if text is not None
        )


def diagnosis(problem: Problem, file: Path) -> Diagnosis:
    """Return the fields of a problem of a broken file."""
    origin = problem.origin.removeprefix(f"{file.parent}/")
    return Diagnosis(
        file=None if origin == file.name else origin,
        line=problem.line,
        key=problem.key,
        found=problem.found,
        candidates=_candidates((problem.hint or "").replace(f"{file.parent}/", "")),
    )


def _candidates(hint: str) -> str | None:
    """Return the names that a hint offers: the closest ones, or all that are allowed."""
    _, meant, close = hint.partition("did you mean ")
    _, allowed, names = hint.partition("allowed: ")
    if meant:
        offered = _QUOTED.findall(close.partition("?")[0]) or [close.partition("?")[0]]
    elif allowed:
        offered = names.split(", ")
    else:
        return None
    more = ["..."] if len(offered) > MAX_CANDIDATES else []
    return ",".join([*offered[:MAX_CANDIDATES], *more])


def expected(file: Path) -> list[tuple[Diagnosis, str]]:
    """Return what a broken file expects: the fields of each problem and its kind."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [_read(line.removeprefix(MARK)) for line in lines if line.startswith(MARK)]


def _read(text: str) -> tuple[Diagnosis, str]:
    match = _FIELDS.fullmatch(text)
    assert match is not None, text
    line = match["line"]
    found = Diagnosis(
        file=match["file"],
        line=None if line is None else int(line),
        key=match["key"],
        found=match["found"],
        candidates=match["candidates"],
    )
    return found, match["kind"]


def _sentence(problem: Problem) -> str:
    """Return message and hint without the parser's own words and the candidates."""
    message = re.sub(r"(is not valid TOML): .*", r"\1: ...", problem.message)
    hint = re.sub(r"did you mean [^?]+\?", "did you mean ...?", problem.hint or "")
    hint = re.sub(r"allowed: .*", "allowed: ...", hint)
    return f"{message}; {hint}" if hint else message


def sentences(files: Iterable[tuple[Path, Sequence[Problem]]]) -> str:
    """Return the table of sentences: each kind of problem with its different messages and hints."""
    kinds: dict[str, set[str]] = {}
    for file, problems in files:
        for problem, (_, kind) in zip(problems, expected(file), strict=True):
            kinds.setdefault(kind, set()).add(_sentence(problem).replace(f"{file.parent}/", ""))
    lines = []
    for kind, texts in sorted(kinds.items()):
        lines += [kind, *(f"  {text}" for text in sorted(texts))]
    return "\n".join(lines) + "\n"
