"""One test over all cases of a catalogue instead of one test for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import MarkDecorator, ParameterSet

Test = Callable[..., None]


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Any]:
    """Run a test over cases in a loop, and fail with all cases that fail.

    Used like `pytest.mark.parametrize`. Cases that are marked slow, as by `sampled`, make a second
    test, of the slow stage.

    Parameters
    ----------
    names : str or tuple of str
        Arguments of the test that a case gives.
    cases : iterable
        Values of the argument, tuples of several, or what `pytest.param` made.
    """
    arguments = (names,) if isinstance(names, str) else names
    sets = [_parameters(case, len(arguments)) for case in cases]
    quick = [case for case in sets if not _is_slow(case)]
    slow = [case for case in sets if _is_slow(case)]

    def decorate(test: Test) -> Any:
        def run(*, catalogue: Sequence[ParameterSet], **fixtures: Any) -> None:
            _run_all(test, arguments, catalogue, fixtures)

        own = inspect.signature(test).parameters.values()
        fixtures = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for one in own
            if one.name not in arguments
        ]
        added = inspect.Parameter("catalogue", inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = inspect.Signature([*fixtures, added])  # type: ignore[attr-defined] # pytest reads it
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(run, name, getattr(test, name))
        run.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined] # as pytest does
        return _stages(quick, slow)(run)

    return decorate


def _stages(quick: list[ParameterSet], slow: list[ParameterSet]) -> MarkDecorator:
    """Return the marks that make a test of each stage that has cases."""
    stages = [pytest.param(quick, id="quick")] * bool(quick)
    stages += [pytest.param(slow, id="slow", marks=pytest.mark.slow)] * bool(slow)
    return pytest.mark.parametrize("catalogue", stages)


def _run_all(
    test: Test, names: Sequence[str], cases: Sequence[ParameterSet], fixtures: dict[str, Any]
) -> None:
    """Run all cases, then fail where any failed; those that skip themselves are passed over."""
    failures: list[str] = []
    first: Exception | None = None
    for case in cases:
        try:
            test(**dict(zip(names, case.values, strict=True)), **fixtures)
        except pytest.skip.Exception:
            continue
        except Exception as error:  # noqa: BLE001 - whatever a case raises is its failure
            first = first or error
            label = case.id or ", ".join(map(str, case.values))
            failures.append(f"{label}: {type(error).__name__}: {error}")
    if failures:
        msg = f"{len(failures)} of {len(cases)} cases fail:\n" + "\n".join(failures)
        raise AssertionError(msg) from first


def _parameters(case: Any, number: int) -> ParameterSet:
    """Return a case as `pytest.param` makes it."""
    if hasattr(case, "marks") and hasattr(case, "values") and hasattr(case, "id"):
        return case  # type: ignore[no-any-return]
    return pytest.param(*case) if number > 1 else pytest.param(case)


def _is_slow(case: ParameterSet) -> bool:
    return any(getattr(mark, "name", "") == "slow" for mark in case.marks)
