"""`evidence/ablations.py`: what it takes away is there; only families that change are reported."""

from __future__ import annotations

import numpy as np

import ablations
from simulator.reading.fitted.kernel_files import with_values


def test_what_is_taken_away_is_in_the_package() -> None:
    """Every equation and figure that a mechanism replaces goes by that name; names differ."""
    for one in ablations.MECHANISMS:
        assert one.equations or one.figures
        for module, name, _ in one.equations:
            assert hasattr(module, name), (one.name, name)
        assert with_values(ablations.stand_ins(one.figures, {}))
    assert len({one.name for one in ablations.MECHANISMS}) == len(ablations.MECHANISMS)


def test_a_figure_stands_in_as_it_was_fitted_without_a_series() -> None:
    """The name of a figure means its value in the group; a number means itself."""
    figures = {"hopper.throttle": "ampere.throttle", "shared.wave": 0.0}
    assert ablations.stand_ins(figures, {"ampere.throttle": 0.3}) == {
        "hopper.throttle": 0.3,
        "shared.wave": 0.0,
    }


def test_only_families_that_change_are_told_and_those_in_sight_are_marked() -> None:
    """One family moves from 10% to 0% and was chosen on; the other stays."""
    one = ablations.Mechanism(name="some", chosen_on=("moved",))
    inside, off = np.array([True, True]), np.log([1.1, 1.1])
    kept = {"same": (off, inside), "moved": (np.zeros(2), inside)}
    head, line = ablations.table(one, kept, {"same": (off, inside), "moved": (off, inside)})
    assert (head, line.split()[:2]) == ("some", ["moved*", "2"])
