"""Chakra traces in their three forms: sound ones read, others mended or refused."""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.importing import DATA, call, check_prefix, refused

from simulator.importers.chakra import trace as chakra
from simulator.importers.chakra.nodes import read_graph
from simulator.importers.chakra.trace import Request

SOUND = DATA / "chakra-jsonizer-invented.json"
DEFECTS = DATA / "chakra-defects-invented.json"
FEEDER = DATA / "chakra-feeder-invented.json"

FIELDS = {"id": 1, "name": 2, "type": 3, "ctrlDeps": 4, "dataDeps": 5, "durationMicros": 7}
SLOTS = {"int64Val": 9, "uint64Val": 13, "boolVal": 27, "doubleVal": 3, "stringVal": 29}
TYPES = ["INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE"]
TYPES += ["COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"]


def varint(number: int) -> bytes:
    """A number of 7 bits a byte."""
    parts = []
    number %= 1 << 64
    while True:
        number, low = number >> 7, number & 127
        parts.append(low | (128 if number else 0))
        if not number:
            return bytes(parts)


def field(number: int, value: object) -> bytes:
    """A field of a message: a number, a float, or bytes with their length."""
    if isinstance(value, bool | int):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    assert isinstance(data, bytes)
    return varint(number << 3 | 2) + varint(len(data)) + data


def binary(objects: list[dict[str, Any]], *, packed: bool) -> bytes:
    """The binary form of what the jsonizer prints."""
    messages = [field(1, objects[0]["version"])]
    for node in objects[1:]:
        message = b""
        for key, value in node.items():
            if key in {"ctrlDeps", "dataDeps"}:
                numbers = [varint(int(each)) for each in value]
                message += (
                    field(FIELDS[key], b"".join(numbers))
                    if packed
                    else b"".join(varint(FIELDS[key] << 3) + each for each in numbers)
                )
            elif key == "attr":
                message += b"".join(field(10, attribute(each)) for each in value)
            elif key == "type":
                message += field(3, TYPES.index(value))
            else:
                message += field(FIELDS[key], value if key == "name" else int(value))
        messages.append(message)
    return b"".join(varint(len(message)) + message for message in messages)


def attribute(entry: dict[str, Any]) -> bytes:
    """An attribute as a message."""
    made = field(1, entry["name"])
    for slot, number in SLOTS.items():
        if slot in entry:
            value = entry[slot]
            made += field(number, int(value) if slot in {"int64Val", "uint64Val"} else value)
    return made


def objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a jsonizer's output."""
    text, decoder, at, found = path.read_text(encoding="utf-8").strip(), json.JSONDecoder(), 0, []
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def write(folder: Path, nodes: list[dict[str, Any]], name: str = "trace.json") -> Path:
    """A trace of some nodes in the jsonizer's form."""
    path = folder / name
    whole = [{"version": "1.0.0"}, *nodes]
    path.write_text("".join(json.dumps(each, indent=1) for each in whole), encoding="utf-8")
    return path


def node(number: int, **keys: object) -> dict[str, Any]:
    """A node that computes for 10 us."""
    return {"id": str(number), "type": "COMP_NODE", "durationMicros": "10"} | keys


def reduce(number: int, size: object = "8", kind: object = "0") -> dict[str, Any]:
    """An all-reduce of 10 us."""
    attr = [{"name": "comm_type", "int64Val": kind}, {"name": "comm_size", "int64Val": size}]
    return node(number, type="COMM_COLL_NODE", attr=attr)


def test_a_sound_trace() -> None:
    """Times by type, bytes by collective, the longest path with and without communication."""
    found = chakra.read([SOUND], Request(batch=16))
    said = "\n".join(found.summary)
    assert "3 compute: 175 µs a step" in said
    assert "1 x all_reduce of 1.049 MB" in said
    # 50 + 100 + 25 is longer than 50 + 30 + 25.
    assert "longest path: 175 µs" in said
    assert found.warnings == ()
    assert tomllib.loads(found.text)["model"]["step_times"] == [
        {"batch_size": 16, "time": "175 µs"}
    ]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_the_binary_form_says_the_same(packed: bool, zipped: bool, tmp_path: Path) -> None:  # noqa: FBT001 - pytest passes them
    """Length-delimited messages, gzip or not, lists packed or not, make the same nodes."""
    content = binary(objects(SOUND), packed=packed)
    path = tmp_path / "rank0.et"
    path.write_bytes(gzip.compress(content) if zipped else content)
    found, expected = read_graph(path), read_graph(SOUND)
    assert found.form == "protocol buffers"
    assert found.version == "1.0.0"
    assert found.nodes == expected.nodes


def test_the_form_of_the_feeder() -> None:
    """``workload_graph`` with numbers in place of names."""
    found = read_graph(FEEDER)
    assert found.form == "feeder JSON"
    assert [n.kind for n in found.nodes] == ["COMP_NODE", "COMM_COLL_NODE"]
    assert found.nodes[1].operation == "all_reduce"
    assert found.nodes[1].size == 1048576
    assert found.nodes[0].duration == pytest.approx(50e-6)


def test_a_trace_with_defects_is_refused_with_their_list() -> None:
    """Each kind of defect is one message with its count and first nodes."""
    lines = refused("chakra", DEFECTS)
    assert len(lines) == 4
    said = "\n".join(lines)
    for part in (
        "2 x dependency on a node that is not there (dropped): node 1, 1",
        "1 x collective without comm_type on the CPU",
        "1 x comm_size in the slot uint64Val, where int64Val is read (as 0): node 3",
        "1 x work on a device that takes no time (kept so): node 4",
        "--repair mends this",
    ):
        assert part in said


def test_what_can_be_mended_is_mended(tmp_path: Path) -> None:
    """``--repair`` reads the trace and says what it mended."""
    outcome = call("chakra", DEFECTS, "--repair", "--batch", "4", "-o", tmp_path / "step.toml")
    assert outcome.code == 0
    assert outcome.err.count("warning: mended") == 4
    assert "1 x all_reduce of 1.049 MB" in outcome.out
    data = tomllib.loads((tmp_path / "step.toml").read_text(encoding="utf-8"))
    assert data["model"]["step_times"] == [{"batch_size": 4, "time": "50 µs"}]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node(1, dataDeps=["2"]), node(2, dataDeps=["1"])], "2 x on or behind a circle"),
        ([node(1, dataDeps=["1"])], "1 x dependency on itself: node 1"),
        ([node(7), node(7)], "1 x number given twice: node 7"),
        ([node(1, type="COMM_COLL_NODE")], "1 x collective without comm_type: node 1"),
        ([reduce(1, kind="12")], "1 x collective whose comm_type is none of 0 to 9: node 1"),
        ([reduce(1, size="-5")], "1 x collective without a comm_size: node 1"),
    ],
)
def test_what_cannot_be_mended_is_refused(
    nodes: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    """Defects that leave open what was meant are refused with and without ``--repair``."""
    path = write(tmp_path, nodes)
    assert any(message in line for line in refused("chakra", path))
    lines = refused("chakra", path, "--repair")
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node(1, durationMicros="-3")], "[0].durationMicros: is negative, found '-3'"),
        ([node(1, durationMicros=float("nan"))], "durationMicros: is not a finite number"),
        ([node(1, type="COMPUTE")], "has an unknown 'type', found 'COMPUTE'"),
        ([node(1, dataDeps=["x"])], "is not a number, found 'x'"),
        ([], "holds no nodes"),
    ],
)
def test_impossible_values_are_refused(
    nodes: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    """One message with the place of the node."""
    lines = refused("chakra", write(tmp_path, nodes), "--repair")
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}', "is not a Chakra trace"),
        (b'{"version": "1"} 3', "holds something that is no object"),
        (b'{"version": "1"} {"id": ', "is cut off"),
        (b"hello world", "is cut off or no Chakra trace"),
        (b"\x02\x0a\x00\x02\x1b\x1b", "is damaged: message 1 is not a node"),
        (b"\xff" * 20, "is cut off or no Chakra trace"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    """Text, bytes and JSON of other kinds are one message."""
    path = tmp_path / "trace.et"
    path.write_bytes(content)
    lines = refused("chakra", path)
    assert len(lines) == 1
    assert message in lines[0]


def test_ranks_have_to_agree(tmp_path: Path) -> None:
    """A rank that exchanges other messages than the first is named."""
    same = [write(tmp_path, [reduce(1), node(2)], f"{rank}.json") for rank in range(2)]
    assert call("chakra", *same).code == 0
    other = write(tmp_path, [reduce(1, size="16")], "2.json")
    lines = refused("chakra", *same, other)
    assert len(lines) == 1
    assert "has other collectives than" in lines[0]


def test_a_trace_of_several_steps_is_divided() -> None:
    """``--steps`` says how many there are."""
    found = chakra.read([SOUND], Request(batch=16, steps=5))
    assert tomllib.loads(found.text)["model"]["step_times"][0]["time"] == "35 µs"


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.0, 1.0), form=st.sampled_from(["json", "binary", "feeder"]))
def test_a_prefix_is_read_or_refused(share: float, form: str) -> None:
    """A trace cut off anywhere never ends in a traceback."""
    content = {
        "json": SOUND.read_bytes(),
        "binary": binary(objects(SOUND), packed=True),
        "feeder": FEEDER.read_bytes(),
    }[form]
    with tempfile.TemporaryDirectory() as folder:
        check_prefix(content[: int(share * len(content))], Path(folder), "chakra", "--repair")


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Bytes of any kind never end in a traceback."""
    with tempfile.TemporaryDirectory() as folder:
        check_prefix(content, Path(folder), "chakra")
