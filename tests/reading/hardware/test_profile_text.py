"""Prices as text of a profile."""

from __future__ import annotations

import tomllib

import pytest

from simulator.errors import InputError
from simulator.reading.hardware.profile_text import price_blocks, with_prices
from simulator.schema.cost import Price, Purchase
from simulator.schema.provenance import Source
from simulator.units import HOUR

SPOT = Price(
    purchase=Purchase.SPOT,
    region='a "place"',
    low=1.25 / HOUR,
    high=2.5 / HOUR,
    source=Source(reference="a list", date="2026-10", verified=False, note="seen once"),
)
BLOCK = {
    "purchase": "spot",
    "region": 'a "place"',
    "price": {
        "value": "$1.25/h",
        "source": "a list",
        "date": "2026-10",
        "verified": False,
        "note": "seen once",
    },
    "highest": {
        "value": "$2.5/h",
        "source": "a list",
        "date": "2026-10",
        "verified": False,
        "note": "seen once",
    },
}


def test_a_price_is_a_block() -> None:
    """Purchase, region, both ends of a range, and who says so."""
    assert tomllib.loads(price_blocks([SPOT])) == {"price": [BLOCK]}


@pytest.mark.parametrize(
    "before",
    [
        "",
        '[price]\nregion = "x"\non_demand = { value = "$1/h" }\n',
        '[price]\nregion = "x"\n[price.on_demand]\nvalue = "$1/h"\n',
        '[[price]]\nregion = "x"\n\n[[price]] # and\nregion = "y"\n',
        '[ "price" ]\nregion = "x"\n',
    ],
)
def test_prices_are_replaced_and_all_else_stays(before: str) -> None:
    """Sections before and after the prices stay, with their comments."""
    text = f'# Mine.\nschema = 1\n\n[cpu] # fast\nthreads = 4\n{before}\n[layout]\ngpus = ["a"]\n'
    made = with_prices(text, [SPOT], "mine.toml")
    assert tomllib.loads(made) == {
        "schema": 1,
        "cpu": {"threads": 4},
        "layout": {"gpus": ["a"]},
        "price": [BLOCK],
    }
    assert made.startswith("# Mine.\n")
    assert "[cpu] # fast" in made


@pytest.mark.parametrize(
    "text",
    [
        'price = [{ region = "x" }]\n',
        'price.region = "x"\n',
        'note = """\n[price]\n"""\nram = 1\n',
    ],
)
def test_prices_that_cannot_be_cut_out_are_refused(text: str) -> None:
    """A text is never changed beyond its prices."""
    with pytest.raises(InputError, match=r"mine\.toml: has prices that cannot be replaced"):
        with_prices(text, [SPOT], "mine.toml")


def test_a_text_that_is_no_toml_is_refused() -> None:
    """The message names the file."""
    with pytest.raises(InputError, match=r"mine\.toml: is not valid TOML"):
        with_prices("[[[", [SPOT], "mine.toml")
