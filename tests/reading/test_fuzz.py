"""Whatever the input, the answer is a scenario or a `PlanError`."""

from __future__ import annotations

import io
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from simulator.errors import PlanError
from simulator.reading.scenario import load_scenario
from simulator.reading.sections import ScenarioFile
from simulator.reading.tables import table_keys

SOUND = (Path(__file__).parents[1] / "data" / "broken" / "base" / "sound.toml").read_text()
LINES = SOUND.splitlines()
ODD = """nan|-inf|true|[]|{}|''|"5 s"|"1e999 GB"|-0.0|1979-05-27|07:32:00|[{a=1}]|"\\u0000"|1e308"""
VALUES = st.one_of(
    st.sampled_from([*ODD.split("|"), "9" * 20, "0x" + "f" * 300]),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=10).map(lambda text: f"'{text}'"),
)


def all_keys() -> list[str]:
    """Dotted keys of all sections."""
    return [
        f"{section}.{key}"
        for section, each in table_keys(ScenarioFile).items()
        for key in (() if each.table is None else table_keys(each.table))
    ]


KEYS = st.sampled_from(
    [*all_keys(), "schema", "extends", "title", "hardware", "x.y", "train.evaluation.samples"]
)


def read(content: bytes, *overrides: str) -> None:
    """Load, and let only a `PlanError` with a message pass."""
    said = None
    try:
        load_scenario("-", stdin=io.BytesIO(content), overrides=overrides)
    except PlanError as error:
        said = str(error).strip()
    assert said is None or said


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf\xff\xfe")
@example(b"schema = 1\nhardware = " + b"{a=" * 200)
def test_random_bytes(content: bytes) -> None:
    """Bytes of any kind."""
    read(content)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_sound_scenario_with_bytes_changed(data: st.DataObject) -> None:
    """Bytes inserted, removed or replaced in a scenario that was sound."""
    content = bytearray(SOUND.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 5)))
        content[start:end] = data.draw(st.one_of(st.binary(max_size=4), st.just(b'"')))
    read(bytes(content))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=25))
def test_lines_of_a_sound_scenario_in_any_order(lines: list[str]) -> None:
    """Lines left out, repeated and under other headers."""
    read("\n".join(lines).encode())


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(KEYS, VALUES), max_size=3))
def test_any_value_for_any_key(pairs: list[tuple[str, str]]) -> None:
    """Options with values of every type, sensible or not."""
    read(SOUND.encode(), *(f"{key}={value}" for key, value in pairs))


@given(st.lists(st.text(max_size=20), max_size=3))
def test_any_text_as_option(options: list[str]) -> None:
    """Options of no form at all."""
    read(SOUND.encode(), *options)
