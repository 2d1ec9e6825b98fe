"""The templates, with every text escaped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from simulator.version import __version__


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("simulator.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def rendered(template: str, **context: Any) -> str:  # noqa: ANN401 - whatever the template asks for
    """The template of that name, filled in."""
    return _environment().get_template(template).render(version=__version__, **context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What stands at the top of a page, so that it can be made again.

    `date` is a day such as 2026-11-23, `command` what was typed; either is empty where
    unknown. `seed` is that of the simulations; `asked` are the scenarios with their settings as
    they were typed, one for each that is answered, so that commands on the page work.
    """

    date: str = ""
    command: str = ""
    seed: int | None = None
    asked: tuple[str, ...] = ()
