"""What parts of the fit found, kept in a file so that a fit that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

from fitting.part import DATA, Outcome

_SOURCES: Final = (
    (DATA.parent, "**/*.py"),
    (DATA, "**/*.*"),
    (Path(__file__).resolve().parents[1], "**/*.py"),
    (Path(__file__).resolve().parents[1], "**/*.toml"),
)
"""Files that a fit is made from: model, data and the fit itself."""


@cache
def _digest(paths: tuple[tuple[Path, int, int], ...]) -> str:
    text = "\n".join(f"{path} {size} {changed}" for path, size, changed in paths)
    return hashlib.sha256(text.encode()).hexdigest()


def made_from(folder: Path | None) -> str:
    """A digest of the files that a fit is made from now, by size and time of change.

    Sets in `folder`, made from tables, count by what they hold.
    """
    paths = sorted({path for base, pattern in _SOURCES for path in base.glob(pattern)})
    features = [(path, path.stat()) for path in paths if path.is_file()]
    own = _digest(tuple((path, fact.st_size, fact.st_mtime_ns) for path, fact in features))
    sets = [] if folder is None else sorted(path for path in folder.glob("*.*") if path.is_file())
    return hashlib.sha256(b"".join([own.encode(), *(p.read_bytes() for p in sets)])).hexdigest()


class State:
    """A file with what parts found, by name, with what they were made from."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str, key: str) -> Outcome | None:
        """What a part found when it was made from the same; None otherwise."""
        entry = self._all().get(name)
        if entry is None or entry["key"] != key:
            return None
        found = entry["outcome"]
        return Outcome(
            figures=found["figures"],
            shipped=found["shipped"],
            files=found["files"],
            lines=tuple(found["lines"]),
        )

    def write(self, name: str, key: str, outcome: Outcome) -> None:
        """Keep what a part found."""
        known = self._all()
        known[name] = {"key": key, "outcome": asdict(outcome)}
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(known), encoding="utf-8")
        beside.replace(self._path)

    def _all(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        found: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        return found
