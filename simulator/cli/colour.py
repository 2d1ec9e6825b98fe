"""Colour for a report on a terminal: its headings, and the words that judge; nowhere else.

Reports are plain text and know of no colours. What is painted is found here, by how a report is
laid out and by the few words with which it judges.
"""

from __future__ import annotations

import os
import re
from typing import Final, TextIO

import click

_INDENT: Final = "  "
_COLOURS: Final = {"bad": "red", "doubtful": "yellow", "good": "green"}
_JUDGES: Final = re.compile(
    r"""
    (?P<bad>
        (?<=,\ )does\ not\ fit$ | (?<=:\ )does\ not\ fit(?=;)
        | ^Does\ not\ fit: | ^No\ candidate\b.* | ^Over\ tolerance$
    ) | (?P<doubtful>
        (?<=,\ )uncertain:\ within\b.* | (?<=:\ )may\ not\ fit(?=,)
        | ^May\ not\ fit: | \bUNVERIFIED\b | \bunverified$
        | ^Warnings$ | ^\ \ (?!gpu\ )[\w.]+\ +(?:[\d.]+\ \S+\ +)?[\d.]+%\ .*\ bottleneck$
        | \b\w+-starved: | \b(?!GPU|Accelerator)[A-Z]\w+-bound:
    ) | (?P<good>
        (?<=,\ )fits$ | (?<=:\ )fits(?=;)
        | \b(?:GPU|Accelerator|accelerator)-bound: | ^\ \ gpu\ +.*\ bottleneck$
    )
    """,
    re.VERBOSE,
)


def wants_colour(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that shows colours, and nobody declined them.

    ``NO_COLOR`` declines if it is set to anything (https://no-color.org).
    """
    declined = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not declined and stream.isatty()


def coloured(report: str) -> str:
    """A report with its title and headings in bold, and what it judges in colour."""
    lines = report.split("\n")
    return "\n".join(_painted(line, leads=_leads(lines, place)) for place, line in enumerate(lines))


def _leads(lines: list[str], place: int) -> bool:
    """Whether a line is the title, or a heading: alone above lines that are set in."""
    line, after = lines[place], (*lines, "")[place + 1]
    if not line or line.startswith(" "):
        return False
    if place == 0:
        return not after.startswith(_INDENT)
    return not lines[place - 1] and after.startswith(_INDENT)


def _painted(line: str, *, leads: bool) -> str:
    """A line with the words that judge in colour, bold all over if it `leads`."""
    painted, done = [], 0
    for match in _JUDGES.finditer(line):
        painted.append(_bold(line[done : match.start()], leads=leads))
        painted.append(click.style(match[0], fg=_COLOURS[str(match.lastgroup)], bold=True))
        done = match.end()
    return "".join([*painted, _bold(line[done:], leads=leads)])


def _bold(text: str, *, leads: bool) -> str:
    return click.style(text, bold=True) if leads and text else text
