"""From text to an expression, with everything that can be wrong said in one sentence."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from simulator.errors import PlanError, UnitError
from simulator.physics.footprint import Verdict
from simulator.results.binding import LIMITS
from simulator.results.expression.ranges import Range, extent, outlook
from simulator.results.expression.tree import (
    COMPARISONS,
    Comparison,
    Constant,
    Figures,
    Kind,
    Logical,
    Name,
    Negated,
    Node,
    Operation,
    Opposite,
    holds,
    in_unit,
    quoted,
    walk,
)
from simulator.results.metrics import METRICS, Value, measurable
from simulator.units import Unit

LONGEST: Final = 2_000
"""Characters of an expression."""
DEEPEST: Final = 30
"""Parentheses, signs and negations that may stand within one another."""

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.\w+)*)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign><=|>=|==|!=|[-+*/<>()]))",
    re.ASCII,
)
_WORDS: Final = frozenset({"and", "or", "not", "true", "false"})
_SPACE: Final = " \t\r\n\f\v"
_NAMES: Final = tuple(metric.name for metric in METRICS)
_SAME: Final = "compare numbers with numbers and words with quoted words"
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("fits.gpu", "fits.host"), tuple(Verdict)),
    **dict.fromkeys(("bottleneck", "next_bottleneck"), LIMITS),
}
"""What a metric that is a word can be."""
_INSTEAD: Final = {"=": "==", "&": "and", "|": "or", "!": "not", "^": "or", "%": "*", ",": "and"}


class ExpressionError(PlanError):
    """An expression that cannot be read: `message` says why, `hint` what is allowed."""

    def __init__(self, text: str, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        longest = 80
        short = text if len(text) <= longest else f"{text[: longest - 3]}..."
        super().__init__(f"expression {short!r}: {message}{f'; {hint}' if hint else ''}")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over figures; two are equal if they read the same but for spaces."""

    root: Node

    def __str__(self) -> str:
        """The expression as `parse_expression` reads it back."""
        return str(self.root)

    @property
    def names(self) -> tuple[str, ...]:
        """The names it needs figures of, each once, in order."""
        found = (node.name for node in walk(self.root) if isinstance(node, Name))
        return tuple(dict.fromkeys(found))

    @property
    def is_condition(self) -> bool:
        """Whether it is true or false, and no number."""
        return self.root.kind in (Kind.TRUTH, Kind.ANY)

    @property
    def is_number(self) -> bool:
        """Whether it is a number, and so can be made large or small."""
        return self.root.kind in (Kind.NUMBER, Kind.ANY)

    @property
    def unit(self) -> Unit | None:
        """What its value is measured in, where one unit follows."""
        return self.root.unit

    def value(self, figures: Figures) -> Value:
        """Its value for these figures; None where one of them that counts is unknown."""
        return self.root.of(figures)

    def holds(self, figures: Figures) -> bool:
        """Whether it is a condition that these figures meet."""
        return holds(self.root, figures)

    def range(self, ranges: Mapping[str, Range]) -> Range:
        """Between which ends its value lies where figures lie within ranges.

        Figures without a range may be anything. Where a figure turns out not to be there, its
        value is unknown all the same.
        """
        low, high, _ = extent(self.root, ranges)
        return low, high

    def may_hold(self, ranges: Mapping[str, Range]) -> bool:
        """Whether some figures within these ranges meet it; others may be anything."""
        return outlook(self.root, ranges).true


def parse_expression(
    text: str, *, extra_names: Collection[str] | Mapping[str, Unit | None] = ()
) -> Expression:
    """Read an expression over metrics.

    Parameters
    ----------
    text : str
        Such as ``fits.gpu != 'no' and cost.usd_to_train < 500``.
    extra_names : collection of str, or mapping of str to Unit
        Names beside the metrics, such as the keys a sweep varies; with a unit where their values
        are quantities written as text.

    Raises
    ------
    ExpressionError
        A PlanError that says what is wrong; an unknown name with the nearest metric.

    Examples
    --------
    >>> str(parse_expression("total_time_s < '3 h' and not fits.gpu == 'no'"))
    "total_time_s < '3 h' and not fits.gpu == 'no'"
    >>> parse_expression("2 * cost.usd_to_train + 1").value({"cost.usd_to_train": 3.0})
    7.0
    """
    extra = dict(extra_names) if isinstance(extra_names, Mapping) else dict.fromkeys(extra_names)
    if len(text) > LONGEST:
        _fail(text, "is too long", f"at most {LONGEST} characters")
    return Expression(_Parser(text, extra).whole())


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, extra: Mapping[str, Unit | None]) -> None:
        self.text = text
        self.extra = extra
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    def whole(self) -> Node:
        """The tree of all of the text."""
        if not self.tokens:
            _fail(self.text, "is empty", "write a condition such as fits.gpu != 'no'")
        node = self._either()
        if self.at < len(self.tokens):
            self._fail_here("cannot follow what stands before it")
        if isinstance(node, Constant) and node.kind is Kind.TEXT:
            _fail(self.text, "is only a text", "compare a metric with it")
        if _levels(node) > 2 * DEEPEST:
            _fail(self.text, "has too many terms", f"at most {2 * DEEPEST}")
        return node

    def _either(self) -> Node:
        return self._joined("or", self._both)

    def _both(self) -> Node:
        return self._joined("and", self._negation)

    def _joined(self, word: str, read: Callable[[], Node]) -> Node:
        parts = [read()]
        while self._take("word", word):
            parts.append(read())
        if len(parts) == 1:
            return parts[0]
        return Logical(word, tuple(self._condition(node) for node in parts))

    def _negation(self) -> Node:
        if not self._take("word", "not"):
            return self._comparison()
        return Negated(self._condition(self._within(self._negation)))

    def _comparison(self) -> Node:
        left = self._sum()
        sign = self._comparing()
        if sign is None:
            return left
        self.at += 1
        node = self._compared(sign, left, self._sum())
        if self._comparing() is not None:
            self._fail_here("compares a second time", "join two comparisons by 'and'")
        return node

    def _comparing(self) -> str | None:
        kind, text = self._peek()
        return text if kind == "sign" and text in COMPARISONS else None

    def _sum(self) -> Node:
        return self._terms("+-", self._product)

    def _product(self) -> Node:
        return self._terms("*/", self._signed)

    def _terms(self, signs: str, read: Callable[[], Node]) -> Node:
        node = read()
        while self._peek()[0] == "sign" and self._peek()[1] in signs:
            sign = self._peek()[1]
            self.at += 1
            node = Operation(sign, self._number(node), self._number(read()))
        return node

    def _signed(self) -> Node:
        if not self._take("sign", "-"):
            return self._operand()
        return Opposite(self._number(self._within(self._signed)))

    def _operand(self) -> Node:
        kind, text = self._peek()
        if kind == "sign" and text == "(":
            self.at += 1
            node = self._within(self._either)
            if not self._take("sign", ")"):
                self._fail_here("stands where a closing parenthesis is needed")
            return node
        if kind in ("", "sign") or text in ("and", "or", "not"):
            self._fail_here("stands where a name, a number or a quoted text is needed")
        self.at += 1
        if kind == "number":
            return self._literal(text)
        if kind == "text":
            return Constant(text[1:-1])
        return Constant(text == "true") if kind == "word" else self._name(text)

    def _literal(self, text: str) -> Node:
        value = float(text)
        if not math.isfinite(value):
            _fail(self.text, f"{text} is too large to be meant")
        return Constant(value)

    def _name(self, name: str) -> Node:
        if name in self.extra:
            unit = self.extra[name]
            return Name(name, Kind.ANY if unit is None else Kind.NUMBER, unit)
        metric = measurable(name)
        if metric is not None:
            return Name(name, Kind.NUMBER, metric.unit)
        if name in CHOICES:
            return Name(name, Kind.TEXT)
        known = (*_NAMES, *self.extra)
        if name in _NAMES:
            _fail(self.text, f"{name} is a table of figures", f"name one of them, {name}.<item>")
        below = [other for other in known if other.startswith(f"{name}.")]
        if below:
            _fail(self.text, f"{name} is a group of metrics", f"name one of {', '.join(below)}")
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        meant = f"did you mean '{close[0]}'?" if close else "plan metrics lists them"
        return _fail(self.text, f"there is no metric '{name}'", meant)

    def _compared(self, sign: str, left: Node, right: Node) -> Node:
        left, right = self._measured(left, right, sign), self._measured(right, left, sign)
        kinds = {left.kind, right.kind} - {Kind.ANY}
        if len(kinds) > 1:
            _fail(self.text, f"{left} is {left.kind} and {right} is {right.kind}", _SAME)
        if kinds - {Kind.NUMBER} and sign not in ("==", "!="):
            _fail(self.text, f"{left} {sign} {right} puts words in order", "use == or !=")
        return Comparison(sign, left, right)

    def _measured(self, node: Node, beside: Node, sign: str) -> Node:
        """A quoted text beside something with a unit is a quantity of it; beside a word, one."""
        if not isinstance(node, Constant) or not isinstance(node.value, str):
            return node
        if beside.kind is Kind.NUMBER:
            return Constant(self._quantity(node.value, beside), node.value)
        choices = CHOICES.get(beside.name) if isinstance(beside, Name) else None
        if choices is not None and node.value not in choices:
            allowed = ", ".join(choices)
            _fail(self.text, f"{beside} is never '{node.value}'", f"allowed: {allowed}")
        if beside.kind is Kind.ANY and sign not in ("==", "!="):
            _fail(
                self.text, f"{beside} has no unit that '{node.value}' could be in", "use a number"
            )
        return node

    def _quantity(self, text: str, beside: Node) -> float:
        if beside.unit is None:
            _fail(self.text, f"{beside} has no unit", f"compare it with a number, not '{text}'")
        try:
            return in_unit(text, beside.unit)
        except UnitError as error:
            return _fail(self.text, f"{quoted(text)} beside {beside} {error}")

    def _condition(self, node: Node) -> Node:
        if node.kind not in (Kind.TRUTH, Kind.ANY):
            _fail(self.text, f"{node} is {node.kind}, where a condition is needed", "compare it")
        return node

    def _number(self, node: Node) -> Node:
        if node.kind not in (Kind.NUMBER, Kind.ANY):
            _fail(self.text, f"{node} is {node.kind}, where a number is needed")
        return node

    def _within(self, read: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            _fail(self.text, "is nested too deeply", f"at most {DEEPEST} levels")
        node = read()
        self.depth -= 1
        return node

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def _take(self, kind: str, text: str) -> bool:
        taken = self._peek() == (kind, text)
        self.at += taken
        return taken

    def _fail_here(self, message: str, hint: str = "") -> NoReturn:
        _, text = self._peek()
        what = text if text and not text.startswith(("'", '"')) else f"the text {text}"
        _fail(self.text, f"{what if text else 'the end'} {message}", hint)


def _tokens(text: str) -> tuple[tuple[str, str], ...]:
    """Kind and text of each token."""
    found, at, end = [], 0, len(text.rstrip(_SPACE))
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].lstrip(_SPACE)
            _fail(text, *_stray(rest))
        kind, token = str(match.lastgroup), match[str(match.lastgroup)]
        found.append(("word" if token in _WORDS else kind, token))
        at = match.end()
    return tuple(found)


def _stray(rest: str) -> tuple[str, str]:
    """What is wrong with text that begins no token."""
    if rest[0] in "'\"":
        return "a quoted text has no end", "close its quote"
    instead = _INSTEAD.get(rest[0])
    return f"{rest[0]!r} is no part of an expression", f"write {instead}" if instead else ""


def _fail(text: str, message: str, hint: str = "") -> NoReturn:
    raise ExpressionError(text, message, hint)


def _levels(node: Node) -> int:
    """How deep the tree is."""
    level, depth = [node], 0
    while level:
        level = [part for node in level for part in node.parts()]
        depth += 1
    return depth
