"""The line scanner against texts whose every key has a name of its own."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading.lines import KeyPath, TooDeepError, key_lines


def paths_of(data: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key and list position of parsed TOML."""
    if path:
        yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from paths_of(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from paths_of(value, (*path, index))


TEXT = '''
# a comment with [table] and key = 1
schema = 1   # [x]
"quoted key" = 'a # b'
'literal.key' = "c \\" = [d]"
a.b . "c.d" = """
[not.a.table]
e = 1
\\""" still text"""
lit = \'\'\'
f = 2
\'\'\'
list = [
  1, # one
  "two]",
  [3, 4],
  { x = 1, y.z = [
    5 ] },
]
when = 2024-01-01 10:00:00
[table]
g = { h = 1, i = { j = "}" } }
[table.inner.deep]
k = -inf
[[many]]
l = 1
[many.sub]
m = 1
[[many.more]]
n = 1
[[many.more]]
n = 2
[[many]]
l = 2
[[many.more]]
n = 3
["\\u0041 b"]
o = 1
'''


def test_lines_of_every_construct() -> None:
    """Comments, quoted and dotted keys, long strings, nested lists, inline tables, sub-tables."""
    lines = key_lines(TEXT).lines
    assert {path: lines[path] for path in lines if len(path) == 1} == {
        ("schema",): 3,
        ("quoted key",): 4,
        ("literal.key",): 5,
        ("a",): 6,
        ("lit",): 10,
        ("list",): 13,
        ("when",): 20,
        ("table",): 21,
        ("many",): 25,
        ("A b",): 37,
    }
    assert lines["a", "b", "c.d"] == 6
    assert lines["list", 1] == 15
    assert lines["list", 3, "y", "z", 0] == 18
    assert lines["table", "g", "i", "j"] == 22
    assert lines["table", "inner", "deep", "k"] == 24
    assert lines["many", 0, "sub", "m"] == 28
    assert lines["many", 0, "more", 1, "n"] == 32
    assert lines["many", 1, "more", 0, "n"] == 36
    assert lines["A b", "o"] == 38


def test_scanner_finds_just_the_keys_that_tomllib_does() -> None:
    """No key more, no key less."""
    assert set(key_lines(TEXT).lines) == set(paths_of(tomllib.loads(TEXT)))


SCALARS = st.sampled_from(
    ["1", "-2.5", "true", '"text"', "'lit # ='", '"a \\" b"', '"""x\n[y]\nz = 1"""', "2024-01-01"]
)
FORMS = st.sampled_from(["{}", '"{}"', "'{}'"])
GAPS = st.sampled_from(["", " ", "  "])


class Writer:
    """Writes a random TOML text in which every key is new: k1, k2, and so on."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.numbers = itertools.count(1)

    def key(self) -> str:
        """A new key in one of the three spellings."""
        return self.draw(FORMS).format(f"k{next(self.numbers)}_")

    def dotted(self) -> str:
        """One to three keys with dots between."""
        dot = f"{self.draw(GAPS)}.{self.draw(GAPS)}"
        return dot.join(self.key() for _ in range(self.draw(st.integers(1, 3))))

    def value(self, depth: int) -> str:
        """A scalar, a list over several lines, or an inline table."""
        kind = self.draw(st.sampled_from(["scalar", "scalar", "list", "table"]))
        if depth == 0 or kind == "scalar":
            return self.draw(SCALARS)
        size = range(self.draw(st.integers(0, 3)))
        if kind == "list":
            gap = self.draw(st.sampled_from(["", "\n", " # note ]\n "]))
            return "[" + ",".join(gap + self.value(depth - 1) for _ in size) + gap + "]"
        return "{ " + ", ".join(f"{self.key()} = {self.value(depth - 1)}" for _ in size) + " }"

    def statements(self) -> Iterator[str]:
        """Keys with values, blank lines and comments."""
        for _ in range(self.draw(st.integers(0, 3))):
            yield f"{self.draw(GAPS)}{self.dotted()}{self.draw(GAPS)}= {self.value(2)}  # c = 1"
            if self.draw(st.booleans()):
                yield "\n# [comment]"

    def text(self) -> str:
        """Statements, then tables and arrays of tables with sub-tables."""
        lines = list(self.statements())
        for _ in range(self.draw(st.integers(0, 3))):
            header = self.dotted()
            for _ in range(self.draw(st.integers(1, 2))):
                lines += [f"[[{header}]]", *self.statements()]
                lines += [f"[{header}.{self.key()}]", *self.statements()]
            lines += [f"[ {self.dotted()} ]", *self.statements()]
        return self.draw(st.sampled_from(["\n", "\r\n"])).join(lines).replace("\r\n\n", "\r\n\r\n")


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """Random valid TOML with a new name for every key."""
    return Writer(draw).text()


@given(toml_texts())
def test_scanner_agrees_with_tomllib_on_random_texts(text: str) -> None:
    """The same keys, and each on a line where its name stands."""
    found = key_lines(text).lines
    assert set(found) == set(paths_of(tomllib.loads(text)))
    rows = text.split("\n")
    for path, line in found.items():
        if isinstance(path[-1], str):
            assert path[-1] in rows[line - 1]


@given(st.text(alphabet='ab.="[]{}\'\n#\\ ,1"', max_size=60))
def test_scanner_stops_quietly_at_what_is_no_toml(text: str) -> None:
    """Whatever the text, it returns, and knows all keys of a text that is valid after all."""
    found = key_lines(text).lines
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(paths_of(data)) == set(found)


def test_too_deep_nesting_is_an_error_of_its_own() -> None:
    """The scanner doesn't run into Python's recursion limit first."""
    with pytest.raises(TooDeepError):
        key_lines("x = " + "[" * 50_000)
    with pytest.raises(TooDeepError):
        key_lines("a." * 50_000 + "b = 1")
