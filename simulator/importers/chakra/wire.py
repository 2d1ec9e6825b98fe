"""The binary form of a Chakra trace: messages of protocol buffers, each after its length.

Read here in a few lines rather than with the ``protobuf`` package: that needs classes generated
from ``et_def.proto`` by a compiler of a matching version, and what is wanted of three small
messages are a dozen fields by number. Numbers: mlcommons/chakra
``schema/protobuf/et_def.proto``, from memory (unverified: no trace of another program was at hand,
a wrong number shows as a defect); wire format:
https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from simulator.reading.reading import fail

NODE_TYPES: Final = (
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
)
"""What a node's type stands for, from 0."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_SIGN: Final = 1 << 63
_ALL: Final = 1 << 64


def _plain(value: object) -> object:
    return value


def _signed(value: Any) -> object:  # noqa: ANN401 - a value of the wire
    return value - _ALL if isinstance(value, int) and value >= _SIGN else value


def _zigzag(value: Any) -> object:  # noqa: ANN401 - a value of the wire
    return (value >> 1) ^ -(value & 1) if isinstance(value, int) else value


def _text(value: Any) -> object:  # noqa: ANN401 - a value of the wire
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _floating(letter: str) -> Callable[[Any], object]:
    def read(value: Any) -> object:  # noqa: ANN401 - a value of the wire
        whole = isinstance(value, bytes) and len(value) == struct.calcsize(letter)
        return struct.unpack(letter, value)[0] if whole else value

    return read


_SLOTS: Final[Mapping[int, tuple[str, Callable[[Any], object]]]] = {
    3: ("doubleVal", _floating("<d")),
    5: ("floatVal", _floating("<f")),
    7: ("int32Val", _signed),
    9: ("int64Val", _signed),
    11: ("uint32Val", _plain),
    13: ("uint64Val", _plain),
    15: ("sint32Val", _zigzag),
    17: ("sint64Val", _zigzag),
    27: ("boolVal", bool),
    29: ("stringVal", _text),
}
"""Field of an attribute: its name as JSON has it, and how its value is read; no lists."""


class WireError(Exception):
    """Bytes that are no message."""


def nodes(content: bytes, origin: str) -> tuple[str, list[dict[str, Any]]]:
    """Version and nodes of a binary trace, with the names that its JSON form has.

    Raises
    ------
    InputError
        If the bytes are no such messages, or end within one.
    """
    found: list[dict[str, Any]] = []
    version = ""
    for number, message in enumerate(_messages(content, origin)):
        try:
            if number == 0:
                version = str(_text(dict(_fields(message)).get(1, b"")))
                continue
            found.append(_node(message))
        except (WireError, struct.error) as error:
            fail(origin, f"is damaged: message {number} is not a node ({error})")
    return version, found


def _messages(content: bytes, origin: str) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        try:
            size, begin = _varint(content, at)
        except WireError:
            fail(origin, "is cut off or no Chakra trace: a message has no length")
        if begin + size > len(content):
            fail(origin, "is cut off or no Chakra trace: a message ends after the file")
        yield content[begin : begin + size]
        at = begin + size


def _node(message: bytes) -> dict[str, Any]:
    node: dict[str, Any] = {"ctrlDeps": [], "dataDeps": [], "attr": []}
    for field, value in _fields(message):
        if field in {1, 3, 6, 7} and not isinstance(value, int):
            msg = f"field {field} is no number"
            raise WireError(msg)
        if field == 3:  # noqa: PLR2004 - a field of the schema
            node["type"] = NODE_TYPES[value] if value < len(NODE_TYPES) else str(value)
        elif field in {4, 5}:
            node[{4: "ctrlDeps", 5: "dataDeps"}[field]] += _numbers(value)
        elif field in _PLAIN:
            node[_PLAIN[field]] = _text(value)
        elif field == 10:  # noqa: PLR2004 - a field of the schema
            node["attr"].append(_attribute(value))
    return node


_PLAIN: Final = {1: "id", 2: "name", 6: "startTimeMicros", 7: "durationMicros"}


def _numbers(value: Any) -> list[int]:  # noqa: ANN401 - a value of the wire
    """Repeated numbers: one by one, or packed."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def _attribute(value: Any) -> dict[str, object]:  # noqa: ANN401 - a value of the wire
    if not isinstance(value, bytes):
        msg = "an attribute is no message"
        raise WireError(msg)
    found: dict[str, object] = {}
    for field, each in _fields(value):
        if field == 1:
            found["name"] = _text(each)
        elif field in _SLOTS:
            name, read = _SLOTS[field]
            found[name] = read(each)
    return found


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and an integer or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield field, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
        if size < 0 or not field or at + size > len(message):
            msg = f"field {field} of wire type {kind}"
            raise WireError(msg)
        yield field, message[at : at + size]
        at += size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, lowest first, and where it ends."""
    value = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(content):
            break
        byte = content[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return value % _ALL, at + index + 1
    msg = "a number has no end"
    raise WireError(msg)
