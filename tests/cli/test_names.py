"""Names that are misspelt, and lists of the names that hold a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (
            ("models", "lamma-3.1-8b"),
            "there is no model 'lamma-3.1-8b'; did you mean 'llama-3.1-8b'",
        ),
        (("models", "zzzz"), "there is no model 'zzzz'; without a name all are listed"),
        (("metrics", "cost.usd_to_trian"), "did you mean 'cost.usd_to_train'"),
        (("scenarios", "resnt50"), "did you mean 'resnet50-m40'"),
        (("hardware", "list", "storag3"), "did you mean 'storage'"),
        (("size", "storag", "resnet50-m40"), "did you mean 'storage'?"),
        (("schema", "jop"), "did you mean 'job'?"),
        (("models", "--format", "marcdown"), "did you mean 'markdown'?"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_a_misspelt_name_is_answered_with_the_nearest(
    plan: Run, typed: tuple[str, ...], meant: str
) -> None:
    """Exit code 2 and what was probably meant, whatever kind of name it is."""
    outcome = plan(*typed)
    assert outcome.code == Exit.BAD_INPUT
    assert meant in " ".join(outcome.err.split())


@pytest.mark.parametrize(
    ("typed", "first", "fewer"),
    [
        (("models", "lama"), "llama", 40),
        (("models", "70B"), "llama", 10),
        (("metrics", "mfu"), "mfu", 5),
        (("scenarios", "chat"), "llama3", 15),
        (("hardware", "list", "h200"), "gpu/h200", 30),
    ],
)
def test_part_of_a_name_lists_those_that_hold_it(
    plan: Run, typed: tuple[str, ...], first: str, fewer: int
) -> None:
    """Not the whole list, which the eye would have to search."""
    outcome = plan(*typed, "--format", "csv")
    rows = outcome.out.splitlines()[1:]
    assert 0 < len(rows) < fewer
    assert all(typed[-1].lower() in row.lower() for row in rows)
    assert any(row.startswith(first) for row in rows)
