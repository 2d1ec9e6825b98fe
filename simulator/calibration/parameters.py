"""From names on a command line to parameters with a start and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from simulator.errors import InputError, Problem
from simulator.reading.keys import Key, numeric_key
from simulator.reading.merge_documents import gather
from simulator.reading.sections import ScenarioFile
from simulator.uncertainty.calibration import FACTORS
from simulator.uncertainty.measurement import MeasurementSet, Parameter

REACH: Final = 10.0
"""Without bounds given, a key is fitted between a tenth and ten times its start."""
_FACTORS: Final = {kind.name: kind for kind in FACTORS}


def parameters_of(
    names: Sequence[str],
    sets: Sequence[MeasurementSet],
    given: Mapping[str, Sequence[str]],
) -> tuple[Parameter, ...]:
    """What is to be fitted.

    Parameters
    ----------
    names : sequence of str
        Dotted keys of a scenario; a factor of [calibration] may go by its bare name.
    sets : sequence of MeasurementSet
        Whose [[fit]] tables, and then whose first row, say where a key starts.
    given : mapping
        ``NAME=VALUE`` texts under ``start``, ``low`` and ``high``; they win.

    Raises
    ------
    InputError
        With all names and texts that mean nothing.
    """
    problems: list[Problem] = []
    keys: list[Key] = []
    for name in dict.fromkeys(_full(name) for name in names):
        try:
            keys.append(numeric_key(name))
        except InputError as error:
            problems += error.problems
    texts = {option: _texts(option, pairs, problems) for option, pairs in given.items()}
    for option, values in texts.items():
        for name in values.keys() - {key.name for key in keys}:
            hint = f"add --fit {name}"
            message = "is not fitted"
            problems.append(
                Problem(origin=f"--{option}", message=message, found=repr(name), hint=hint)
            )
    found = []
    for key in keys:
        try:
            own = {
                option: values[key.name] for option, values in texts.items() if key.name in values
            }
            found.append(_parameter(key, sets, own))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(tuple(problems))
    return tuple(found)


def _full(name: str) -> str:
    return f"calibration.{name}" if name in _FACTORS else name


def _texts(option: str, pairs: Iterable[str], problems: list[Problem]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not text.strip():
            message, hint = "has no value", "write NAME=VALUE, such as input.decode='5 ms'"
            problems.append(
                Problem(origin=f"--{option}", message=message, found=repr(pair), hint=hint)
            )
        values[_full(name.strip())] = text.strip()
    return values


def _parameter(key: Key, sets: Sequence[MeasurementSet], own: Mapping[str, str]) -> Parameter:
    known = next((p for s in sets for p in s.fit if p.key == key.name), None)
    kind = _FACTORS.get(key.name.removeprefix("calibration."))
    if known is None and kind is not None:
        low, high = f"{kind.low:g}", f"{kind.high:g}"
        known = Parameter(key=key.name, start="1", low=low, high=high, why=kind.why)
    if known is None:
        known = _around(key, own.get("start") or _said(key, sets))
    return Parameter(
        key=key.name,
        start=own.get("start", known.start),
        low=own.get("low", known.low),
        high=own.get("high", known.high),
        why="as given" if {"low", "high"} <= own.keys() else known.why,
    )


def _around(key: Key, start: str) -> Parameter:
    value = key.value(start)
    if value == 0.0:
        message, hint = "starts at zero", f"say between what: --low and --high {key.name}=VALUE"
        raise InputError((Problem(origin="--fit", key=key.name, message=message, hint=hint),))
    low, high = key.text(value / REACH, start), key.text(value * REACH, start)
    why = "no bounds were given: a tenth to ten times the start"
    return Parameter(key=key.name, start=start, low=low, high=high, why=why)


def _said(key: Key, sets: Sequence[MeasurementSet]) -> str:
    """What the first row's scenario says the key is."""
    for row in (row for s in sets for row in s.rows):
        document, _ = gather(row.base, overrides=row.overrides, model=ScenarioFile)
        value = document.value(tuple(key.name.split(".")))
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
        break
    message, hint = "has no start", f"the rows' scenario does not give it: --start {key.name}=VALUE"
    raise InputError((Problem(origin="--fit", key=key.name, message=message, hint=hint),))
