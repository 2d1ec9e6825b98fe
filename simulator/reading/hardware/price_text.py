"""Prices as [[price]] blocks of a profile, and a profile's text with other prices in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from simulator.reading.hardware.profile_text import Line, quote
from simulator.reading.reading import fail
from simulator.schema.hardware.price import Price, Purchase
from simulator.units import HOUR, UsdPerSecond

_DIGITS: Final = 10
_HEADING: Final = re.compile(r"\s*\[\[?\s*(?P<name>[\w.\"' -]+?)\s*\]\]?\s*(?:#.*)?")
_TABLE: Final = "price"


def price_blocks(prices: Sequence[Price]) -> str:
    """Prices as TOML: a [[price]] block each."""
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
        value=quote(f"${value * HOUR:.{_DIGITS}g}/h"),
        source=source.reference,
        date=source.date,
        verified=source.verified,
        note=source.note,
    )


def price_table(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a [price] table says of [[price]] blocks: on demand and spot in the first one's region.

    A profile with such a table lies over one with blocks as over another table.
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
    """The text of a profile with these prices in place of its own; all else stays as it is.

    Raises
    ------
    InputError
        If the text is no TOML, or its prices are written in a way that cannot be cut out.
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
    """Whether a text says all that the old one did, but for prices."""
    try:
        return tomllib.loads(text) == {key: old[key] for key in old if key != _TABLE}
    except tomllib.TOMLDecodeError:
        return False
