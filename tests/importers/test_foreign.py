"""Foreign files before their content counts: size, kind, encoding, cut off."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refusal

from simulator.importers.foreign import (
    MAX_BYTES,
    parse_json,
    read_bytes,
    read_json,
    read_text,
)

Refused = Callable[..., list[str]]


def test_plain_and_gzip_read_alike(tmp_path: Path) -> None:
    """A gzip file is found by its first bytes, under any name; members are joined."""
    plain, packed = tmp_path / "a.json", tmp_path / "b.json"
    plain.write_text('{"a": [1]}')
    packed.write_bytes(gzip.compress(b'{"a": ') + gzip.compress(b"[1]}"))
    assert read_json(plain, "JSON") == read_json(packed, "JSON") == {"a": [1]}


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, problems: Refused) -> None:
    """The size is asked for first: a gigabyte without a byte on disk takes no time."""
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(4 * MAX_BYTES)
    said = f"{path}: is larger than 268.4 MB, found 1.074 GB; record a shorter run"
    assert problems(read_bytes, path) == [f"{said}, or take a part of it"]


def test_a_small_gzip_of_a_huge_file_is_refused(tmp_path: Path, problems: Refused) -> None:
    """Unpacking stops at the limit."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * 3_000_000))
    assert "is larger than 1 kB" in problems(read_bytes, path, 1000)[0]


def test_a_gzip_cut_in_half(tmp_path: Path, problems: Refused) -> None:
    """The stream has no end."""
    path = tmp_path / "half.gz"
    whole = gzip.compress(bytes(range(256)) * 50)
    path.write_bytes(whole[: len(whole) // 2])
    assert problems(read_bytes, path) == [f"{path}: is cut off: the gzip stream has no end"]


def test_a_damaged_gzip(tmp_path: Path, problems: Refused) -> None:
    """Bytes that are not a stream are said to be none."""
    path = tmp_path / "damaged.gz"
    path.write_bytes(b"\x1f\x8b" + b"\xff" * 50)
    assert "is damaged: not a gzip stream" in problems(read_bytes, path)[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"\x00\x01\x02{}", "is a binary file, not the wanted thing"),
        (b"\x7fELF\xff\xff", "is not text, so not the wanted thing"),
    ],
)
def test_what_is_no_text(tmp_path: Path, problems: Refused, content: bytes, message: str) -> None:
    """Empty and binary files are said to be that."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert message in problems(read_text, path, "the wanted thing")[0]


def test_what_is_no_file(tmp_path: Path, problems: Refused) -> None:
    """Missing files come with the nearest name; folders are said to be that."""
    (tmp_path / "fio.json").write_text("{}")
    assert "did you mean" in problems(read_text, tmp_path / "fio.jsn", "x")[0]
    assert "is a folder" in problems(read_text, tmp_path, "x")[0]


def test_utf_16_of_a_windows_shell_is_read(tmp_path: Path) -> None:
    """PowerShell redirects as UTF-16 with a mark."""
    path = tmp_path / "out.txt"
    path.write_bytes("GPU0\r\nµs".encode("utf-16"))
    assert read_text(path, "x") == "GPU0\nµs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": [1, 2', "is cut off: the JSON stops before its end"),
        ('{"a": "b', "is cut off"),
        ('{"a": tru', "is cut off"),
        ('{"a": 1.', "is cut off"),
        ('{"a"', "is cut off"),
        ('{"a": 1}}', "is not valid JSON: extra data (column 9)"),
        ("{'a': 1}", "is not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_broken_json(problems: Refused, text: str, message: str) -> None:
    """What is cut off is distinguished from what is wrong."""
    assert message in problems(parse_json, text, "f.json")[0]


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """No content leads to anything but data or one message."""
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(content)
    assert len(refusal(read_json, path, "JSON")) <= 1


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_gzip_with_a_wrong_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, data: st.DataObject
) -> None:
    """A flipped byte in the stream gives data or a message."""
    packed = bytearray(gzip.compress(content))
    place = data.draw(st.integers(2, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("any") / "file.gz"
    path.write_bytes(bytes(packed))
    assert len(refusal(read_bytes, path)) <= 1
