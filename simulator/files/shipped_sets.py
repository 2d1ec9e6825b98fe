"""Where the measurement sets that come with plan lie, and the scenarios that their rows change."""

from __future__ import annotations

import difflib
from pathlib import Path

from simulator.files.shipped import find_scenario, scenario_names

_FOLDER = Path(__file__).resolve().parents[1] / "data" / "measured"
_BASES = "bases"


def set_folder() -> Path:
    """The folder of the shipped sets: a TOML and a CSV file each."""
    return _FOLDER


def set_names() -> tuple[str, ...]:
    """Names of the shipped sets, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def find_set(name_or_path: str) -> Path | None:
    """The TOML file of a measurement set: a file of that name, else a shipped set; None if none.

    The name may lack its ``.toml``, and the set's CSV file stands for the set.
    """
    path = Path(name_or_path)
    beside = path.with_suffix(".toml") if path.suffix == ".csv" else Path(f"{path}.toml")
    found = next((p for p in (beside, path) if _is_file(p)), None)
    if found is not None:
        return found
    plain = name_or_path.removesuffix(".toml")
    if plain in set_names():
        return _FOLDER / f"{plain}.toml"
    return path if len(path.parts) > 1 else None


def nearest_sets(name: str) -> str:
    """Advice on a set that doesn't exist."""
    beside = [file.name for file in Path().iterdir() if file.suffix == ".toml"]
    plain = name.removesuffix(".toml")
    close = [
        *difflib.get_close_matches(name, beside, n=2),
        *difflib.get_close_matches(plain, set_names(), n=2),
    ]
    if close:
        return f"did you mean {' or '.join(repr(other) for other in close)}?"
    return f"shipped: {', '.join(set_names())}"


def find_base(name: str, folder: Path) -> Path | None:
    """The scenario that rows of a set in `folder` change.

    A file in the folder comes first, with or without ``.toml``, then the bases of the shipped
    sets, then the shipped scenarios.
    """
    plain = name.removesuffix(".toml")
    for place in (folder, _FOLDER / _BASES):
        path = place / f"{plain}.toml"
        if _is_file(path):
            return path
    found = find_scenario(name, folder)
    return found if found is not None and _is_file(found) else None


def nearest_bases(name: str, folder: Path) -> str:
    """Advice on a base that doesn't exist."""
    plain = name.removesuffix(".toml")
    places = [*folder.glob("*.toml"), *(_FOLDER / _BASES).glob("*.toml")]
    known = [*(path.stem for path in places), *scenario_names()]
    close = difflib.get_close_matches(plain, known, n=2)
    if close:
        return f"did you mean {' or '.join(repr(other) for other in close)}?"
    return "name a scenario file beside the set, or a shipped scenario"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
