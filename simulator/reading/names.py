"""Names that a text means, and those that are most like one that means none."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Sequence
from typing import Final

from simulator.errors import UnknownName

_ALIKE: Final = 0.75
"""Similarity of the last parts of two names from which one may be meant for the other."""


def nearest_names(name: str, known: Sequence[str], most: int = 3) -> list[str]:
    """Return the known names most like `name`: the same last part comes first."""
    wanted = name.lower()
    last = wanted.rsplit("/", maxsplit=1)[-1]
    ends = [other for other in known if other.lower().rsplit("/", maxsplit=1)[-1] == last]
    folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(wanted, folded, n=most)
    begins = [other for other in known if last and f"/{last}" in other.lower()]
    holds = [other for other in known if last and last in other.lower()]
    # What people type is often a last part alone, of a name that begins otherwise.
    lasts = {other.lower().rsplit("/", maxsplit=1)[-1]: other for other in known}
    alike = difflib.get_close_matches(last, lasts, n=most, cutoff=_ALIKE)
    found = dict.fromkeys(
        [*ends, *begins, *(folded[o] for o in close), *(lasts[o] for o in alike), *holds]
    )
    return list(found)[:most]


def holding(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that begin with `text`, else those that hold it; a pattern's are all it matches.

    Case is ignored; ``*`` in a pattern is any text.

    Examples
    --------
    >>> holding("70B", ["llama-2-70b", "resnet50"]), holding("res*", ["llama-2-70b", "resnet50"])
    (('llama-2-70b',), ('resnet50',))
    """
    wanted = text.lower()
    if set(wanted) & set("*?["):
        return tuple(name for name in names if fnmatch.fnmatch(name.lower(), wanted))
    begin = tuple(name for name in names if name.lower().startswith(wanted))
    return begin or tuple(name for name in names if wanted in name.lower())


def asked_for(called: str, text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that `holding` finds for what a user typed.

    Raises
    ------
    UnknownName
        If it finds none; names the nearest, or says that a list of all can be had.
    """
    found = holding(text, names)
    if found:
        return found
    close = nearest_names(text, names)
    meant = " or ".join(repr(name) for name in close)
    hint = f"did you mean {meant}?" if close else "without a name all are listed"
    msg = f"there is no {called} '{text}'; {hint}"
    raise UnknownName(msg)
