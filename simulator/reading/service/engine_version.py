"""Versions of serving engines, as numbers that compare."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)(?:[.+-]?[a-z].*)?")


def version_number(text: str) -> tuple[int, ...] | None:
    """A version as numbers that compare; None if it is none."""
    found = _VERSION.fullmatch(text.strip().lower())
    return None if found is None else tuple(int(part) for part in found[1].split("."))
