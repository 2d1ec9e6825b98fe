"""Variants of a service as people write them: ``load.rate=1 /s,2 /s``, ``serving.tensor=1,2,4``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Final

from simulator.errors import InputError, Problem
from simulator.reading.service.sections import ServiceFile
from simulator.reading.tables import key_at, table_keys
from simulator.schema.fields import nearest_hint
from simulator.schema.goal import Plain

_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)(?:\s+step\s+(\d+)|\s+x(\d+))?")
"""Whole numbers from one to another: each, in steps, or each so many times the one before."""


def variants(texts: Sequence[str]) -> tuple[dict[str, Plain], ...]:
    """Every combination of the values of some keys.

    Parameters
    ----------
    texts : sequence of str
        Each ``key=value,value``; whole numbers also as ``1..8``, ``64..512 step 64`` or
        ``1..64 x2``.

    Raises
    ------
    InputError
        If a key is none, or has no values.

    Examples
    --------
    >>> variants(["serving.tensor=1..4 x2"])
    ({'serving.tensor': 1}, {'serving.tensor': 2}, {'serving.tensor': 4})
    """
    axes = dict[str, list[Plain]]()
    for text in texts:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            hint = "write key=values, such as load.rate=1 /s,2 /s"
            _refuse(text, "has no values", hint)
        if key_at(ServiceFile, tuple(key.split("."))) is None or "." not in key:
            _refuse(text, f"'{key}' is no key of a service", nearest_hint(key, _keys()))
        axes[key] = [value for part in values.split(",") for value in _values(part.strip())]
    return tuple(dict(zip(axes, point, strict=True)) for point in product(*axes.values()))


def _values(text: str) -> list[Plain]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return [text]
    low, high = int(found[1]), int(found[2])
    if found[4] is None:
        return list(range(low, high + 1, max(1, int(found[3] or 1))))
    values = list[Plain]()
    while 0 < low <= high and int(found[4]) > 1:
        values.append(low)
        low *= int(found[4])
    return values


def _keys() -> tuple[str, ...]:
    """Keys of the sections of a service."""
    return tuple(
        f"{section}.{name}"
        for section, each in table_keys(ServiceFile).items()
        for name in (() if each.table is None else table_keys(each.table))
    )


def _refuse(text: str, message: str, hint: str) -> None:
    raise InputError((Problem(origin=f"--over {text}", message=message, hint=hint or None),))
