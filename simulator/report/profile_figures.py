"""The content of a hardware profile as a flat list of values with units and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from simulator.records import dataclass
from simulator.report.text import count, printable
from simulator.schema.accelerators import Gpu, Outdone, Relative
from simulator.schema.cost import Price
from simulator.schema.fields import Quantity
from simulator.schema.machines import (
    Cpu,
    CpuPool,
    Curve,
    Host,
    Link,
    Network,
    PcieSwitch,
    PeerTopology,
    VectorUnits,
)
from simulator.schema.provenance import Source
from simulator.schema.storage import Burst, Charges, Storage, StoreClient, Tier
from simulator.units import (
    BYTE,
    BYTE_PER_SECOND,
    PER_SECOND,
    SECOND,
    USD_PER_BYTE,
    USD_PER_BYTE_SECOND,
    USD_PER_SECOND,
    Unit,
    parse,
    show,
)

Profile: TypeAlias = Host | Gpu | Cpu | Link | Storage | StoreClient
"""Any type of profile."""
Section: TypeAlias = Profile | CpuPool | VectorUnits | Network | Charges | Burst
"""A profile, or a part whose values are listed one by one."""

_BOOKKEEPING: Final = ("name", "note", "overlay", "sources", "assumed", "assumed_log_sd")
"""Fields that describe a part without being one of its figures."""
_GIB: Final = parse("1 GiB", BYTE)
_DIGITS: Final = MappingProxyType({USD_PER_SECOND: 6, USD_PER_BYTE_SECOND: 6})
_USUAL: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One value of a profile: dotted `key`, number in SI units or text, unit, source."""

    key: str
    value: float | str
    unit: Unit | None = None
    source: Source | None = None

    @property
    def text(self) -> str:
        """The value with its unit, formatted for display."""
        if isinstance(self.value, str):
            return printable(self.value)
        return shown(self.value, self.unit)


def shown(value: float, unit: Unit | None) -> str:
    """Format a value with its unit; whole GiB are shown in GiB.

    Examples
    --------
    >>> shown(85899345920.0, BYTE), shown(80e9, BYTE), shown(3000.0, PER_SECOND)
    ('80 GiB', '80 GB', '3,000 /s')
    """
    if unit is None:
        return f"{value:g}"
    if unit is PER_SECOND:
        return f"{count(value)} /s"
    if unit is BYTE and value >= _GIB and value % _GIB == 0.0:
        return f"{value / _GIB:,.0f} GiB"
    return show(value, unit, _DIGITS.get(unit, _USUAL))


def figures(thing: Profile) -> tuple[Figure, ...]:
    """Return all values of a profile in field order; components of a machine are given by name."""
    return tuple(_figures(thing, "", thing.sources))


def _figures(thing: Section, prefix: str, sources: Mapping[str, Source]) -> Iterator[Figure]:
    units = units_of(type(thing))  # type: ignore[arg-type] # classes are hashable
    for item in fields(thing):
        if item.name not in _BOOKKEEPING:
            key = f"{prefix}{item.name}"
            yield from _said(key, getattr(thing, item.name), units.get(item.name), sources)


def _said(
    key: str, value: object, unit: Unit | None, sources: Mapping[str, Source]
) -> Iterator[Figure]:
    if isinstance(value, CpuPool | Network | Charges | Burst):
        yield from _figures(value, f"{key}.", sources)
    elif isinstance(value, VectorUnits):
        told = {f"{key}.{item.name}": value.source for item in fields(value)}
        yield from _figures(value, f"{key}.", told)
    elif isinstance(value, Gpu | Link | Storage):
        yield from _part(key, value, sources)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _said(f"{key}.{name}", inner, unit, sources)
    elif isinstance(value, tuple):
        yield from _several(key, value, unit, sources)
    elif isinstance(value, Relative):
        yield Figure(key=key, value=value.device, source=value.source)
    elif isinstance(value, Outdone):
        said = f"{value.ratio:.1%} of the memory share of {value.architecture}"
        yield Figure(key=key, value=said, source=value.source)
    elif not isinstance(value, Source):
        yield from _plain(key, value, unit, sources)


def _prices(prices: tuple[Price, ...]) -> Iterator[Figure]:
    """Yield each price; prices of regions other than the first one's with their region."""
    home = prices[0].region
    for number, price in enumerate(prices):
        key = f"price.{price.purchase.replace('-', '_')}"
        where = "" if price.region == home else f" in {price.region}"
        fixed = price.low == price.high
        ends = (("", price.low),) if fixed else (("_low", price.low), ("_high", price.high))
        for end, value in ends:
            name = f"{key}{end}{where}"
            yield Figure(key=name, value=value, unit=USD_PER_SECOND, source=price.source)
        if number == 0:
            yield Figure(key="price.region", value=home)


def _several(
    key: str, values: tuple[object, ...], unit: Unit | None, sources: Mapping[str, Source]
) -> Iterator[Figure]:
    """Yield curves, prices and tiers of prices one by one, and other values as one list."""
    if any(isinstance(value, Price) for value in values):
        yield from _prices(tuple(value for value in values if isinstance(value, Price)))
        return
    listed = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, Curve):
            yield from _measured(value)
        elif isinstance(value, Tier):
            yield from _tier(f"{key}.{number}", value, sources)
        else:
            listed.append(value)
    yield from _plain(key, _listed(tuple(listed)), unit, sources)


def _part(key: str, value: Gpu | Link | Storage, sources: Mapping[str, Source]) -> Iterator[Figure]:
    yield Figure(key=key, value=value.name, source=sources.get(key))
    if isinstance(value, Storage) and value.capacity is not None:
        size = value.sources.get("capacity")
        yield Figure(key=f"{key}.capacity", value=value.capacity, unit=BYTE, source=size)


def _measured(curve: Curve) -> Iterator[Figure]:
    """Yield latency and bus bandwidth of a measured collective, one value per regime."""
    where = "" if curve.machines == 1 else f" on {curve.machines} machines"
    how = " in the switch" if curve.in_switch else ""
    for number, regime in enumerate(curve.regimes, start=1):
        several = f", way {number}" if len(curve.regimes) > 1 else ""
        latency = show(regime.latency, SECOND, _USUAL)
        yield Figure(
            key=f"{curve.operation} over {curve.ranks}{where}{how}{several}",
            value=f"{latency} + bytes at {show(regime.bandwidth, BYTE_PER_SECOND, _USUAL)}",
            source=curve.cited,
        )


def _tier(key: str, tier: Tier, sources: Mapping[str, Source]) -> Iterator[Figure]:
    """Yield a tier of storage prices: the monthly volume up to which it applies, and the price."""
    source = sources.get(key)
    if tier.to is not None:
        yield Figure(key=f"{key} to", value=tier.to, unit=BYTE, source=source)
    yield Figure(key=key, value=tier.value, unit=USD_PER_BYTE, source=source)


def _listed(values: tuple[object, ...]) -> str:
    """Join the values of a tuple; PCIe switches as their number and uplinks."""
    uplinks = [value.uplink.name for value in values if isinstance(value, PcieSwitch)]
    if uplinks:
        return f"{len(uplinks)} below {', '.join(dict.fromkeys(uplinks))}"
    return " ".join(str(value) for value in values)


def _plain(
    key: str, value: object, unit: Unit | None, sources: Mapping[str, Source]
) -> Iterator[Figure]:
    source = sources.get(key)
    left_out = value in (0, 0.0, False, PeerTopology.NONE) and source is None
    if value is None or value == "" or left_out:
        return
    if isinstance(value, bool):
        yield Figure(key=key, value="yes", source=source)
    elif isinstance(value, int | float):
        yield Figure(key=key, value=float(value), unit=unit, source=source)
    else:
        yield Figure(key=key, value=str(value), source=source)


@cache
def units_of(cls: type[Any]) -> dict[str, Unit]:
    """Return the units of the fields of a class, from their annotations."""
    hints = get_type_hints(cls, include_extras=True)
    found = {name: _unit_in(hint) for name, hint in hints.items()}
    return {name: unit for name, unit in found.items() if unit is not None}


def _unit_in(hint: object) -> Unit | None:
    if get_origin(hint) is Annotated:
        for mark in get_args(hint)[1:]:
            if isinstance(mark, Unit | Quantity):
                return mark if isinstance(mark, Unit) else mark.unit
        return None
    if get_origin(hint) in (Union, UnionType) or isinstance(get_origin(hint), type):
        inner = (_unit_in(argument) for argument in get_args(hint))
        return next((unit for unit in inner if unit is not None), None)
    return None
