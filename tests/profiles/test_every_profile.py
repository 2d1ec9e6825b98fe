"""What holds for every file of the catalogue."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import units
from simulator.importers.prices import MIN_SPOT_SHARE
from simulator.reading.hardware.catalogue import KINDS, Catalogue, packaged
from simulator.report.profile_figures import Figure, figures
from simulator.schema.cost import Purchase, price_of
from simulator.schema.machines import Host
from simulator.schema.storage import Scope
from simulator.units import parse

FOLDER = packaged()
FILES = sorted(path for kind in KINDS for path in (FOLDER / kind).rglob("*.toml"))
NAMES = [path.relative_to(FOLDER).as_posix().removesuffix(".toml") for path in FILES]
SOURCES = tomllib.loads((FOLDER / "sources.toml").read_text(encoding="utf-8"))
DAY = r"\d{4}(-\d{2}(-\d{2})?)?"
GUESSES = {"memory", "derived", "assumed"}

RANGES = {
    units.BYTE_PER_SECOND: ("10 MB/s", "20 TB/s"),
    units.BYTE: ("4 KiB", "5 TB"),
    units.FLOP_PER_SECOND: ("1 TFLOP/s", "20 PFLOP/s"),
    units.SECOND: ("100 ns", "200 ms"),
    units.WATT: ("10 W", "20 kW"),
    units.HERTZ: ("1 GHz", "5 GHz"),
    units.PER_SECOND: ("50 /s", "10 M/s"),
    units.USD_PER_SECOND: ("$0.05/h", "$200/h"),
    units.USD_PER_BYTE_SECOND: ("$0.001/GB/month", "$1/GB/month"),
    units.USD_PER_BYTE: ("$0.001/GB", "$0.5/GB"),
    units.USD_PER_REQUEST: ("$0.0001/1000 requests", "$0.1/1000 requests"),
    units.USD_PER_OPERATION: ("$0.001/IOPS/month", "$0.5/IOPS/month"),
    units.USD_PER_RATED_BYTE: ("$0.01/(MiB/s)/month", "$10/(MiB/s)/month"),
}
"""What a figure of each unit can plausibly be."""
UNLIMITED = ("capacity", "_to", " to")
"""Amounts that may be of any size: stores, and up to what a price of them holds."""
TRAYS = {"node/gb200-nvl72": 18, "node/gb300-nvl72": 18}
"""Racks described as one machine, and of how many they consist."""


def tables(data: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All tables that state a figure, with their dotted path."""
    if isinstance(data, dict):
        if "source" in data:
            yield path, data
        for key, value in data.items():
            yield from tables(value, f"{path}.{key}".lstrip("."))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from tables(value, f"{path}.{number}")


def read(path: Path) -> dict[str, Any]:
    """The data of a file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_it_loads(catalogue: Catalogue) -> None:
    """The file is sound, and so are the profiles of its parts."""
    assert [catalogue.load(name).name for name in NAMES] == NAMES


def test_every_figure_has_source_and_date() -> None:
    """Each source resolves, each date parses, and what was guessed is marked."""
    for path in (*FILES, FOLDER / "defaults.toml"):
        stated = list(tables(read(path)))
        assert stated, path
        for key, figure in stated:
            assert figure["source"] in SOURCES, (path, key)
            assert is_date(figure["date"]), (path, key)
            if figure["source"] in GUESSES:
                assert figure.get("verified") is False, (path, key)


def is_date(text: str) -> bool:
    """Whether a date is a day, month or year, a range of them, or undated."""
    return re.fullmatch(rf"undated|(>=|<=)?{DAY}|{DAY}\.\.{DAY}", text) is not None


def test_no_number_stands_without_source() -> None:
    """Outside of layouts a number is always the value of a figure."""
    for path in FILES:
        data = {key: value for key, value in read(path).items() if key not in ("schema", "layout")}
        for _, figure in tables(data):
            for key in ("value", "ranks", "machines"):
                figure.pop(key, None)
        assert not [value for value in leaves(data) if isinstance(value, int | float)], path


def leaves(data: object) -> Iterator[object]:
    """All values that are no tables; true and false are no numbers."""
    if isinstance(data, dict):
        for value in data.values():
            yield from leaves(value)
    elif not isinstance(data, bool):
        yield data


def test_figures_are_plausible(catalogue: Catalogue) -> None:
    """Every figure lies in the range that things of its unit have."""
    stated = [(name, figure) for name in NAMES for figure in figures(catalogue.load(name))]
    for name, figure in stated:
        if figure.unit in RANGES and isinstance(figure.value, float):
            low, high = (parse(text, figure.unit) for text in RANGES[figure.unit])
            # A store of appliances may be larger than any single device.
            added_up = figure.key in ("ram", "power", "network.bandwidth")
            size = figure.value / (TRAYS.get(name, 1) if added_up else 1)
            free = figure.key.endswith(UNLIMITED) or figure.key.startswith("burst_")
            assert low <= size <= high or free, (name, figure)


def test_every_figure_of_the_domain_type_has_a_source(catalogue: Catalogue) -> None:
    """What prediction and report see keeps the source that the file gave."""
    stated = [(name, figure) for name in NAMES for figure in figures(catalogue.load(name))]
    assert [(name, figure.key) for name, figure in stated if lacks_source(figure)] == []


def lacks_source(figure: Figure) -> bool:
    """Whether a number has no source."""
    return isinstance(figure.value, float) and figure.source is None


def test_sources_say_who_and_when() -> None:
    """Every source has a reference and a date, and every one of them is used."""
    keys = set(SOURCES) - {"schema"}
    for key in keys:
        assert len(SOURCES[key]["reference"]) > 10
        assert is_date(SOURCES[key]["date"])
    files = [*FILES, FOLDER / "defaults.toml"]
    used = {figure["source"] for path in files for _, figure in tables(read(path))}
    mentioned = "".join(path.read_text(encoding="utf-8") for path in files)
    assert {key for key in keys - used if f"({key})" not in mentioned} == set()


def test_prices_are_dated_and_placed(catalogue: Catalogue) -> None:
    """A price holds somewhere and has a source."""
    priced = 0
    for name in NAMES:
        host = catalogue.load(name)
        if not isinstance(host, Host) or not host.prices:
            continue
        priced += 1
        assert all(price.region and price.source.reference for price in host.prices)
    assert priced >= 80


def test_no_spot_price_is_a_filler(catalogue: Catalogue) -> None:
    """Lists write the price on demand, or a tenth of it, where there is no offer of spot hours."""
    compared = 0
    for host in (catalogue.host(name) for name in NAMES if name.startswith("instance/")):
        for spot in host.prices:
            asked = price_of(host.prices, Purchase.ON_DEMAND, spot.region)
            if spot.purchase is not Purchase.SPOT or asked is None:
                continue
            compared += 1
            assert spot.high < asked.low, host.name
            assert spot.low != pytest.approx(MIN_SPOT_SHARE * asked.low, rel=1e-6), host.name
    assert compared >= 50


def test_a_layout_reaches_every_accelerator(catalogue: Catalogue) -> None:
    """Where switches are given, each GPU hangs below exactly one, on the socket stated for it."""
    for name in NAMES:
        host = catalogue.load(name)
        if isinstance(host, Host) and host.switches:
            below = sorted(gpu for switch in host.switches for gpu in switch.gpus)
            assert below == list(range(host.gpu_count))
            for switch in host.switches:
                assert {host.gpu_sockets[gpu] for gpu in switch.gpus} == {switch.socket}


def test_prices_of_stores_are_placed(catalogue: Catalogue) -> None:
    """A store of a cloud that charges rent says in which region its prices hold."""
    rented = [store for store in map(catalogue.storage, stores()) if store.price is not None]
    assert len(rented) >= 15
    assert [s.name for s in rented if s.charges is None or not s.charges.region] == []


def test_stores_paid_by_capacity_say_how_large_they_are(catalogue: Catalogue) -> None:
    """Rent for the whole capacity needs a capacity; a volume is as large as a scenario has it."""
    for store in map(catalogue.storage, stores()):
        whole = store.charges is not None and store.charges.by_capacity
        sized = store.capacity is not None or store.scope is Scope.VOLUME
        assert not whole or sized, store.name


def stores() -> list[str]:
    """Names of all profiles of stores."""
    return [name for name in NAMES if name.startswith("storage/")]
