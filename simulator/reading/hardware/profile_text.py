"""TOML text of profiles: figures with source, date and note, and blocks of prices."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from simulator import units
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.schema.cost import Price, Purchase
from simulator.units import HOUR, Unit, UsdPerSecond

_DIGITS = 6
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of a profile: its key, its value as TOML, and its source."""

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
    """Return a quantity as a TOML string that `units.parse` reads back, to six digits.

    Examples
    --------
    >>> quantity(5e10, units.BYTE_PER_SECOND)
    '"50 GB/s"'
    """
    shown = units.show(value, unit, _DIGITS)
    # Beyond all prefixes people get digits in groups, which do not read back.
    return quote(f"{value:.{_DIGITS}g} {unit.symbol}" if "," in shown else shown)


def quote(text: str) -> str:
    r"""Return `text` as a TOML basic string.

    Examples
    --------
    >>> print(quote('a "b" \\ c'))
    "a \"b\" \\ c"
    """
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """Return `text` as TOML comment lines."""
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return "\n".join(f"# {line}".rstrip() for line in clean.split("\n"))


def table(name: str, lines: Iterable[Line | str]) -> str:
    """Return a table with a heading (none if `name` is empty) and one line per figure."""
    heading = [f"[{name}]"] if name else []
    return "\n".join([*heading, *(str(line) for line in lines)])


def binary_size(value: float) -> str:
    """Return a size with a binary prefix where that is shorter: ``4 KiB``, ``1 MiB``, ``114 kB``.

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


_PRICE_DIGITS: Final = 10
_HEADING: Final = re.compile(r"\s*\[\[?\s*(?P<name>[\w.\"' -]+?)\s*\]\]?\s*(?:#.*)?")
_TABLE: Final = "price"


def price_blocks(prices: Sequence[Price]) -> str:
    """Return prices as TOML, one ``[[price]]`` block each."""
    return "\n\n".join("\n".join(_block(price)) for price in prices) + "\n"


def _block(price: Price) -> Iterator[str]:
    yield f"[[{_TABLE}]]"
    yield f"purchase = {quote(price.purchase)}"
    yield f"region = {quote(price.region)}"
    yield str(_line("price", price.low, price))
    if price.high != price.low:
        yield str(_line("highest", price.high, price))


def _line(key: str, value: UsdPerSecond, price: Price) -> Line:
    source = price.source
    return Line(
        key=key,
        value=quote(f"${value * HOUR:.{_PRICE_DIGITS}g}/h"),
        source=source.reference,
        date=source.date,
        verified=source.verified,
        note=source.note,
    )


def price_table(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``[[price]]`` blocks as one ``[price]`` table with on-demand and spot prices.

    The region is that of the first block. A profile with such a table is merged over one with
    blocks as over another table.
    """
    home = blocks[0].get("region") if blocks else None
    table: dict[str, Any] = {} if home is None else {"region": home}
    for block in blocks:
        if block.get("region") != home or "price" not in block:
            continue
        if block.get("purchase") == Purchase.ON_DEMAND:
            table.setdefault("on_demand", block["price"])
        elif block.get("purchase") == Purchase.SPOT:
            table.setdefault("spot_low", block["price"])
            table.setdefault("spot_high", block.get("highest", block["price"]))
    return table


def with_prices(text: str, prices: Sequence[Price], origin: str) -> str:
    """Return the text of a profile with its prices replaced; all other text is unchanged.

    Raises
    ------
    InputError
        If the text is not TOML, or its prices are written in a way that cannot be cut out.
    """
    try:
        old = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        fail(origin, f"is not valid TOML: {error}")
    kept = _without_prices(text).rstrip()
    if not _is_without(kept, old):
        hint = "write them as [price] or [[price]] sections, which can be replaced"
        fail(origin, "has prices that cannot be replaced in place", hint=hint)
    return f"{kept}\n\n{price_blocks(prices)}"


def _without_prices(text: str) -> str:
    lines, is_price = [], False
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            is_price = heading["name"].split(".")[0].strip(" \"'") == _TABLE
        if not is_price:
            lines.append(line)
    return "\n".join(lines)


def _is_without(text: str, old: dict[str, Any]) -> bool:
    """Return whether a text has the same contents as `old` except for prices."""
    try:
        return tomllib.loads(text) == {key: old[key] for key in old if key != _TABLE}
    except tomllib.TOMLDecodeError:
        return False
