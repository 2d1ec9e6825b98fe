"""Keys of a scenario as numbers."""

from __future__ import annotations

import ast
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import units
from simulator.errors import InputError
from simulator.reading import sections
from simulator.reading.keys import numeric_key, numeric_keys
from simulator.reading.tables import table_keys
from simulator.schema.fields import BadValueError, Number, Quantity

TEXTS = {
    units.BYTE: ("1 kB", "3 GiB", "2.5e3 MB"),
    units.BYTE_PER_SECOND: ("2 GB/s", "400 Gb/s", "1_000 MiB/s", " 5.5 GB/s "),
    units.SECOND: ("2.1 ms", "1 h", "3 µs", ".5 s"),
    units.FLOP: ("4.1 GFLOP",),
    units.PER_SECOND: ("3000 IOPS", "12 k/s"),
    units.USD_PER_SECOND: ("$32.77/h", "0.2 USD/d"),
}
NUMBER = re.compile(r"[\d._]+(e\d+)?")


@given(st.data(), st.floats(min_value=0.01, max_value=90.0))
def test_scaling_keeps_the_unit_and_the_value(data: st.DataObject, factor: float) -> None:
    """A quantity written in the unit of another text is read back as itself."""
    names = [name for name in numeric_keys() if isinstance(numeric_key(name).kind, Quantity)]
    key = numeric_key(data.draw(st.sampled_from(names)))
    assert isinstance(key.kind, Quantity)
    text = data.draw(st.sampled_from(TEXTS[key.kind.unit]))
    value = key.value(text) * factor
    written = key.text(value, text)
    assert key.value(written) == pytest.approx(value, rel=1e-5)
    assert NUMBER.sub("", written, count=1).strip() == NUMBER.sub("", text, count=1).strip()


@given(st.data())
def test_plain_numbers_come_back(data: st.DataObject) -> None:
    """A number between the bounds of its key is written so that it is read back as itself."""
    kinds = {name: numeric_key(name).kind for name in numeric_keys()}
    numbers = {name: kind for name, kind in kinds.items() if isinstance(kind, Number)}
    name = data.draw(st.sampled_from(list(numbers)))
    low, high = numbers[name].low, min(numbers[name].high, 1e9)
    value = data.draw(st.floats(min_value=max(low, 1e-6), max_value=high))
    key = numeric_key(name)
    assert key.value(key.text(value, "1")) == pytest.approx(value, rel=1e-5)


def test_plain_numbers_have_no_unit() -> None:
    """A factor is a number, in texts and in files."""
    key = numeric_key("calibration.cpu")
    assert (key.value("0.7"), key.text(0.7, "1"), key.plain("0.7")) == (0.7, "0.7", 0.7)
    assert numeric_key("input.decode").plain("2 ms") == "2 ms"


def test_a_value_for_people() -> None:
    """Four digits, and the prefix that fits."""
    key = numeric_key("hardware.storage_bandwidth")
    assert key.show("0.00512345678 GB/s") == "5.123 MB/s"
    assert numeric_key("calibration.cpu").show("0.712345") == "0.7123"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hardware.storage_bandwith", "did you mean 'hardware.storage_bandwidth'"),
        ("input.workers", "counts, names and switches cannot"),
        ("input.pin_memory", "counts, names and switches cannot"),
        ("model.name", "counts, names and switches cannot"),
        ("hardware", "counts, names and switches cannot"),
        ("decoding", "did you mean 'input.decode'"),
        ("hardware.decode", "did you mean 'input.decode'"),
        ("", "is not a key"),
        ("qqqqqqqq", "keys are those of plan schema, and factors: calibration.compute"),
        ("nothing.at.all", "is not a key"),
    ],
)
def test_what_cannot_be_fitted_is_refused(name: str, said: str) -> None:
    """A name that is not a continuous key says why."""
    with pytest.raises(InputError, match="--fit") as caught:
        numeric_key(name)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("input.decode", "5", "has no unit"),
        ("input.decode", "5 GB", "measures bytes"),
        ("input.decode", "-5 ms", "is negative"),
        ("calibration.cpu", "fast", "is not a number"),
        ("calibration.cpu", "0", "is out of range"),
    ],
)
def test_a_bad_value_names_the_key(name: str, text: str, said: str) -> None:
    """Unit mix-ups and nonsense are refused with the key."""
    with pytest.raises(InputError, match=name) as caught:
        numeric_key(name).value(text)
    assert said in str(caught.value)


def test_every_key_of_a_scenario_is_read() -> None:
    """A key that nothing reads, as an attribute or by its name, would be taken and do nothing."""
    read = set[str]()
    for path in Path(sections.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(node.value)
    keys = {
        f"{model.__name__}.{key}": key
        for model in vars(sections).values()
        if isinstance(model, type) and is_dataclass(model) and not hasattr(model, "read")
        for key in table_keys(model)
    }
    assert len(keys) > 150
    assert [place for place, key in keys.items() if key not in read] == []


@pytest.mark.parametrize("typed", ["20k", "20,000", "20000", "20 kIOPS", "20k/s"])
def test_operations_of_a_store_are_counted_each_second(typed: str) -> None:
    """Nobody means anything else by a number of operations."""
    assert numeric_key("hardware.storage_operations").value(typed) == pytest.approx(20_000.0)


def test_other_rates_need_their_time() -> None:
    """A number of failures or requests alone may be one of an hour."""
    field = Quantity(units.PER_SECOND)
    with pytest.raises(BadValueError, match="unknown unit 'k'"):
        field.read("20k")
    assert Quantity(units.PER_SECOND, counted=True).read(20_000) == pytest.approx(20_000.0)
