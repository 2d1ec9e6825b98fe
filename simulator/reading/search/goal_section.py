"""The ``[goal]`` section of a scenario, or of a separate file, as a goal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from simulator.errors import InputError, Problem
from simulator.reading.document import Document, examine
from simulator.reading.hardware.catalogue import Catalogue, nearest_names
from simulator.reading.lines import KeyPath
from simulator.reading.merge_documents import gather
from simulator.reading.search.axes import is_pattern, matching
from simulator.reading.search.sweep_section import (
    flat_keys,
    read_condition,
    read_expression,
    table_of_axes,
)
from simulator.reading.sections import GoalFile, ScenarioFile
from simulator.reading.settings import mistake, setting_names, unknown_hint
from simulator.schema.accelerators import Precision, Stack
from simulator.schema.fields import nearest_hint
from simulator.schema.goal import Goal, GoalSection, Objective, Plain, Sense

_SECTION: Final[KeyPath] = ("goal",)


def read_goal(
    path: Path | str, *, overrides: Sequence[str] = (), profiles: Sequence[Path] = ()
) -> Goal:
    """Return the goal of a scenario, or of a file with a ``[goal]`` section only.

    Parameters
    ----------
    path : pathlib.Path or str
        The file, or the name of a shipped scenario.
    overrides : sequence of str
        ``goal.key=value``, applied in this order.
    profiles : sequence of pathlib.Path
        Directories of hardware profiles, searched before the default ones.

    Raises
    ------
    InputError
        With all mistakes at once.
    UnknownName
        If there is no such file.
    """
    document, problems = gather(str(path), overrides=overrides, model=ScenarioFile)
    kept = {key: value for key, value in document.data.items() if key in ("schema", "goal")}
    alone = replace(document, data=kept)
    _, within = examine(GoalFile, alone)
    if problems or within:
        raise InputError((*problems, *within))
    found = goal_of(alone, Catalogue.default(profiles))
    if found is None:
        raise InputError((alone.problem(_SECTION, "is missing"),))
    return found


def goal_of(document: Document, catalogue: Catalogue) -> Goal | None:
    """Return the goal of the document's ``[goal]`` section; None if it has none.

    Raises
    ------
    InputError
        With all mistakes of the section.
    """
    if "goal" not in document.data:
        return None
    section, problems = examine(GoalSection, document, at=_SECTION)
    if section is None:
        raise InputError(problems)
    objective, wrong = _objective(document, section)
    search, more = table_of_axes(document, (*_SECTION, "search"), catalogue)
    pins, worse = _settings(document, (*_SECTION, "pins"))
    alternatives, bad = _alternatives(document)
    wrong += [*more, *worse, *bad, *_limits(document, section, catalogue)]
    varied = {key for axis in search for key in axis.keys}
    wrong += [
        document.problem(path, "is kept at a value and searched over", hint="leave one of them out")
        for path, key in _pinned(document)
        if key in varied
    ]
    if wrong or objective is None:
        raise InputError(tuple(sorted(wrong, key=lambda one: (one.origin, one.line or 0))))
    return Goal(
        objective=objective,
        limits=section,
        pins=pins,
        search=search,
        spot=section.spot,
        alternatives=alternatives,
    )


def _objective(document: Document, section: GoalSection) -> tuple[Objective | None, list[Problem]]:
    given = {Sense.MAXIMIZE: section.maximize, Sense.MINIMIZE: section.minimize}
    found = [(sense, text) for sense, text in given.items() if text is not None]
    if not found:
        hint = 'needed: maximize or minimize, such as maximize = "cost.samples_per_usd"'
        message = "says neither what to maximize nor what to minimize"
        return None, [document.problem(_SECTION, message, hint=hint, show=False)]
    if len(found) > 1:
        message = "is given together with maximize"
        hint = "leave one of them out, or put both into one expression"
        return None, [document.problem((*_SECTION, "minimize"), message, hint=hint)]
    sense, text = found[0]
    path = (*_SECTION, sense.value)
    expression, problems = read_expression(document, path, text, settings=False)
    if expression is not None and not expression.is_number:
        hint = "name a metric that is a number, or limit it in where"
        problems = [document.problem(path, "is a word or a condition", hint=hint)]
    return Objective(metric=text, sense=sense), problems


def _pinned(document: Document) -> Iterator[tuple[KeyPath, str]]:
    yield from _keys_at(document, (*_SECTION, "pins"))


def _keys_at(document: Document, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    table = document.value(path)
    yield from flat_keys(table if isinstance(table, dict) else {}, path)


def _settings(document: Document, at: KeyPath) -> tuple[dict[str, Plain], list[Problem]]:
    """Return the settings of a table, each checked separately, and their problems."""
    settings, problems = dict[str, Plain](), []
    for path, key in _keys_at(document, at):
        value = document.value(path)
        if key not in setting_names():
            hint = unknown_hint(key)
            problems.append(document.problem(path, "is not a key of a scenario", hint=hint))
            continue
        wrong = mistake(key, value)
        if wrong is not None:
            problems.append(document.problem(path, wrong[0], hint=wrong[1]))
        elif isinstance(value, str | int | float):
            settings[key] = value
    return settings, problems


def _alternatives(document: Document) -> tuple[dict[str, dict[str, Plain]], list[Problem]]:
    path = (*_SECTION, "alternatives")
    table = document.value(path)
    found, problems = dict[str, dict[str, Plain]](), list[Problem]()
    for name in table if isinstance(table, dict) else {}:
        settings, more = _settings(document, (*path, name))
        if not settings and not more:
            more = [document.problem((*path, name), "is not a table of keys", show=False)]
        found[name] = settings
        problems += more
    return found, problems


_CAPABILITIES: Final = (*(stack.value for stack in Stack), *(kind.value for kind in Precision))


def _limits(document: Document, section: GoalSection, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield names in the limits that do not exist, and an invalid condition."""
    clouds = tuple(dict.fromkeys(name.split("/")[1] for name in catalogue.names("instance")))
    for number, cloud in enumerate(section.clouds):
        if cloud not in clouds:
            path, hint = (*_SECTION, "clouds", number), nearest_hint(cloud, clouds)
            yield document.problem(path, "is not a cloud with a known machine", hint=hint)
    for number, need in enumerate(section.requires):
        if need not in _CAPABILITIES:
            path, hint = (*_SECTION, "requires", number), nearest_hint(need, _CAPABILITIES)
            yield document.problem(path, "unknown capability of an accelerator", hint=hint)
    stacks = tuple(stack.value for stack in Stack)
    for number, name in enumerate(section.porting):
        if name not in stacks:
            path, hint = (*_SECTION, "porting", number), nearest_hint(name, stacks)
            yield document.problem(path, "unknown software of an accelerator", hint=hint)
    yield from _gpus(document, section, catalogue.names("gpu"))
    if section.where:
        yield from read_condition(document, (*_SECTION, "where"), section.where)[1]


def _gpus(document: Document, section: GoalSection, names: Sequence[str]) -> Iterator[Problem]:
    for number, wanted in enumerate(section.gpus):
        full = wanted if wanted.startswith("gpu/") else f"gpu/{wanted}"
        if matching(full, names) or full in names:
            continue
        message = "matches no accelerator" if is_pattern(wanted) else "unknown accelerator"
        close = nearest_names(wanted.strip("*"), names)
        meant = " or ".join(f"'{name}'" for name in close)
        hint = f"did you mean {meant}?" if meant else "`plan hardware list gpu` shows them all"
        yield document.problem((*_SECTION, "gpus", number), message, hint=hint)
