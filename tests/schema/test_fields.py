"""Field types: what they read, what they refuse, and in which words."""

from __future__ import annotations

import math
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.catalogue import each

from simulator import units
from simulator.schema import fields as quantity
from simulator.schema.accelerators import Precision, PrecisionField
from simulator.schema.fields import BadValueError, Choice, Number, Quantity, nearest, nearest_hint
from simulator.schema.training import Optimizer, OptimizerField

FIELDS = {
    quantity.ByteField: ("80 GiB", 80 * 2.0**30),
    quantity.ByteRateField: ("400 Gb/s", 5e10),
    quantity.TimeField: ("2.1 ms", 0.0021),
    quantity.FlopField: ("4.1 GFLOP", 4.1e9),
    quantity.FlopRateField: ("312 TFLOP/s", 3.12e14),
    quantity.RateField: ("3000 IOPS", 3000.0),
    quantity.PowerField: ("10.2 kW", 10200.0),
    quantity.ClockField: ("3.0 GHz", 3e9),
    quantity.MoneyField: ("$250", 250.0),
    quantity.PriceField: ("$36/h", 0.01),
    quantity.StoragePriceField: ("$0.023/GB/month", 0.023 / 1e9 / (30 * 86400)),
}


def read(field: Any, value: object) -> Any:
    """The value as a field takes it."""
    return field.__metadata__[0].read(value)


def refused(field: Any, value: object) -> tuple[str, str]:
    """Message and hint of the refusal."""
    with pytest.raises(BadValueError) as caught:
        read(field, value)
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(("field", "example"), FIELDS.items(), ids=lambda value: str(value)[-40:])
def test_every_quantity_reads_its_own_unit(field: Any, example: tuple[str, float]) -> None:
    """Text with a unit becomes a float in SI units."""
    text, value = example
    assert read(field, text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (quantity.ByteField, "220 KB", 220e3),
        (quantity.ByteField, "64 gb", 64e9),
        (quantity.ByteRateField, "900 KB/s", 900e3),
        (quantity.TimeField, "3 H", 3 * 3600.0),
        (quantity.CountField, "1.2 million", 1_200_000),
    ],
)
def test_letters_of_the_other_size_are_read(field: Any, text: str, value: float) -> None:
    """Where only one thing can be meant, nobody has to know which letter is large."""
    assert read(field, text) == value


@pytest.mark.parametrize("text", ["400 gb/s", "8 mb/s"])
def test_bits_and_bytes_are_told_apart_by_their_letter(text: str) -> None:
    """A rate in small letters may be bits or bytes: it is refused, and both are offered."""
    message, hint = refused(quantity.ByteRateField, text)
    assert "unknown unit" in message
    assert "B/s or" in hint
    assert refused(quantity.ByteField, "80 Gb")[0]


@pytest.mark.parametrize("bare", [0, 5, 2.5, math.nan, math.inf, -1, 10**400])
@each("field", FIELDS)
def test_bare_numbers_are_refused(field: Any, bare: float) -> None:
    """Whatever the number, a unit is asked for, with an example."""
    message, hint = refused(field, bare)
    assert message == "is a bare number"
    assert hint.startswith("write it with a unit, such as '")


@pytest.mark.parametrize("value", [True, None, [], {}, b"3 GB"])
@each("field", FIELDS)
def test_what_is_no_text_is_refused(field: Any, value: object) -> None:
    """Truth values, lists and tables are no quantities."""
    assert refused(field, value)[0] == "is not a quantity"


@pytest.mark.parametrize("text", ["nan B", "inf B", "-inf B", "", "B", "1e5", "--1 B", "1,5 GB"])
def test_texts_without_number_or_unit_are_refused(text: str) -> None:
    """Neither NaN nor an empty text is a quantity."""
    message, _ = refused(quantity.ByteOrZeroField, text)
    assert message.startswith(("is not a quantity", "has no unit", "has the unknown unit"))


def test_zero_needs_permission() -> None:
    """The strict type refuses zero, the lenient one takes it; neither takes less."""
    assert read(quantity.TimeOrZeroField, "0 s") == 0.0
    assert refused(quantity.TimeField, "0 s")[0] == "is zero"
    assert refused(quantity.TimeOrZeroField, "-1 ms")[0] == "is negative"


@each("unit", quantity._EXAMPLE)  # noqa: SLF001 - the table itself is tested
def test_examples_and_limits_of_every_unit_are_themselves_readable(unit: units.Unit) -> None:
    """What messages offer is accepted; a thousand times the limit is not."""
    field = Annotated[float, Quantity(unit)]
    assert read(field, quantity._EXAMPLE[unit]) > 0.0  # noqa: SLF001 - as above
    assert read(field, quantity._LARGEST[unit]) > 0.0  # noqa: SLF001 - as above
    smallest = quantity._SMALLEST.get(unit)  # noqa: SLF001 - as above
    assert smallest is None or read(field, smallest) > 0.0


@given(st.sampled_from(list(FIELDS)), st.text(max_size=12))
def test_any_text_is_read_or_refused(field: Any, text: str) -> None:
    """No text raises anything but a refusal, and what is read is finite and positive."""
    try:
        value = read(field, text)
    except BadValueError:
        return
    assert math.isfinite(value)
    assert value > 0.0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (quantity.CountField, True, "is not a whole number"),
        (quantity.CountField, 3.0, "is not a whole number"),
        (quantity.CountField, "3", "is not a whole number"),
        (quantity.CountField, 0, "is out of range"),
        (quantity.CountField, 10**400, "is out of range"),
        (quantity.CountOrZeroField, -1, "is out of range"),
        (quantity.NumberField, 0.0, "is out of range"),
        (quantity.NumberField, math.nan, "is not a finite number"),
        (quantity.NumberField, math.inf, "is not a finite number"),
        (quantity.NumberField, "1.0", "is not a number"),
        (quantity.NumberField, False, "is not a number"),
        (quantity.FractionField, 1.01, "is out of range"),
        (quantity.TextField, 3, "is not text"),
        (quantity.TextField, "  ", "is empty"),
        (quantity.TextField, "a\x07b", "holds a control character"),
        (quantity.TextField, "x" * 20_000, "is too long"),
    ],
)
def test_plain_fields_refuse(field: Any, value: object, message: str) -> None:
    """Counts, numbers, fractions and texts name what is wrong."""
    assert refused(field, value)[0] == message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (quantity.CountField, 1),
        (quantity.CountOrZeroField, 0),
        (quantity.NumberField, 1),
        (quantity.NumberOrZeroField, 0.0),
        (quantity.FractionField, 1),
        (quantity.TextField, "ä\nb"),
        (Annotated[int, Number(low=1.0, high=4.0, whole=True)], 4),
    ],
)
def test_plain_fields_keep_what_they_take(field: Any, value: object) -> None:
    """Nothing is converted."""
    taken = read(field, value)
    assert taken == value
    assert type(taken) is type(value)


@pytest.mark.parametrize(
    ("unit", "found", "hint"),
    [
        (units.BYTE, 64, "such as '64 kB' or '64 GB'"),
        (units.BYTE, 114_000, "such as '114000 B'"),
        (units.SECOND, 1.5, "such as '1.5 ms' or '1.5 s'"),
        (units.WATT, 3, "such as '400 W'"),
    ],
)
def test_a_bare_number_is_answered_with_units_for_it(
    unit: units.Unit, found: float, hint: str
) -> None:
    """The number that was written, in units that people use for small and large things."""
    message, advice = refused(Annotated[float, Quantity(unit)], found)
    assert message == "is a bare number"
    assert hint in advice


def test_choices_offer_the_nearest() -> None:
    """A misspelt choice is answered with the nearest and the list."""
    field = Annotated[Precision, Choice(Precision)]
    assert read(field, "bf16") is Precision.BF16
    message, hint = refused(field, "bf17")
    assert message == "is not a valid choice"
    assert hint.startswith("did you mean 'bf16'? allowed: fp64, fp32")


def test_nearest_ignores_case_and_keeps_its_distance() -> None:
    """Capitals don't matter; a name like none gets the list."""
    assert nearest("Batch_Size", ("batch_size", "epochs")) == "batch_size"
    assert nearest("zzz", ("batch_size", "epochs")) is None
    assert nearest_hint("zzz", ("a", "b")) == "allowed: a, b"
    assert nearest_hint("x", ()) == "nothing is allowed here"


@pytest.mark.parametrize("field", [*FIELDS, quantity.TextField])
def test_json_schema_says_text(field: Any) -> None:
    """Editors see a string; quantities come with a pattern that their example fits."""
    schema = field.__metadata__[0].json_schema()
    assert schema["type"] == "string"
    assert field is quantity.TextField or schema["examples"]


def test_other_words_for_a_choice_are_taken() -> None:
    """As torch and people write them; what no word means is refused."""
    assert [read(PrecisionField, text) for text in ("bfloat16", "BF16", "half")] == [
        Precision.BF16,
        Precision.BF16,
        Precision.FP16,
    ]
    assert read(OptimizerField, "AdamW") is Optimizer.ADAM
    assert read(OptimizerField, "adam_8bit") is Optimizer.ADAM_8BIT
    with pytest.raises(BadValueError, match="is not a valid choice"):
        read(OptimizerField, "adam2")
