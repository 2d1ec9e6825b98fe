"""Free figures of ``simulator/data/kernels``: what is expected of them, and where they stand."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernel_files import kernel_files
from simulator.schema.fields import NumberField, NumberOrZeroField, TextField

Vector = NDArray[np.float64]
Part = Literal["step", "memory", "alone", "expected"]

PRIORS: Final = Path(__file__).resolve().parent / "figures.toml"
DIGITS: Final = 5
"""Significant digits of a figure as shipped."""
_SOURCES: Final = {"step": "steps", "memory": "memory", "alone": "alone"}
"""What fitted figures rest on, by a key of ``kernels/sources.toml``."""
_NEAR: Final = 1e-2
"""Share of its range within which a figure lies at a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeTable:
    """One free figure."""

    names: list[TextField]
    """Where it stands: FILE.FIGURE, FILE.variant.N.FACTOR, FILE.network.N.FACTOR."""
    prior: NumberOrZeroField
    """What is expected before any row was looked at."""
    spread: NumberField
    """Standard deviation of that, of the logarithm or of the figure."""
    low: NumberOrZeroField
    """The least that is physically possible."""
    high: NumberField
    """The most."""
    linear: bool = False
    """Whether `spread` is that of the figure itself."""
    part: Part = "step"
    """What it is fitted to: times of steps, device memory, steps of any model on one device
    alone, or nothing."""
    why: TextField
    """Where the expectation comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeFile:
    """All of them."""

    figure: list[FreeTable]
    """One by one."""


@dataclass(frozen=True, slots=True)
class Free:
    """Free figures of a part; a fit moves their deviations from what is expected, in spreads."""

    tables: tuple[FreeTable, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The first name of each."""
        return tuple(table.names[0] for table in self.tables)

    def scaled(self, values: Sequence[float]) -> Vector:
        """Deviations of values, kept within bounds."""
        pairs = zip(self.tables, values, strict=True)
        return np.array([_scaled(t, min(max(v, t.low), t.high)) for t, v in pairs])

    def values(self, x: Vector) -> list[float]:
        """Values of deviations."""
        return [
            t.prior + t.spread * z if t.linear else t.prior * math.exp(t.spread * z)
            for t, z in zip(self.tables, map(float, x), strict=True)
        ]

    def bounds(self) -> tuple[Vector, Vector]:
        """The least and the greatest deviations."""
        return self.scaled([t.low for t in self.tables]), self.scaled([t.high for t in self.tables])

    def by_name(self, x: Vector) -> dict[str, float]:
        """Values of deviations under all names that share them, as they are shipped."""
        found = zip(self.tables, self.values(x), strict=True)
        return {name: rounded(value) for table, value in found for name in table.names}


def rounded(value: float) -> float:
    """A figure as it is shipped: some significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _scaled(table: FreeTable, value: float) -> float:
    if table.linear:
        return (value - table.prior) / table.spread
    return math.log(max(value, 1e-12) / table.prior) / table.spread


@cache
def free(part: Part) -> Free:
    """The free figures of a part."""
    tables = check(FreeFile, read_document(PRIORS)).figure
    return Free(tuple(table for table in tables if table.part == part))


def shipped(names: Sequence[str]) -> list[float]:
    """Values in the package now."""
    return [_value(name) for name in names]


def _value(name: str) -> float:
    file, figure, *rest = name.split(".")
    found = kernel_files()[file]
    if not rest:
        return float(found.figures[figure].value)
    table = getattr(found, figure)[int(rest[0])]
    value = getattr(table, rest[1])
    return float(next(iter(value.values())) if isinstance(value, Mapping) else value)


def at_bound(table: FreeTable, value: float) -> str:
    """``low`` or ``high`` where a value lies at that bound, else nothing."""
    near = _NEAR * (table.high - table.low)
    if value <= table.low + near:
        return "low"
    return "high" if value >= table.high - near else ""


def changed_texts(
    values: Mapping[str, float], tables: Sequence[FreeTable], folder: Path
) -> dict[str, str]:
    """Texts of the files of a folder with other values, their bounds and what they rest on."""
    known = {name: table for table in tables for name in table.names}
    texts: dict[str, str] = {}
    for name, value in values.items():
        file = f"{name.partition('.')[0]}.toml"
        text = texts.get(file) or (folder / file).read_text(encoding="utf-8")
        texts[file] = _put(text, name, value, known[name])
    return texts


def _put(text: str, name: str, value: float, table: FreeTable) -> str:
    _, figure, *rest = name.split(".")
    if rest:
        return _put_factor(text, figure, rest[1], value)
    head = f"[figures.{figure}]\n"
    start = text.index(head) + len(head)
    end = text.find("\n\n", start)
    end = len(text.rstrip("\n")) if end < 0 else end
    return f"{text[:start]}{_entries(value, table)}{text[end:]}"


def _entries(value: float, table: FreeTable) -> str:
    lines = [f"value = {value:.8g}"]
    if table.part == "expected":
        return "\n".join([*lines, 'source = "expected"', f'note = "{table.why}"'])
    bound = at_bound(table, value)
    lines += [f"low = {table.low:g}", f"high = {table.high:g}"]
    lines += [f'at_bound = "{bound}"'] if bound else []
    return "\n".join([*lines, f'source = "{_SOURCES[table.part]}"'])


def _put_factor(text: str, kind: str, factor: str, value: float) -> str:
    """A factor of the only variant or network of a file that has one."""
    start = text.index(f"[[{kind}]]")

    def line(match: re.Match[str]) -> str:
        old = match.group(2)
        if old.startswith("{"):
            return match.group(1) + re.sub(r"(= )[0-9.e+-]+", rf"\g<1>{value:.8g}", old)
        return f"{match.group(1)}{value:.8g}"

    pattern = rf"^({factor} = )(.*)$"
    return text[:start] + re.sub(pattern, line, text[start:], flags=re.MULTILINE)
