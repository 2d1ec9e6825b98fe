"""Pages of the documentation that are made of docstrings: formulas and the Python API."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import simulator
from simulator import equations
from simulator.terms import units_of

SECTION = re.compile(r"^(?P<title>[A-Z]\w+)\n-{3,}\n", re.MULTILINE)
ARGUMENT = re.compile(
    r"^(?P<names>\w[\w, ]*) : (?P<kind>.*)\n(?P<text>(?:    .*\n?)+)", re.MULTILINE
)


class Formula(NamedTuple):
    """A function of the formula sheet: its docstring in parts, and the units of its arguments."""

    module: str
    name: str
    summary: str
    text: str
    sources: tuple[str, ...]
    units: dict[str, str]
    function: Callable[..., Any]


def formulas() -> Iterator[Formula]:
    """All of them, by module and then in the order of the code."""
    for info in pkgutil.iter_modules(equations.__path__):
        module = importlib.import_module(f"{equations.__name__}.{info.name}")
        for name, member in vars(module).items():
            own = getattr(member, "__module__", "") == module.__name__
            if inspect.isfunction(member) and own and not name.startswith("_"):
                yield formula_of(info.name, member)


def formula_of(module: str, function: Callable[..., Any]) -> Formula:
    """A function's docstring: a summary, formula and text, sources; examples are left out."""
    summary, *rest = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = [part for part in rest if not part.startswith(("Source:", ">>>"))]
    sources = [part for part in rest if part.startswith("Source:")]
    known = {name: unit for name, unit in units_of(function).items() if name != "return"}
    return Formula(
        module,
        function.__name__,
        " ".join(summary.split()),
        "\n\n".join(part for part in text if not part.endswith(":")),
        tuple(" ".join(one.split()) for part in sources for one in part.split("Source: ")[1:]),
        {name: "" if unit is None else unit.symbol for name, unit in known.items()},
        function,
    )


def formula_sheet() -> str:
    """Every formula with its sources, by module."""
    parts: list[str] = []
    module = ""
    for formula in formulas():
        if formula.module != module:
            module = formula.module
            about = importlib.import_module(f"{equations.__name__}.{module}").__doc__ or ""
            parts.append(f"## {module}\n\n{escaped(' '.join(about.split()))}\n")
        parts.append(_one(formula))
    return "\n".join(parts)


def _one(formula: Formula) -> str:
    quantities = ", ".join(
        f"`{name}` [{escaped(unit)}]" if unit else f"`{name}`"
        for name, unit in formula.units.items()
    )
    parts = [
        f"### {formula.module}.{formula.name}\n",
        f"{escaped(formula.summary)}\n",
        f"{_notes(formula.text)}\n",
        f"- *Of*: {quantities}\n",
    ]
    return "\n".join(parts) + "".join(f"- *Source*: {escaped(one)}\n" for one in formula.sources)


def _notes(text: str) -> str:
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(escaped(part.replace("``", "`")) for part in paragraphs)


def python_api() -> str:
    """Everything that ``simulator`` exports, with signatures and docstrings."""
    parts = []
    for name in sorted(simulator.__all__):
        member = getattr(simulator, name)
        if inspect.isclass(member):
            parts.append(f"## class {name}\n\n{_prose(member.__doc__)}")
            parts += [_method(name, *one) for one in _methods(member)]
        elif inspect.isfunction(member):
            parts.append(f"## {name}\n\n{_signature(name, member)}\n{_prose(member.__doc__)}")
    return "\n".join(parts)


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(owner).items():
        shown = name == "__getitem__" or not name.startswith("_")
        if shown and (inspect.isfunction(member) or isinstance(member, property)):
            yield name, member


def _method(owner: str, name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"### {owner}.{name}\n\n{_prose(member.__doc__)}"
    shown = f"{owner}[...]" if name == "__getitem__" else f"{owner}.{name}"
    return f"### {shown}\n\n{_signature(name, member)}\n{_prose(member.__doc__)}"


class _Plain(str):
    """Text that stands in a signature without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(name: str, function: Callable[..., Any]) -> str:
    own = inspect.signature(function)
    kept = [_argument(one) for one in own.parameters.values() if one.name != "self"]
    plain = own.replace(parameters=kept, return_annotation=_Plain(own.return_annotation))
    return f"```text\n{name}{plain}\n```\n"


def _argument(one: inspect.Parameter) -> inspect.Parameter:
    default = str(one.default) if isinstance(one.default, str) else one.default
    return one.replace(annotation=_Plain(one.annotation), default=default)


def _prose(docstring: str | None) -> str:
    """A docstring as Markdown: sections in bold, arguments as a list, examples as code."""
    pieces = SECTION.split(f"{inspect.cleandoc(docstring or '')}\n")
    parts = [f"{pieces[0].strip().replace('``', '`')}\n"]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if title == "Examples":
            parts.append(f"```python\n{body.strip()}\n\n```\n")
        elif title == "Raises":
            lines = re.sub(r"^(\w+)\n    ", r"- `\1`: ", body, flags=re.MULTILINE)
            parts.append(f"**{title}**\n\n{lines.strip()}\n")
        else:
            parts.append(f"**{title}**\n\n{_arguments(body)}")
    return "\n".join(parts)


def _arguments(body: str) -> str:
    return "".join(
        f"- `{match['names']}` ({match['kind']}): {' '.join(match['text'].split())}\n"
        for match in ARGUMENT.finditer(body)
    ).replace("``", "`")


def escaped(text: str) -> str:
    """Text that Markdown shows as it stands, apart from code."""
    pieces = text.replace("``", "`").split("`")
    plain = [re.sub(r"([\\*_<\[\]])", r"\\\1", piece) for piece in pieces[::2]]
    code = pieces[1::2]
    return "".join(f"{a}`{b}`" for a, b in zip(plain, code, strict=False)) + plain[-1]
