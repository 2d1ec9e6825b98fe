"""Figures fitted without a series."""

from __future__ import annotations

from fitting.figures import free
from fitting.language_models import SET
from fitting.unseen import groups
from simulator.reading.measured.measurement_set import load_set
from simulator.uncertainty.scenario import unseen_groups


def test_every_series_stands_in_one_group_or_has_no_siblings() -> None:
    """All that figures are fitted to is in a group, once."""
    named = [series for group in groups() for series in group]
    assert len(named) == len(set(named))
    rows = [row for row in load_set(SET).rows if not row.excluded and row.split == "fit"]
    assert {row.labels["series"] for row in rows} <= set(named)


def test_what_ships_has_all_names_of_each_figure_within_bounds() -> None:
    """Groups that rows were fitted of have every figure of steps; others none."""
    fitted = [one for one in unseen_groups() if one.figures]
    left_out = {series for one in fitted for series in one.series}
    assert {"vtrain1", "foundry", "titan", "mbridge", "bloomtune"} <= left_out
    assert [one.series for one in unseen_groups()] == groups()
    for one in fitted:
        for figure in free("step").tables:
            for name in figure.names:
                assert figure.low <= one.figures[name] <= figure.high, name
