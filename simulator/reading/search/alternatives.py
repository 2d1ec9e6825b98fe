"""What else a key that somebody gave could have said: for finding out whether it matters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from simulator.reading.document import Document
from simulator.reading.keys import OF_THE_RUN
from simulator.reading.lines import KeyPath
from simulator.reading.settings import choices_of, is_switch, marker_of, mistake, setting_names
from simulator.schema.fields import Number, Quantity
from simulator.schema.goal import Plain

FOR_PEOPLE: Final = frozenset(
    {"data.name", "remote.name", "software.framework", "software.version", "calibration.overlay"}
)
"""Keys that say what something is called, for people and for the evidence near a job."""
FACTORS: Final = (2.0, 0.5, 1.5, 1e3, 1e-3, 1e5)
"""What amounts are multiplied with, one after another; far too, for what another amount hides."""
_AMOUNT: Final = re.compile(r"^(\s*\$?\s*)([0-9][0-9._]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)(.*)$")


def given_keys(document: Document) -> tuple[str, ...]:
    """Keys with a single value that the document's own file gives, or an option over it.

    What it extends is somebody else's: nothing is said about keys there. Keys of a
    long run change no step and are left out.
    """
    return tuple(
        name
        for name in setting_names()
        if name not in FOR_PEOPLE
        and name.partition(".")[0] not in OF_THE_RUN
        and _is_own(document, tuple(name.split(".")))
    )


def _is_own(document: Document, path: KeyPath) -> bool:
    if not document.says(path):
        return False
    origin, _ = document.where(path)
    return origin == document.origin or origin.startswith("--set")


def without_key(data: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """The same tables without the key at a path.

    Examples
    --------
    >>> without_key({"data": {"name": "a", "samples": 1}}, ("data", "name"))
    {'data': {'samples': 1}}
    """
    first, rest = str(path[0]), path[1:]
    if not rest:
        return {key: value for key, value in data.items() if key != first}
    return {key: without_key(value, rest) if key == first else value for key, value in data.items()}


def alternatives(name: str, value: object) -> tuple[Plain, ...]:
    """Other values that a key may have by itself, in the order in which to try them.

    Parameters
    ----------
    name : str
        The key, with a dot.
    value : object
        What it says now.

    Returns
    -------
    tuple
        Empty for names of profiles and models, and for figures of shapes.

    Examples
    --------
    >>> alternatives("input.pin_memory", True), alternatives("input.workers", 4)
    ((False,), (8, 2, 6, 4000, 0))
    >>> alternatives("data.bytes_per_sample", "110 kB")[:3]
    ('220.0 kB', '55.0 kB', '165.0 kB')
    """
    marker = marker_of(name)
    if is_switch(name):
        return (not value,)
    if choices_of(name):
        return tuple(choice for choice in choices_of(name) if choice != value)
    if isinstance(marker, Number) and isinstance(value, int | float):
        found: tuple[Plain, ...] = _numbers(value, whole=marker.whole)
    elif isinstance(marker, Quantity) and isinstance(value, str):
        found = _amounts(value)
    else:
        return ()
    return tuple(one for one in found if one != value and mistake(name, one) is None)


def _numbers(value: float, *, whole: bool) -> tuple[Plain, ...]:
    if value == 0:
        return (1,) if whole else (0.5,)
    several = (value * factor for factor in FACTORS)
    found = (round(one) if whole else float(one) for one in several)
    return tuple(dict.fromkeys(found))


def _amounts(value: str) -> tuple[Plain, ...]:
    parts = _AMOUNT.match(value)
    if parts is None:
        return ()
    sign, number, unit = parts.groups()
    amount = float(number.replace("_", ""))
    others = [amount * factor for factor in FACTORS] if amount else [1.0]
    return tuple(f"{sign}{other!r}{unit}" for other in others)
