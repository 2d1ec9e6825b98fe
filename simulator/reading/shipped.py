"""Locations of the scenarios and the measurement sets that come with plan."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parents[1]
DATA: Final = _PACKAGE / "data"
"""Folder of the figures, models and measurement sets in the package."""


def scenario_folder() -> Path:
    """Return the folder of shipped scenarios."""
    return shipped_folder("scenarios")


def service_folder() -> Path:
    """Return the folder of shipped services."""
    return shipped_folder("services")


def shipped_folder(kind: str) -> Path:
    """Return the folder of files of a kind, in the installed package or the checkout."""
    packaged = DATA / kind
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind


def service_names() -> tuple[str, ...]:
    """Return the names of the shipped services, sorted."""
    return tuple(sorted(file.stem for file in service_folder().glob("*.toml")))


def scenario_names() -> tuple[str, ...]:
    """Return the names of the shipped scenarios, sorted; a name in a subfolder contains a slash."""
    folder = scenario_folder()
    files = folder.rglob("*.toml")
    return tuple(sorted(file.relative_to(folder).with_suffix("").as_posix() for file in files))


def scenario_path(name: str) -> Path | None:
    """Return the file of the shipped scenario `name`, with or without ``.toml``, else None."""
    plain = name.removesuffix(".toml")
    # A name is a path below the folder as it is listed: no steps up, nothing that means nothing.
    if not plain or Path(plain).is_absolute() or ".." in Path(plain).parts:
        return None
    for folder in (scenario_folder(), service_folder()):
        path = folder / f"{plain}.toml"
        listed = path.relative_to(folder).with_suffix("").as_posix() == plain
        if listed and _tried(path.is_file):
            return path
    return None


@lru_cache(maxsize=256)  # asked for each figure of each candidate of a sweep
def without_folder(origin: str) -> str:
    """Return the path of a shipped scenario relative to the package; other names are unchanged.

    Examples
    --------
    >>> without_folder(str(scenario_folder() / "mine.toml")), without_folder("mine.toml")
    ('scenarios/mine.toml', 'mine.toml')
    """
    for name, folder in (("scenarios", scenario_folder()), ("services", service_folder())):
        if Path(origin).is_relative_to(folder):
            return f"{name}/{Path(origin).relative_to(folder).as_posix()}"
    return origin


def find_scenario(name_or_path: str, folder: Path = Path()) -> Path | None:
    """Return the file of a path or of a shipped scenario's name.

    Parameters
    ----------
    name_or_path : str
        Such as ``mine.toml``, ``../other/mine.toml`` or ``resnet50-imagenet-p4d``.
    folder : pathlib.Path
        Folder to which paths are relative.

    Returns
    -------
    pathlib.Path or None
        A file of that name, else a shipped scenario. A path in or of a folder is returned even
        if there is no such file: reading it reports the error. None for an unknown bare name.
    """
    path = folder / name_or_path
    if _tried(path.is_file) or _tried(path.is_fifo) or _tried(path.is_char_device):
        return path
    shipped = scenario_path(name_or_path)
    if shipped is not None:
        return shipped
    is_path = len(Path(name_or_path).parts) > 1 or _tried(path.exists)
    return path if is_path else None


def nearest_shipped(name: str, most: int = 3) -> list[str]:
    """Return shipped scenarios and services with a similar name, those with the prefix first."""
    every = (*scenario_names(), *service_names())
    begun = [other for other in every if name and other.startswith(name)]
    return list(dict.fromkeys((*begun, *difflib.get_close_matches(name, every, n=most))))[:most]


def nearest_scenarios(name: str, folder: Path = Path()) -> str:
    """Return a hint for a scenario that does not exist: the nearest files and shipped names."""
    try:
        beside = {file.stem: file.name for file in folder.iterdir() if file.suffix == ".toml"}
    except OSError:
        beside = {}
    shipped, plain = scenario_names(), Path(name).stem
    files = [beside[stem] for stem in difflib.get_close_matches(plain, beside, n=2)]
    close = [*files, *nearest_shipped(name.removesuffix(".toml"))]
    if close:
        return f"did you mean {' or '.join(repr(other) for other in close)}?"
    if name.endswith(".toml"):
        return "`plan init` writes a first one"
    if not shipped:
        return "none are shipped"
    some = difflib.get_close_matches(name, shipped, n=3, cutoff=0.0)
    return f"{len(shipped)} are shipped in {scenario_folder()}, such as {', '.join(some)}"


def _tried(test: Callable[[], bool]) -> bool:
    """Return the result of a test of a path; False for an invalid path, as with a zero byte."""
    try:
        return test()
    except (OSError, ValueError):
        return False


_FOLDER = DATA / "measured"
_BASES = "bases"


def set_folder() -> Path:
    """Return the folder of the shipped measurement sets: a TOML and a CSV file each."""
    return _FOLDER


def set_names() -> tuple[str, ...]:
    """Return the names of the shipped measurement sets, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def find_set(name_or_path: str, scenario: str | None = None) -> Path | None:
    """Return the TOML file of a measurement set: that file, else a shipped set, else None.

    The name may lack its ``.toml``. The set's CSV file identifies the set too, unless the TOML file
    next to it is the `scenario` of its rows.
    """
    path = Path(name_or_path)
    is_table = path.suffix == ".csv"
    beside = path.with_suffix(".toml") if is_table else Path(f"{path}.toml")
    is_job = scenario is not None and beside.resolve() == Path(scenario).resolve()
    stands = not is_job and (_is_file(path) or not is_table)
    found = next((p for p in (beside, path) if _is_file(p) and (stands or p == path)), None)
    if found is not None:
        return found
    plain = name_or_path.removesuffix(".toml")
    if plain in set_names():
        return _FOLDER / f"{plain}.toml"
    return path if len(path.parts) > 1 else None


def nearest_sets(name: str) -> str:
    """Return a hint for a measurement set that does not exist."""
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
    """Return the base scenario of rows of a set in `folder`; None if it does not exist.

    A file in the folder comes first, with or without ``.toml``, then the bases of the shipped sets,
    then the shipped scenarios.
    """
    plain = name.removesuffix(".toml")
    for place in (folder, _FOLDER / _BASES):
        path = place / f"{plain}.toml"
        if _is_file(path):
            return path
    found = find_scenario(name, folder)
    return found if found is not None and _is_file(found) else None


def nearest_bases(name: str, folder: Path) -> str:
    """Return a hint for a base that does not exist."""
    plain = name.removesuffix(".toml")
    places = [*folder.glob("*.toml"), *(_FOLDER / _BASES).glob("*.toml")]
    known = [*(path.stem for path in places), *scenario_names()]
    close = difflib.get_close_matches(plain, known, n=2)
    if close:
        return f"did you mean {' or '.join(repr(other) for other in close)}?"
    return "name a scenario file next to the set, or a shipped scenario"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
