"""TOML text of profiles and sections: figures with source, date and note, as people write them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from simulator import units
from simulator.units import Unit

_DIGITS = 6
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of a profile: its key, its value as TOML, and who says so."""

    key: str
    value: str
    source: str
    date: str
    verified: bool = True
    note: str = ""

    def __str__(self) -> str:
        parts = [f"value = {self.value}", f"source = {quote(self.source)}"]
        parts.append(f"date = {quote(self.date)}")
        if not self.verified:
            parts.append("verified = false")
        if self.note:
            parts.append(f"note = {quote(self.note)}")
        return f"{self.key} = {{ {', '.join(parts)} }}"


def quantity(value: float, unit: Unit) -> str:
    """A quantity as a TOML string that `units.parse` reads back, to six digits.

    Examples
    --------
    >>> quantity(5e10, units.BYTE_PER_SECOND)
    '"50 GB/s"'
    """
    shown = units.show(value, unit, _DIGITS)
    # Beyond all prefixes people get digits in groups, which do not read back.
    return quote(f"{value:.{_DIGITS}g} {unit.symbol}" if "," in shown else shown)


def quote(text: str) -> str:
    r"""`text` as a TOML basic string.

    Examples
    --------
    >>> print(quote('a "b" \\ c'))
    "a \"b\" \\ c"
    """
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """`text` as lines of comment, whatever it holds."""
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return "\n".join(f"# {line}".rstrip() for line in clean.split("\n"))


def table(name: str, lines: Iterable[Line | str]) -> str:
    """A table with a heading (none if `name` is empty) and one line a figure."""
    heading = [f"[{name}]"] if name else []
    return "\n".join([*heading, *(str(line) for line in lines)])


def binary_size(value: float) -> str:
    """A size with a binary prefix where that is shorter: ``4 KiB``, ``1 MiB``, ``114 kB``.

    Examples
    --------
    >>> binary_size(4096.0), binary_size(114e3)
    ('4 KiB', '114 kB')
    """
    for symbol in ("TiB", "GiB", "MiB", "KiB"):
        count = value / units.parse(f"1 {symbol}", units.BYTE)
        if count >= 1.0 and math.isclose(count, round(count, 2), rel_tol=_ROUNDING):
            return f"{count:.6g} {symbol}"
    return units.show(value, units.BYTE, _DIGITS)
