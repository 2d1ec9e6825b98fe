"""How all figures look: colours, markers, fonts; and a figure as SVG text or as a file."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib import figure

from simulator.errors import PlanError

COLOURS: Final = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#e69f00", "#56b4e9", "#000000", "#8c8c8c"),
)
"""Told apart by colour-blind people (Okabe and Ito, https://jfly.uni-koeln.de/color/)."""
MARKERS: Final = "osD^vP*X"
ORDERED: Final = "cividis"
"""Colours for amounts; as good in grey and for colour-blind people."""
FORMATS: Final = ("png", "svg", "pdf")
DOTS_PER_INCH: Final = 150.0


class Figure(figure.Figure):
    """A figure that shows itself in a notebook, whatever else is loaded there."""

    def _repr_png_(self) -> bytes:
        return as_bytes(self, Path("figure.png"))


def style() -> AbstractContextManager[None]:
    """Text stays text, names are taken literally, and the same figure has the same bytes."""
    return mpl.rc_context(
        {
            "svg.hashsalt": "plan",
            "svg.fonttype": "none",
            "text.parse_math": False,
            "font.size": 9.0,
        }
    )


def as_svg(drawn: figure.Figure, about: str) -> str:
    """An ``<svg>`` element; `about` describes it to those who cannot see it."""
    text = io.StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{about}" ', 1)


def check_format(path: Path) -> str:
    """The format that a file's name asks for.

    Raises
    ------
    PlanError
        If that is none of `FORMATS`.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        msg = f"{path}: no figure can be written as '{kind}'; allowed: {', '.join(FORMATS)}"
        raise PlanError(msg)
    return kind


def as_bytes(drawn: figure.Figure, path: Path) -> bytes:
    """The figure in the format that the name of `path` asks for.

    Raises
    ------
    PlanError
        As `check_format`.
    """
    kind, content = check_format(path), io.BytesIO()
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    with style():
        drawn.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=dated[kind])
    return content.getvalue()
