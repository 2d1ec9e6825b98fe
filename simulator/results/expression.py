"""Expressions over metrics, as goals and constraints are written: ``cost.usd_to_train < '$500'``.

The grammar is Python's own: `ast` parses the text, and a whitelist keeps ``and``, ``or``, ``not``,
comparisons, ``+ - * /``, dotted names, numbers, quoted text, ``true`` and ``false``. Nothing is
executed. Names are those of `metrics`, items of its tables included, and keys of a scenario where
the caller allows them. Quoted text is a word (``fits.gpu != 'no'``) or, compared with a figure
that has a unit, a quantity (``total_time_s < '3 h'``). Where a metric has no figure a comparison is
false and a sum unknown; so it is after a division by zero.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import product
from typing import Any, Final, NamedTuple, NoReturn, SupportsFloat, TypeAlias

from simulator.errors import PlanError, UnitError
from simulator.physics.footprint import Verdict
from simulator.records import dataclass
from simulator.results.binding import LIMITS
from simulator.results.metrics import JOB_METRICS, SOLVER, USD_PER_HOUR, Value, measurable
from simulator.units import HOUR, USD_PER_SECOND, Unit, parse

MAX_LENGTH: Final = 2_000
"""Characters of an expression."""
MAX_DEPTH: Final = 60
"""Operations nested within one another."""
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("fits.gpu", "fits.host"), tuple(Verdict)),
    **dict.fromkeys(("bottleneck", "next_bottleneck"), LIMITS),
    "solver": (SOLVER,),
}
"""Values of the metrics that are words."""

Figures: TypeAlias = Mapping[str, Any]
"""Values by name. Any: settings of a scenario may be used in addition to metrics."""
Range: TypeAlias = tuple[float, float]
"""The smallest and the largest value of a figure."""

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_OPERATORS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_SYMBOLS: Final[Mapping[type[ast.AST], str]] = {
    **dict(zip(_OPERATORS, _COMPARISONS, strict=True)),
    **dict(zip((ast.Add, ast.Sub, ast.Mult, ast.Div), _ARITHMETIC, strict=True)),
    ast.And: "and",
    ast.Or: "or",
}
"""What the whitelist has of Python's operators."""
_EQUALITIES: Final = ("==", "!=")
_ALLOWED: Final = "allowed: and, or, not, comparisons, + - * / and parentheses"
_CONSTANT, _FIGURE, _MINUS = "constant", "figure", "minus"
_QUOTED: Final = r"""'[^']*'|"[^"]*\""""
_LEXICAL: Final = re.compile(rf"(?:{_QUOTED}|[<>=!]=|[\w.+\-*/<>() ])*", re.ASCII)
"""What consists of characters of the language only."""
_AT_ERROR: Final = re.compile(rf"{_QUOTED}|[\w.]+|[<>=!]=|\S")
_OPEN_END: Final = re.compile(r"(?:[-+*/<>=(]|\b(?:and|or|not))$")
_INSTEAD: Final = {"=": "==", "&": "and", "|": "or", "!": "not", "^": "or", "%": "*", ",": "and"}


class ExpressionError(PlanError):
    """An expression that cannot be read: `message` says why, `hint` what is allowed."""

    def __init__(self, text: str, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint
        longest = 80
        short = text if len(text) <= longest else f"{text[: longest - 3]}..."
        super().__init__(f"expression {short!r}: {message}{f'; {hint}' if hint else ''}")


class Kind(StrEnum):
    """Type of the value of an expression."""

    TRUTH = "a condition"
    NUMBER = "a number"
    TEXT = "a word"
    SETTING = "a setting"
    """Number, text or condition: known only once there is a value."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a syntax tree: a constant, the name of a metric, or an operation.

    `sign` is the operator, "constant" or "figure" (a metric); `value` is the constant or the name
    of the metric, and `parts` are the operands.
    """

    sign: str
    kind: Kind
    unit: Unit | None = None
    parts: tuple[Node, ...] = ()
    value: float | bool | str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over metrics; two are equal if they differ only in whitespace."""

    text: str
    root: Node

    def __str__(self) -> str:
        """Return the text of the expression, which `parse_expression` can parse."""
        return self.text

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics in the expression, without repetition, in order."""
        return tuple(dict.fromkeys(_figures(self.root)))

    @property
    def is_condition(self) -> bool:
        """True if the expression can be a condition."""
        return self.root.kind in (Kind.TRUTH, Kind.SETTING)

    @property
    def is_number(self) -> bool:
        """True if the expression can be a number, which can be minimized."""
        return self.root.kind in (Kind.NUMBER, Kind.SETTING)

    @property
    def unit(self) -> Unit | None:
        """Unit of the value; None if it does not follow from the metrics."""
        return self.root.unit

    def value(self, figures: Figures) -> Value:
        """Evaluate the expression for these metrics; None if one that it needs is unknown."""
        return _value(self.root, figures)

    def holds(self, figures: Figures) -> bool:
        """Return true if the expression is a condition that these metrics satisfy."""
        return _value(self.root, figures) is True

    def range(self, ranges: Mapping[str, Range]) -> Range:
        """Return the smallest and largest value for metrics within `ranges`.

        Metrics without a range may have any value. If a metric is unknown, so is the value.
        """
        low, high, _ = _extent(self.root, ranges)
        return low, high

    def may_hold(self, ranges: Mapping[str, Range]) -> bool:
        """Return false if no metrics within `ranges` satisfy it; others may have any value."""
        return _outlook(self.root, ranges).true


def parse_expression(
    text: str, *, extra_names: Collection[str] | Mapping[str, Unit | None] = ()
) -> Expression:
    """Parse an expression over metrics.

    Parameters
    ----------
    text : str
        Expression, such as ``fits.gpu != 'no' and cost.usd_to_train < 500``.
    extra_names : collection of str, or mapping of str to Unit
        Names in addition to the metrics, such as the keys a sweep varies; with a unit where their
        values are quantities written as text.

    Raises
    ------
    ExpressionError
        For syntax that is not in the whitelist, values that cannot be compared and unknown names,
        with the nearest metric.

    Examples
    --------
    >>> str(parse_expression("total_time_s < '3 h' and not fits.gpu == 'no'"))
    "total_time_s < '3 h' and (not fits.gpu == 'no')"
    >>> parse_expression("2 * cost.usd_to_train + 1").value({"cost.usd_to_train": 3.0})
    7.0
    """
    extra = dict(extra_names) if isinstance(extra_names, Mapping) else dict.fromkeys(extra_names)
    tree = _syntax_tree(text)
    root = _Reader(text, extra).node(tree)
    if root.kind is Kind.TEXT and root.sign == _CONSTANT:
        _fail(text, "is only a text", "compare a metric with it")
    return Expression(ast.unparse(tree), root)


def _syntax_tree(text: str) -> ast.expr:
    """Parse with Python's grammar; raise ExpressionError with messages of this language."""
    if len(text) > MAX_LENGTH:
        _fail(text, "is too long", f"at most {MAX_LENGTH} characters")
    line = re.sub(r"[ \t\r\n\f\v]", " ", text).strip(" ")
    if not line:
        _fail(text, "is empty", "write a condition such as fits.gpu != 'no'")
    lexical = _LEXICAL.match(line)
    rest = line[lexical.end() if lexical else 0 :]
    if rest[:1] in ("'", '"') and rest:
        _fail(text, "a quoted text has no end", "close its quote")
    unprintable = next((each for each in line if not each.isprintable() or each == "\\"), "")
    if rest or unprintable:
        stray = rest[:1] or unprintable
        instead = f"write {_INSTEAD[stray]}" if stray in _INSTEAD else ""
        _fail(text, f"{stray!r} is not part of the expression language", instead)
    try:
        with warnings.catch_warnings(action="ignore"):  # 1or 2: a deprecated way to write it
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        _fail(text, *_syntax_error(line, error))
    except (MemoryError, RecursionError):
        _fail(text, "is nested too deeply", f"at most {MAX_DEPTH} levels")


def _syntax_error(line: str, error: SyntaxError) -> tuple[str, str]:
    """Return message and hint for the position at which Python's parser stops."""
    if "was never closed" in error.msg:
        return "a parenthesis has no end", "close it"
    if "too many nested" in error.msg:
        return "is nested too deeply", f"at most {MAX_DEPTH} levels"
    found = _AT_ERROR.search(line, max((error.offset or 1) - 1, 0))
    if found is None or _OPEN_END.search(line):
        return "the end is where a name, a number or a quoted text is needed", ""
    return f"{found[0]} cannot be at this place", ""


class _Reader:
    """Type checker of an expression: converts Python's syntax tree to nodes with units."""

    def __init__(self, text: str, extra: Mapping[str, Unit | None]) -> None:
        self.text = text
        self.extra = extra

    def node(self, tree: ast.expr, depth: int = 0) -> Node:  # noqa: C901, PLR0911 - a case for each kind
        """Convert a syntax tree to a node.

        Raises
        ------
        ExpressionError
            For syntax that is not in the whitelist, or for mixed types.
        """
        if depth > MAX_DEPTH:
            self._fail("is nested too deeply", f"at most {MAX_DEPTH} levels")
        match tree:
            case ast.BoolOp(op=op, values=values):
                return self._logical(_SYMBOLS[type(op)], values, depth)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return self._logical("not", [part], depth)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                return self._sum(_MINUS, [part], depth)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOLS:
                return self._sum(_SYMBOLS[type(op)], [left, right], depth)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SYMBOLS:
                return self._comparison(_SYMBOLS[type(op)], left, right, depth)
            case ast.Compare(ops=[op, _, *_]) if type(op) in _SYMBOLS:
                hint = "join two comparisons by 'and'"
                self._fail(f"{ast.unparse(tree)} compares a second time", hint)
            case ast.Name() | ast.Attribute():
                return self._name(ast.unparse(tree))
            case ast.Constant(value=str(word)):
                return Node(_CONSTANT, Kind.TEXT, value=word)
            case ast.Constant(value=int(number) | float(number)) if not isinstance(number, bool):
                return self._constant(number, ast.unparse(tree))
        message = f"{ast.unparse(tree)} is not part of the expression language"
        raise ExpressionError(self.text, message, _ALLOWED)

    def _logical(self, sign: str, trees: Sequence[ast.expr], depth: int) -> Node:
        parts = []
        for tree in trees:
            node = self.node(tree, depth + 1)
            if node.kind not in (Kind.TRUTH, Kind.SETTING):
                message = f"{ast.unparse(tree)} is {node.kind}, where a condition is needed"
                self._fail(message, "compare it")
            parts.append(node)
        return Node(sign, Kind.TRUTH, parts=tuple(parts))

    def _sum(self, sign: str, trees: Sequence[ast.expr], depth: int) -> Node:
        parts = []
        for tree in trees:
            node = self.node(tree, depth + 1)
            if node.kind not in (Kind.NUMBER, Kind.SETTING):
                self._fail(f"{ast.unparse(tree)} is {node.kind}, where a number is needed")
            parts.append(node)
        return Node(sign, Kind.NUMBER, _unit(sign, parts), tuple(parts))

    def _constant(self, value: float, written: str) -> Node:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            self._fail(f"{written} is too large to be meant")
        return Node(_CONSTANT, Kind.NUMBER, value=number)

    def _name(self, name: str) -> Node:
        if name in ("true", "false"):
            return Node(_CONSTANT, Kind.TRUTH, value=name == "true")
        if name in self.extra:
            unit = self.extra[name]
            return Node(_FIGURE, Kind.SETTING if unit is None else Kind.NUMBER, unit, value=name)
        metric = measurable(name)
        if metric is not None:
            return Node(_FIGURE, Kind.NUMBER, metric.unit, value=name)
        if name in CHOICES:
            return Node(_FIGURE, Kind.TEXT, value=name)
        metrics = tuple(metric.name for metric in JOB_METRICS)
        if name in metrics:
            self._fail(f"{name} is a table of figures", f"name one of them, {name}.<item>")
        known = (*metrics, *self.extra)
        below = [other for other in known if other.startswith(f"{name}.")]
        if below:
            self._fail(f"{name} is a group of metrics", f"name one of {', '.join(below)}")
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else "plan metrics lists them"
        raise ExpressionError(self.text, f"there is no metric '{name}'", hint)

    def _comparison(self, sign: str, left: ast.expr, right: ast.expr, depth: int) -> Node:
        first, second = self.node(left, depth + 1), self.node(right, depth + 1)
        a = self._quantity(first, second, right, sign)
        b = self._quantity(second, first, left, sign)
        kinds = {a.kind, b.kind} - {Kind.SETTING}
        if len(kinds) > 1:
            message = f"{ast.unparse(left)} is {a.kind} and {ast.unparse(right)} is {b.kind}"
            self._fail(message, "compare numbers with numbers and words with quoted words")
        if kinds - {Kind.NUMBER} and sign not in _EQUALITIES:
            message = f"{ast.unparse(left)} {sign} {ast.unparse(right)} puts words in order"
            self._fail(message, "use == or !=")
        return Node(sign, Kind.TRUTH, parts=(a, b))

    def _quantity(self, node: Node, other: Node, tree: ast.expr, sign: str) -> Node:
        """Parse a quoted text in the unit of the operand that it is compared with."""
        if not isinstance(node.value, str) or node.sign != _CONSTANT:
            return node
        text, name = node.value, ast.unparse(tree)
        if other.kind is Kind.NUMBER:
            if other.unit is None:
                hint = f"compare it with a number, not '{text}'"
                self._fail(f"{name} has no unit", hint)
            try:
                return Node(_CONSTANT, Kind.NUMBER, value=_in_unit(text, other.unit))
            except UnitError as error:
                self._fail(f"{text!r} compared with {name} {error}")
        choices = CHOICES.get(str(other.value)) if other.sign == _FIGURE else None
        if choices is not None and text not in choices:
            self._fail(f"{name} is never '{text}'", f"allowed: {', '.join(choices)}")
        if other.kind is Kind.SETTING and sign not in _EQUALITIES:
            self._fail(f"{name} has no unit that '{text}' could be in", "use a number")
        return node

    def _fail(self, message: str, hint: str = "") -> NoReturn:
        raise ExpressionError(self.text, message, hint)


def _unit(sign: str, parts: Sequence[Node]) -> Unit | None:
    """Return the unit of an operation: of equal terms, or of a metric scaled by a constant."""
    left, right = parts[0], parts[-1]
    if sign in ("+", "-", _MINUS):
        return left.unit if left.unit == right.unit else None
    if right.sign == _CONSTANT:
        return left.unit
    return right.unit if left.sign == _CONSTANT and sign == "*" else None


def _in_unit(text: str, unit: Unit) -> float:
    """Parse a quantity and convert it to the unit of a metric."""
    if unit == USD_PER_HOUR:
        return parse(text, USD_PER_SECOND) * HOUR
    try:
        return parse(text, unit)
    except KeyError:
        msg = f"is text; {unit.name} is compared with a bare number in {unit.symbol}"
        raise UnitError(msg) from None


def _fail(text: str, message: str, hint: str = "") -> NoReturn:
    raise ExpressionError(text, message, hint)


def _figures(node: Node) -> Iterator[str]:
    if node.sign == _FIGURE:
        yield str(node.value)
    for part in node.parts:
        yield from _figures(part)


def _value(node: Node, figures: Figures) -> Value:  # noqa: PLR0911 - one for each kind of node
    """Evaluate a node; return None if a metric that it needs is unknown."""
    match node.sign:
        case "constant":
            return node.value
        case "figure":
            return _figure(node, figures)
        case "and":
            return all(_value(part, figures) is True for part in node.parts)
        case "or":
            return any(_value(part, figures) is True for part in node.parts)
        case "not":
            return _value(node.parts[0], figures) is not True
        case "minus":
            number = _as_number(_value(node.parts[0], figures))
            return None if number is None else -number
    left, right = (_value(part, figures) for part in node.parts)
    if node.sign in _COMPARISONS:
        return _compare(node.sign, left, right)
    a, b = _as_number(left), _as_number(right)
    if a is None or b is None or (node.sign == "/" and b == 0.0):
        return None
    return _as_number(_ARITHMETIC[node.sign](a, b))


def _figure(node: Node, figures: Figures) -> Value:
    name = str(node.value)
    value: Value = figures.get(name)
    if value is None:
        table, _, item = name.rpartition(".")
        items = figures.get(table)
        value = items.get(item) if isinstance(items, Mapping) else None
    if isinstance(value, str) and node.unit is not None:
        try:
            return _in_unit(value, node.unit)
        except UnitError:
            return None
    return value


def _compare(sign: str, left: Value, right: Value) -> bool:
    """Compare two values; return false if one of them is unknown."""
    if left is None or right is None:
        return False
    a, b = _as_number(left), _as_number(right)
    if a is not None and b is not None:
        return bool(_COMPARISONS[sign](a, b))
    if sign not in _EQUALITIES:
        return False
    comparable = type(left) is bool or type(right) is bool or isinstance(left, str)
    return (left == right if comparable else False) is (sign == "==")


def _as_number(value: object) -> float | None:
    if isinstance(value, str | Mapping | bool) or not isinstance(value, SupportsFloat):
        return None
    number = float(value)
    return None if math.isnan(number) else number


class _Extent(NamedTuple):
    """Smallest and largest value of a number; `sure`: the number cannot be unknown."""

    low: float
    high: float
    sure: bool


class _Outlook(NamedTuple):
    """Possible outcomes of a condition: it may be `true`, it may be `false`."""

    true: bool
    false: bool


_ANYTHING: Final = _Extent(-math.inf, math.inf, sure=False)


def _extent(node: Node, ranges: Mapping[str, Range]) -> _Extent:  # noqa: PLR0911 - one for each kind of node
    """Return the range of a number; a metric that is not in `ranges` may be unknown."""
    if node.sign == _CONSTANT and node.kind is Kind.NUMBER:
        return _Extent(float(node.value), float(node.value), sure=True)
    if node.sign == _FIGURE:
        bounds = ranges.get(str(node.value))
        return _ANYTHING if bounds is None else _Extent(*bounds, sure=True)
    if node.sign == _MINUS:
        low, high, sure = _extent(node.parts[0], ranges)
        return _Extent(-high, -low, sure)
    if node.sign not in _ARITHMETIC:
        return _ANYTHING
    left, right = (_extent(part, ranges) for part in node.parts)
    if node.sign == "/" and right.low <= 0.0 <= right.high:
        return _ANYTHING
    ends = [_ARITHMETIC[node.sign](a, b) for a, b in product(left[:2], right[:2])]
    if any(math.isnan(end) for end in ends):  # infinity times zero, or minus infinity
        return _ANYTHING
    return _Extent(min(ends), max(ends), left.sure and right.sure)


def _outlook(node: Node, ranges: Mapping[str, Range]) -> _Outlook:
    """Return the possible outcomes of a condition for metrics within `ranges`."""
    if node.sign == _CONSTANT and isinstance(node.value, bool):
        return _Outlook(true=node.value, false=not node.value)
    if node.sign in ("and", "or", "not"):
        parts = [_outlook(part, ranges) for part in node.parts]
        if node.sign == "not":
            return _Outlook(true=parts[0].false, false=parts[0].true)
        join, other = (all, any) if node.sign == "and" else (any, all)
        return _Outlook(
            true=join(part.true for part in parts), false=other(part.false for part in parts)
        )
    if node.sign in _COMPARISONS and all(part.kind is not Kind.TEXT for part in node.parts):
        left, right = (_extent(part, ranges) for part in node.parts)
        return _compared(node.sign, left, right)
    return _Outlook(true=True, false=True)


def _compared(sign: str, left: _Extent, right: _Extent) -> _Outlook:
    if sign in (">", ">="):
        return _compared({">": "<", ">=": "<="}[sign], right, left)
    sure = left.sure and right.sure
    if sign == "<":
        return _Outlook(true=left.low < right.high, false=not sure or left.high >= right.low)
    if sign == "<=":
        return _Outlook(true=left.low <= right.high, false=not sure or left.high > right.low)
    meet = left.low <= right.high and right.low <= left.high
    same = left.low == left.high == right.low == right.high
    if sign == "==":
        return _Outlook(true=meet, false=not sure or not same)
    return _Outlook(true=not sure or not same, false=not sure or meet)
