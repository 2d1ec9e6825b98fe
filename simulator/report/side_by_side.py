"""What reports of jobs and of services held beside each other have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from simulator.report.labels import setting_called
from simulator.report.numbers import share_known, significant
from simulator.report.text import columns
from simulator.studies.compare import Told, differing

CLOSE: Final = 0.1
"""Distance from one below which a ratio gets three digits."""
SAME: Final = 5e-4
"""Relative difference below which two figures are the same for reading."""


def heads(sides: Sequence[Told]) -> list[str]:
    """What columns are called."""
    return [f"[{number}]" for number in range(1, len(sides) + 1)]


def labelled_heads(sides: Sequence[Told]) -> tuple[str, ...]:
    """The same with what each column is about."""
    return tuple(f"[{number}] {side.label}" for number, side in enumerate(sides, start=1))


def told(side: Told, name: str) -> str | None:
    """The value of a key as text, None where one has no such key."""
    found = side.inputs.get(name)
    return None if found is None else found.text


def input_lines(sides: Sequence[Told]) -> list[str]:
    """The keys whose values differ, in columns."""
    names = differing(sides)
    if not names:
        return ["nothing: all keys have the same values"]
    rows = [("", *heads(sides))]
    for name in names:
        texts = (told(side, name) for side in sides)
        rows.append((name, *("-" if t is None else setting_called(name, t) for t in texts)))
    return columns(rows, "<" * (len(sides) + 1))


def key_rows(sides: Sequence[Told]) -> list[tuple[str, ...]]:
    """The same as rows of a page."""
    return [(name, *(told(side, name) or "-" for side in sides)) for name in differing(sides)]


def differences(sides: Sequence[Told]) -> dict[str, list[str | None]]:
    """The same by the names of the keys."""
    return {name: [told(side, name) for side in sides] for name in differing(sides)}


def with_ratios(
    texts: Sequence[str], values: Sequence[float | None], *, is_share: bool
) -> Iterator[str]:
    """Figures, those that differ from the first with how many times as large they are.

    Parameters
    ----------
    texts, values : sequences
        One of each side; no value: its text stands alone.
    is_share : bool
        Whether they are shares, of which a ratio says nothing.

    Examples
    --------
    >>> list(with_ratios(["2 s", "4 s", "-"], [2.0, 4.0, None], is_share=False))
    ['2 s', '4 s (x2)', '-']
    """
    first = values[0]
    for number, (text, value) in enumerate(zip(texts, values, strict=True)):
        ratio = value / first if number and value is not None and first else None
        changed = ratio is not None and abs(ratio - 1.0) > SAME and not is_share
        yield f"{text} (x{times(ratio)})" if changed and ratio is not None else text


def times(ratio: float) -> str:
    """A ratio; what is nearly as large needs a digit more to be told apart."""
    return significant(ratio, 3 if abs(ratio - 1.0) < CLOSE else 2)


def saved_text(saved: float) -> str:
    """How much less or more something costs, by the part of the cost that is saved.

    Examples
    --------
    >>> saved_text(0.25), saved_text(-0.25), saved_text(-1.0)
    ('25% less', '25% more', '2 times as much')
    """
    if saved <= -1.0:
        return f"{times(1.0 - saved)} times as much"
    return f"{share_known(abs(saved))} {'less' if saved > 0.0 else 'more'}"
