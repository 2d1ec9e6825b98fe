"""Which cases of a test run in the fast stage, and which in the slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def sampled(cases: Iterable[object], keep: int) -> list[ParameterSet]:
    """Cases for `parametrize`: `keep` of them, evenly spread, stay fast, the others are slow.

    Parameters
    ----------
    cases : iterable
        Values of a parameter, tuples of several, or what `pytest.param` made.
    keep : int
        How many run in the fast stage; all run in the slow one's selection `slow or not slow`.
    """
    found = [_case(case) for case in cases]
    fast = {round(i * (len(found) - 1) / max(keep - 1, 1)) for i in range(keep)}
    return [case if number in fast else _slow(case) for number, case in enumerate(found)]


def _case(case: object) -> ParameterSet:
    """A case as `pytest.param` makes it."""
    if hasattr(case, "marks") and hasattr(case, "values"):
        return case  # type: ignore[return-value]
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)


def _slow(case: ParameterSet) -> ParameterSet:
    """The case, marked as one of the slow stage."""
    return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
