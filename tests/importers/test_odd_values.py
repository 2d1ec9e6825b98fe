"""Every importer reads or refuses files with one odd value; none breaks."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import Callable
from gzip import compress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.importing import ANSWERS, call
from support.odd_values import FORMATS, LEVELS, write_odd

from simulator.importers import foreign
from simulator.importers.foreign import MAX_DEPTH, parse_json, read_bytes, read_json, read_long_list
from simulator.importers.torch_profiler.trace_file import read_trace

Refused = Callable[..., list[str]]


@pytest.mark.parametrize("number", range(len(FORMATS)))
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_an_odd_value_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, number: int, seed: int
) -> None:
    """NaN, 1e-310, a list, 5,000 digits or 2,000 levels: an answer, or short messages."""
    arguments = write_odd(number, Random(seed), tmp_path_factory.mktemp("odd"))  # noqa: S311 - drawn
    outcome = call(*arguments)
    assert outcome.code in ANSWERS, outcome
    said = [line for line in outcome.err.splitlines() if not line.startswith("plan: warning:")]
    if outcome.code == ANSWERS[2]:
        assert 1 <= len(said) <= 21
        assert all(len(line) < 1500 for line in said)


@pytest.mark.parametrize("number", range(len(FORMATS)))
def test_the_samples_themselves_are_read(number: int, tmp_path: Path) -> None:
    """What is changed above is accepted as it is."""
    arguments = write_odd(number, None, tmp_path)
    outcome = call(*arguments)
    assert outcome.code == ANSWERS[0] or "not modelled" in outcome.err, outcome


@pytest.mark.parametrize("text", ["[" * LEVELS + "]" * LEVELS, '{"a":' * 200 + "1" + "}" * 200])
def test_depth_is_bounded(problems: Refused, text: str) -> None:
    """Python's parser allows about a thousand levels, the door a hundred."""
    assert problems(parse_json, text, "f.json") == [
        f"f.json: is nested too deeply; at most {MAX_DEPTH} levels are read"
    ]


def test_gzip_members_are_not_copied_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 empty members: a member hands on at most one piece, not the rest of the file."""
    path = tmp_path / "many.gz"
    path.write_bytes(compress(b"") * 5_000 + compress(b"{}"))
    seen: list[int] = []
    real = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._real = real(wbits=wbits)

        def decompress(self, part: bytes) -> bytes:
            seen.append(len(part))
            return self._real.decompress(part)

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    monkeypatch.setattr(foreign.zlib, "decompressobj", Counting)
    assert read_bytes(path) == b"{}"
    assert max(seen) <= 16 * 1024
    assert len(seen) <= 5_100


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(max_size=5), st.integers() | st.lists(st.integers()), max_size=4),
    st.lists(
        st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False) | st.text(max_size=9))
    ),
    st.integers(1, 40),
    st.booleans(),
)
def test_a_long_list_is_read_as_if_whole(
    tmp_path_factory: pytest.TempPathFactory,
    others: dict[str, object],
    elements: list[object],
    piece: int,
    packed: bool,  # noqa: FBT001 - drawn
) -> None:
    """Pieces of any size end anywhere: in numbers, in characters of several bytes, in names."""
    whole = {**others, "list": elements}
    text = json.dumps(whole, ensure_ascii=False, indent=1).encode(errors="replace")
    path = tmp_path_factory.mktemp("long") / "a.json"
    path.write_bytes(compress(text) if packed else text)
    found: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign, "_PIECE", piece)
        patch.setattr(foreign, "_PACKED_PIECE", piece)
        members = read_long_list(path, "JSON", "list", lambda _, value: found.append(value))
    known = read_json(path, "JSON")
    assert found == known["list"]
    assert members == {**known, "list": []}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"list": [1, 2\n', "f:1: is cut off"),
        ('{"list": [1,\n\n 2 3]}', "f:3: is not valid JSON: expecting ',' delimiter"),
        ('{"a": 1, "list": [1]', "is cut off"),
        ('{"list": [tru', "is cut off"),
        ('{"list": []} {}', "is not valid JSON: extra data"),
        ('{"list": [' + "[" * 300 + "]" * 300 + "]}", "is nested too deeply"),
        ('{"list": [' + "9" * 5000 + "]}", "a number of thousands of digits"),
        ("[1]", "is not a JSON object but a list"),
        ("7", "is not a JSON object but a value"),
        ("", "is empty"),
        ('{"list": [1], 5: 6}', "is not valid JSON: expecting property name"),
    ],
)
@pytest.mark.parametrize("piece", [3, 1_000_000])
def test_a_broken_long_list(  # noqa: PLR0913, PLR0917 - fixtures
    tmp_path: Path,
    problems: Refused,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    said: str,
    piece: int,
) -> None:
    """With the line in the file, although only a part of it is in memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(foreign, "_PIECE", piece)
    Path("f").write_text(text)
    (message,) = problems(read_long_list, Path("f"), "JSON", "list", lambda *_: None)
    assert said in message


def test_a_trace_takes_less_memory_than_its_file_as_objects(tmp_path: Path) -> None:
    """Events are kept as they come: 6 MB of trace need less than four times that, not nine."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.5}
    event |= {"dur": 2.5, "args": {f"key {number}": number for number in range(12)}}
    path = tmp_path / "t.json"
    count = 20_000
    path.write_text(json.dumps({"traceEvents": [event] * count}))
    shares: list[float] = []
    tracemalloc.start()
    try:
        trace = read_trace(path, shares.append)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(events) for events in trace.events.values()) == count
    assert peak < 4 * path.stat().st_size
    assert shares == sorted(shares)
    assert len(shares) >= 4
