"""Expressions over metrics: what they mean, what they refuse, and that they execute nothing."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import PlanError
from simulator.results.expression import Expression, parse_expression
from simulator.results.metrics import JOB_METRICS, measurable
from simulator.units import BYTE_PER_SECOND

FIGURES = {
    "total_time_s": 7200.0,
    "cost.usd_to_train": 450.0,
    "cost.usd_per_h": 30.0,
    "fits.gpu": "yes",
    "bottleneck": "cpu",
    "gpu_memory_bytes.items": {"activations": 20e9},
    "break_even_epochs": None,
    "input.workers": 8,
    "input.pin_memory": True,
    "hardware.storage_bandwidth": "500 MB/s",
    "train.precision": "fp16",
}
SETTINGS = {
    "input.workers": None,
    "input.pin_memory": None,
    "hardware.storage_bandwidth": BYTE_PER_SECOND,
    "train.precision": None,
}


def read(text: str) -> Expression:
    """The expression, with the settings known too."""
    return parse_expression(text, extra_names=SETTINGS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fits.gpu != 'no' and cost.usd_to_train < 500", True),
        ("total_time_s < '3 h'", True),
        ("total_time_s < '1 h' or total_time_s > '1.9 h'", True),
        ("not total_time_s < '3 h'", False),
        ("'3 h' > total_time_s", True),
        ("cost.usd_to_train >= '$450'", True),
        ("cost.usd_per_h < '$29/h'", False),
        ("gpu_memory_bytes.items.activations < '20 GiB'", True),
        ("gpu_memory_bytes.items.optimizer < '20 GiB'", False),
        ("input.workers <= 8 and input.pin_memory == true", True),
        ("input.pin_memory", True),
        ("input.pin_memory != false", True),
        ("hardware.storage_bandwidth < '1 GB/s'", True),
        ("train.precision == 'bf16'", False),
        ("train.precision != 'bf16'", True),
        ("bottleneck == 'cpu' or bottleneck == 'storage' and fits.gpu == 'no'", True),
        ("(bottleneck == 'cpu' or bottleneck == 'storage') and fits.gpu == 'no'", False),
        ("2 * total_time_s - 400 == 14e3", True),
        ("total_time_s / 2 < '1.5 h'", True),
        ("- total_time_s < 0", True),
    ],
)
def test_conditions_hold_as_by_hand(text: str, expected: bool) -> None:  # noqa: FBT001 - a table
    """Each condition has the truth that its figures give it."""
    assert read(text).value(FIGURES) is expected
    assert read(text).holds(FIGURES) is expected


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_what_is_unknown_makes_every_comparison_false(sign: str) -> None:
    """A metric that doesn't apply, or is missing, is neither below nor above nor unequal."""
    assert read(f"break_even_epochs {sign} 3").value(FIGURES) is False
    assert read(f"epoch_time_s {sign} 3").value(FIGURES) is False
    assert read(f"not break_even_epochs {sign} 3").value(FIGURES) is True


def test_sums_of_unknowns_and_divisions_by_zero_have_no_value() -> None:
    """None travels upwards."""
    assert read("1 + break_even_epochs").value(FIGURES) is None
    assert read("1 / (input.workers - 8)").value(FIGURES) is None
    assert read("total_time_s / 3600 + 0.01 * cost.usd_to_train").value(FIGURES) == 6.5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("total_time < 3", "there is no metric 'total_time'; did you mean 'total_time_s'?"),
        ("input.worker < 3", "did you mean 'input.workers'?"),
        ("cost < 3", "cost is a group of metrics; name one of cost.usd_per_h"),
        ("gpu_memory_bytes.items < 3", "is a table of figures"),
        ("fits.gpu == 'nope'", "fits.gpu is never 'nope'; allowed: yes, no, uncertain"),
        ("fits.gpu < 3", "fits.gpu is a word and 3 is a number"),
        ("bottleneck < 'gpu'", "puts words in order; use == or !="),
        ("total_time_s < '$3'", "measures dollars where time is needed"),
        ("total_time_s < '3'", "has no unit; write time like"),
        ("accelerator_utilization < '3 h'", "accelerator_utilization has no unit"),
        ("tokens_per_s < '3 tokens/s'", "compared with a bare number in tokens/s"),
        ("train.precision < 'fp32'", "has no unit that 'fp32' could be in"),
        ("1 < total_time_s < 3", "join two comparisons by 'and'"),
        ("total_time_s = 3", "'=' is not part of the expression language; write =="),
        ("total_time_s < 3 & 1 < 2", "write and"),
        ("total_time_s and 3 < 4", "total_time_s is a number, where a condition is needed"),
        ("(1 < 2) + 3", "is a condition, where a number is needed"),
        ("'gpu'", "is only a text"),
        ("'gpu", "a quoted text has no end"),
        ("(1 < 2", "a parenthesis has no end"),
        ("1 < 2)", ") cannot be at this place"),
        ("1 <", "the end is where a name, a number or a quoted text is needed"),
        ("  ", "is empty"),
        ("1e999 < 2", "too large to be meant"),
        ("(" * 400 + "1 < 2" + ")" * 400, "nested too deeply"),
        ("+".join(["1"] * 100), "nested too deeply"),
        ("1 < 2 " * 500, "is too long"),
        (
            "__import__('os').system('true') == 0",
            ".system('true') is not part of the expression language",
        ),
        ("total_time_s if true else 3", "is not part of the expression language"),
        ("total_time_s ** 2 < 3", "is not part of the expression language"),
        ("total_time_s in ()", "is not part of the expression language"),
        ("1j < 2", "is not part of the expression language"),
        ("not " * 400 + "1 < 2", "nested too deeply"),
        ("-" * 1900 + "1 < 2", "nested too deeply"),
        ("total_time_s.__class__ == 0", "there is no metric 'total_time_s.__class__'"),
    ],
)
def test_mistakes_are_told(text: str, told: str) -> None:
    """One sentence that names what is wrong, and what is meant or allowed."""
    with pytest.raises(PlanError) as caught:
        read(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_says_what_it_needs_and_is() -> None:
    """Names once each in order; whether it can be a goal or a condition; its unit."""
    condition = read("total_time_s < 3 and cost.usd_to_train < total_time_s")
    assert condition.names == ("total_time_s", "cost.usd_to_train")
    assert condition.is_condition
    assert not condition.is_number
    goal = read("2 * total_time_s")
    assert goal.is_number
    assert str(goal.unit and goal.unit.symbol) == "s"
    assert read("total_time_s + cost.usd_to_train").unit is None


NUMBERS = st.sampled_from(["total_time_s", "cost.usd_to_train", "input.workers", "3", "0.5", "0"])
SUMS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("-{}".format, inner),
    ),
    max_leaves=8,
)
COMPARISONS = st.builds(
    "{} {} {}".format, SUMS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), SUMS
)
CONDITIONS = st.recursive(
    st.one_of(COMPARISONS, st.just("fits.gpu != 'no'"), st.just("total_time_s < '3 h'")),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {} or {})".format, inner, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_what_is_written_reads_back_as_the_same(text: str) -> None:
    """parse, print, parse: nothing changes, and the print is stable."""
    expression = read(text)
    assert read(str(expression)) == expression
    assert str(read(str(expression))) == str(expression)
    assert read(str(expression)).value(FIGURES) == expression.value(FIGURES)


@given(
    st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 50)), max_size=10),
    st.integers(0, 50),
)
def test_sums_agree_with_arithmetic(terms: list[tuple[str, int]], first: int) -> None:
    """Products bind tighter than sums, both from left to right: as Python's own operators do."""
    signs: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
    products = [float(first)]
    pending = list[str]()
    for sign, value in terms:
        if sign == "*":
            products[-1] = signs[sign](products[-1], float(value))
        else:
            pending.append(sign)
            products.append(float(value))
    result = products[0]
    for sign, value in zip(pending, products[1:], strict=True):
        result = signs[sign](result, value)
    text = str(first) + "".join(f" {sign} {value}" for sign, value in terms)
    assert read(text).value({}) == result


WORDS = ["and", "or", "not", "true", "total_time_s", "fits.gpu", "cost", "input.pin_memory", "x"]
SIGNS = ["(", ")", "<", "==", "-", "+", "/", "'", '"', "'3 h'", "3", "1e5", ".", "é", "\0", "#"]
PIECES = st.lists(st.sampled_from([*WORDS, *SIGNS])).map(" ".join)


@given(st.one_of(st.text(max_size=60), PIECES))
def test_any_text_is_an_expression_or_a_mistake(text: str) -> None:
    """Nothing but PlanError ever escapes, and whatever is read has a value."""
    try:
        expression = read(text)
    except PlanError:
        return
    expression.value(FIGURES)
    expression.value({})


def test_every_metric_can_be_asked_for() -> None:
    """Each name of the catalogue is read, or refused as the table it is."""
    tables = {
        name for name in (metric.name for metric in JOB_METRICS) if measurable(f"{name}.item")
    }
    assert tables
    for metric in JOB_METRICS:
        if metric.name in tables:
            assert parse_expression(f"{metric.name}.item > 0").names == (f"{metric.name}.item",)
        else:
            assert parse_expression(metric.name).names == (metric.name,)
