"""HTML pages: a verdict, and blocks, which are items of a document, headings and drawings.

The template escapes every text, including control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from simulator.records import dataclass
from simulator.report.document import Item, Section, sides
from simulator.report.text import printable
from simulator.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The origin of a page, shown at its top, so that it can be reproduced.

    `date` is in ISO format, `command` the command line; empty if unknown. `seed` is the seed of the
    simulations; `asked` are the command-line arguments of each scenario, used in commands on the
    page.
    """

    date: str = ""
    command: str = ""
    seed: int | None = None
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One of the key values at the top of a page."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A block that only pages have: the macro of the template that draws it, and its content."""

    macro: str
    what: Any
    about: str = ""


Block: TypeAlias = Item | Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The result for one scenario: name, title, notes `about` it, verdict and blocks."""

    name: str
    title: str = ""
    about: tuple[str, ...] = ()
    verdict: str
    good: bool
    blocks: tuple[Block, ...]


def heading(text: str, level: int = 2, place: str = "") -> Shown:
    """Return a heading; `place` is its anchor."""
    return Shown(macro="heading", what=(text, level), about=place)


def shown(macro: str, what: object | None, about: str = "") -> Shown | None:
    """Return a block that a template macro draws; None if there is no content."""
    return None if what is None else Shown(macro=macro, what=what, about=about)


def section_blocks(sections: Iterable[Section], level: int = 2) -> list[Block]:
    """Return the sections of a document as blocks."""
    found: list[Block] = []
    for part in sections:
        found += [*([heading(part.title, level)] if part.title else []), *part.items]
    return found


def titled(title: str, *blocks: Block | None, level: int = 2, place: str = "") -> list[Block]:
    """Return the non-empty blocks under a heading; an empty list if there are none."""
    found = [block for block in blocks if block is not None]
    return [heading(title, level, place), *found] if found else []


def tiles(found: Iterable[Tile]) -> Shown:
    """Return a block of tiles."""
    return Shown(macro="tiles", what=tuple(found))


def soft(text: str) -> list[Block]:
    """Return a remark in a soft colour; an empty list if it is empty."""
    return [Shown(macro="soft", what=text)] if text else []


def rendered(pages: Sequence[Page], window: str, made: Made) -> str:
    """Render pages as one self-contained HTML document; `window` is its title."""
    return _filled("page.html.j2", pages=pages, window=window, made=made, version=__version__)


def fragment(name: str, verdict: str, blocks: Sequence[Block], *, good: bool) -> str:
    """Render blocks as a ``<div>`` for a notebook; its style does not affect other elements."""
    return _filled("fragment.html.j2", name=name, verdict=verdict, blocks=blocks, good=good)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("simulator.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe,
    )
    environment.filters["macro"] = _macro
    environment.filters["numbers"] = _numbers
    return environment


def _filled(template: str, **context: Any) -> str:  # noqa: ANN401 - as the template needs
    return str(_environment().get_template(template).render(**context))


def _safe(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _macro(block: Block) -> str:
    """Return the name of the template macro that draws a block."""
    return block.macro if isinstance(block, Shown) else f"{type(block).__name__.lower()}_item"


def _numbers(table: Any) -> tuple[int, ...]:  # noqa: ANN401 - a table of the template
    """Return the indices of columns of numbers."""
    return tuple(place for place, side in enumerate(sides(table)) if side == ">")
