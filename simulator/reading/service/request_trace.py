"""Recorded requests: a CSV file of arrivals with the lengths of prompts and answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from simulator.errors import InputError, Problem
from simulator.reading.table import Line, Table, capped, read_table
from simulator.schema.serving import Trace

OWN: Final = ("arrival_s", "prompt_tokens", "output_tokens")
CLOCKED: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
"""Columns of the traces of Azure/AzurePublicDataset, AzureLLMInferenceTrace, 2023."""


def read_requests(path: Path) -> Trace:
    """A trace in the order of its arrivals, which begin at 0.

    Parameters
    ----------
    path : pathlib.Path
        A CSV file with the columns `OWN`, or `CLOCKED`, whose times are of a clock.

    Raises
    ------
    InputError
        With all its mistakes: columns that are missing, times that are no numbers or go back,
        lengths that are no whole numbers of at least one token.
    """
    table = read_table(path)
    names = CLOCKED if set(CLOCKED) <= set(table.columns) else OWN
    missing = [name for name in names if name not in table.columns]
    if missing:
        hint = f"columns: {', '.join(OWN)}"
        raise InputError(tuple(table.about(name, "is missing", hint=hint) for name in missing))
    problems = list[Problem]()
    arrivals = _arrivals(table, names[0], problems)
    prompts = [_tokens(table, line, names[1], problems) for line in table.lines]
    outputs = [_tokens(table, line, names[2], problems) for line in table.lines]
    if problems:
        raise InputError(capped(problems))
    begin = arrivals[0]
    return Trace(
        arrivals=tuple(time - begin for time in arrivals),
        prompts=tuple(prompts),
        outputs=tuple(outputs),
        origin=str(path),
    )


def _arrivals(table: Table, name: str, problems: list[Problem]) -> list[float]:
    times = [moment(line.cells[name]) for line in table.lines]
    problems += _wrong_times(table, name, times)
    return times


def _wrong_times(table: Table, name: str, times: list[float]) -> Iterator[Problem]:
    before = -math.inf
    for line, time in zip(table.lines, times, strict=True):
        if not math.isfinite(time) or time < 0.0:
            yield table.problem(line, name, "is no time of an arrival", "seconds, 0 or more")
        elif time < before:
            hint = "sort the trace by its arrivals"
            yield table.problem(line, name, "is earlier than the arrival before it", hint)
        else:
            before = time


def moment(text: str) -> float:
    """Seconds, from a number or a date with a time of day; not a number if it is neither.

    Examples
    --------
    >>> moment("12.5"), moment("1970-01-01 00:01:00.5"), moment("soon")
    (12.5, 60.5, nan)
    """
    try:
        return float(text)
    except ValueError:
        pass
    whole, _, part = text.partition(".")
    try:
        moment = datetime.fromisoformat(f"{whole}+00:00")
        return moment.timestamp() + float(f"0.{part or 0}")
    except ValueError:
        return math.nan


def _tokens(table: Table, line: Line, name: str, problems: list[Problem]) -> int:
    text = line.cells[name]
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    problems.append(table.problem(line, name, "is no number of tokens", "a whole number above 0"))
    return 1
