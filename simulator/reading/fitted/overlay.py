"""Overlays: the file that `plan calibrate` writes, and its application to a scenario.

An overlay never changes a profile. It sets keys of a scenario to values that were fitted to
measurements, with their intervals, the covariance of their logarithms and the range of the fitted
rows. Explicit options take precedence over it, and it over the scenario's file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from simulator.errors import InputError, Problem
from simulator.reading.document import Document, check, read_document
from simulator.reading.hardware.profile_text import quote
from simulator.reading.keys import Key, numeric_key
from simulator.reading.lines import KeyPath
from simulator.schema.calibration import Fitted, Overlay

KIND: Final = "calibration"
SYMMETRIC: Final = 1e-6
"""Relative difference between mirrored entries of a covariance that is due to rounding."""
DIGITS: Final = 9


def read_overlay(path: Path) -> Overlay:
    """Read and check an overlay.

    Raises
    ------
    InputError
        With all problems: no such file, not an overlay, unknown keys, values that the keys cannot
        have, an invalid covariance.
    """
    document = read_document(path)
    given = check(Overlay, document)
    problems = (*_values(document, given), *_covariance(document, given))
    if problems:
        raise InputError(problems)
    return replace(given, file=path.name)


def _values(document: Document, given: Overlay) -> list[Problem]:
    problems = []
    seen = set[str]()
    for i, table in enumerate(given.parameter):
        path: KeyPath = ("parameter", i, "key")
        if table.key in seen:
            problems.append(document.problem(path, "is given twice"))
        seen.add(table.key)
        try:
            key = numeric_key(table.key)
        except InputError as error:
            found = error.problems[0]
            problems.append(document.problem(path, found.message, hint=found.hint))
            continue
        texts: list[KeyPath] = [("parameter", i, name) for name in ("value", "p10", "p90")]
        broken = [p for at in texts for p in _value(document, key, getattr(table, str(at[2])), at)]
        problems += broken or _order(document, key, table, i)
    return problems


def _order(document: Document, key: Key, table: Fitted, i: int) -> list[Problem]:
    """Return problems if the interval of a parameter does not contain its value."""
    value, ends = key.value(table.value), (table.p10, table.p90)
    low, high = (value if end is None else key.value(end) for end in ends)
    wrong = [name for name, bad in (("p10", low > value), ("p90", high < value)) if bad]
    hint = f"p10 is at most the value, {table.value}, and p90 at least"
    return [document.problem(("parameter", i, n), "leaves the value out", hint=hint) for n in wrong]


def _value(document: Document, key: Key, text: str | None, path: KeyPath) -> list[Problem]:
    try:
        if text is not None:
            key.value(text)
    except InputError as error:
        found = error.problems[0]
        return [document.problem(path, found.message, hint=found.hint)]
    return []


def _covariance(document: Document, given: Overlay) -> list[Problem]:
    table, size = given.covariance, len(given.parameter)
    if len(table) != size or any(len(row) != size for row in table):
        hint = f"{size} rows of {size} numbers, one for each parameter"
        return [document.problem(("covariance",), "has the wrong shape", hint=hint)]
    sound = all(
        math.isfinite(table[i][j])
        and table[i][i] >= 0.0
        and math.isclose(table[i][j], table[j][i], rel_tol=SYMMETRIC, abs_tol=SYMMETRIC**2)
        and table[i][j] ** 2 <= table[i][i] * table[j][j] * (1.0 + SYMMETRIC) + SYMMETRIC**4
        for i in range(size)
        for j in range(size)
    )
    hint = "symmetric, and no entry beyond what the variances allow"
    return [] if sound else [document.problem(("covariance",), "is not a covariance", hint=hint)]


def overrides_of(overlay: Overlay, origin: str) -> Document:
    """Return the overlay's values as a document to merge over that of a scenario.

    `origin` is the name of the overlay in messages.
    """
    data: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    for fitted in overlay.parameter:
        key = numeric_key(fitted.key, origin)
        path = tuple(fitted.key.split("."))
        table = data
        for end, part in enumerate(path[:-1], start=1):
            table = table.setdefault(part, {})
            origins[path[:end]] = origin
        table[path[-1]] = key.plain(fitted.value)
        origins[path] = origin
    return Document(origin=origin, data=data, lines={}, origins=origins)


def overlay_text(overlay: Overlay, version: str) -> str:
    """Return the text of an overlay file, which `read_overlay` reads."""
    envelope = overlay.envelope
    lines = [
        "# Written by plan calibrate. Use it with --calibration, or name it in a scenario:",
        "# [calibration]",
        '# overlay = "this-file.toml"',
        "schema = 1",
        f"kind = {quote(KIND)}",
        f"source = {quote(overlay.source)}",
        f"date = {quote(overlay.date)}",
        f"version = {quote(version)}",
        "covariance = [",
        *(
            f"  [{', '.join(f'{x:.{DIGITS}g}' for x in _floats(row))}],"
            for row in overlay.covariance
        ),
        "]",
        "",
        "[envelope]",
        f"rows = {envelope.rows}",
        f"configurations = {envelope.configurations}",
        f"gpus = {_list(envelope.gpus)}",
        f"machines = {_list(envelope.machines)}",
        f"devices = [{envelope.devices[0]}, {envelope.devices[1]}]",
        f"batch_size = [{envelope.batch_size[0]}, {envelope.batch_size[1]}]",
    ]
    for fitted in overlay.parameter:
        lines += ["", "[[parameter]]", *_parameter(fitted)]
    return "\n".join([*lines, ""])


def _floats(row: Sequence[float]) -> list[float]:
    return [x + 0.0 for x in row]


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(quote(name) for name in names)}]"


def _parameter(fitted: Fitted) -> list[str]:
    lines = [f"key = {quote(fitted.key)}", f"value = {quote(fitted.value)}"]
    lines += [
        f"{name} = {quote(text)}"
        for name, text in (("p10", fitted.p10), ("p90", fitted.p90))
        if text is not None
    ]
    if fitted.log_sd is not None:
        lines.append(f"log_sd = {fitted.log_sd:.{DIGITS}g}")
    if fitted.at_bound:
        lines.append(f"at_bound = {quote(fitted.at_bound)}")
    return lines
