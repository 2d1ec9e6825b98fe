"""The templates, with every text escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from simulator.version import __version__


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("simulator.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def rendered(template: str, **context: Any) -> str:  # noqa: ANN401 - whatever the template asks for
    """The template of that name, filled in."""
    return _environment().get_template(template).render(version=__version__, **context)
