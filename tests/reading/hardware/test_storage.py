"""Profiles of stores: what is charged for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.storage import Storage
from simulator.units import MONTH

STORE = """\
schema = 1
scope = "object"
read_bandwidth = { value = "10 GB/s", source = "the maker's page", date = "2026-01" }
price = { value = "$0.02/GB/month", source = "the price list", date = "2026-02" }
"""
TIER = '{{ {to}value = "${price}/GB", source = "the price list", date = "2026-02" }}'


def store(folder: Path, charges: str) -> Storage:
    """A store with a [charges] table."""
    (folder / "storage").mkdir()
    (folder / "storage" / "own.toml").write_text(STORE + charges, encoding="utf-8")
    return Catalogue((folder,)).storage("own")


def internet(*tiers: tuple[str, str]) -> str:
    """A [charges] table with prices by the amount of a month."""
    rows = [TIER.format(to=f'to = "{to}", ' if to else "", price=price) for to, price in tiers]
    return f'[charges]\nregion = "here"\ninternet = [{", ".join(rows)}]\n'


def test_tiers_keep_their_order_and_sources(tmp_path: Path) -> None:
    """Each price stands with the amount up to which it holds, and with who says so."""
    found = store(tmp_path, internet(("1 TB", "0.12"), ("", "0.08")))
    assert found.charges is not None
    first, last = found.charges.internet
    assert (first.to, last.to) == (1e12, None)
    assert last.value == pytest.approx(0.08e-9)
    assert found.sources["charges.internet.2"].date == "2026-02"


@pytest.mark.parametrize("tiers", [(("2 TB", "0.1"), ("1 TB", "0.08")), (("", "0.1"), ("", "0.1"))])
def test_tiers_out_of_order_are_refused(tmp_path: Path, tiers: tuple[tuple[str, str], ...]) -> None:
    """A tier ends above the one before it; none follows one without an end."""
    with pytest.raises(InputError, match="not in the order"):
        store(tmp_path, internet(*tiers))


def test_rent_is_paid_for_what_lies_there(tmp_path: Path) -> None:
    """Without by_capacity the size of the store doesn't matter."""
    found = store(tmp_path, '[charges]\nregion = "here"\n')
    assert found.standing(1e12) == pytest.approx(20.0 / MONTH)


def test_prices_need_a_unit(tmp_path: Path) -> None:
    """A price by the hour is no price of a request."""
    wrong = '{ value = "$1/h", source = "a", date = "2026" }'
    with pytest.raises(InputError, match="dollars per request is needed"):
        store(tmp_path, f'[charges]\nregion = "here"\nreads = {wrong}\n')
