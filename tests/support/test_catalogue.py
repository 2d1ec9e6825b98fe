"""A test over a catalogue runs all cases, and names all that fail."""

from __future__ import annotations

import pytest
from support.catalogue import each
from support.stages import sampled

RUN: list[int] = []


@each("number", [1, 2])
def test_each_case_runs(number: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Cases run in order, with fixtures."""
    assert tmp_path_factory is not None
    RUN.append(number)
    assert list(range(1, number + 1)) == RUN


def test_all_failures_are_named() -> None:
    """Two of three cases fail; what is raised names both, and a case that skips is none."""

    def test(left: int, right: int) -> None:
        if not right:
            pytest.skip()
        assert left == right, "unequal"

    cases = [pytest.param(1, 2, id="first"), (3, 3), (4, 5), (6, 0)]
    run = each(("left", "right"), cases)(test)
    (mark,) = run.pytestmark
    ((catalogue,),) = [stage.values for stage in mark.args[1]]
    with pytest.raises(AssertionError, match=r"(?s)2 of 4 cases fail:\nfirst: .*\n4, 5: .*unequal"):
        run(catalogue=catalogue)


def test_slow_cases_are_a_test_of_the_slow_stage() -> None:
    """Of four cases two are sampled: they make one test, and the others a slow one."""

    def test(number: int) -> None:
        assert number

    run = each("number", sampled([1, 2, 3, 4], 2))(test)
    (mark,) = run.pytestmark
    quick, slow = mark.args[1]
    assert [case.values for case in quick.values[0]] == [(1,), (4,)]
    assert [case.values for case in slow.values[0]] == [(2,), (3,)]
    assert (quick.marks, [one.name for one in slow.marks]) == ((), ["slow"])
