"""Figures fitted without a series."""

from __future__ import annotations

import tomllib

from fitting.figures import free
from fitting.language_models import SET
from fitting.part import DATA
from fitting.unseen import FILE, groups
from simulator.files.measured import load_set


def test_every_series_stands_in_one_group_or_has_no_siblings() -> None:
    """Whatever figures are fitted to is in a group, once."""
    named = [series for group in groups() for series in group]
    assert len(named) == len(set(named))
    rows = [row for row in load_set(SET).rows if not row.excluded and row.split == "fit"]
    assert {row.labels["series"] for row in rows} <= set(named)


def test_what_ships_has_all_names_of_each_figure_within_bounds() -> None:
    """A table for each group that rows were fitted of, with every figure of steps."""
    tables = tomllib.loads((DATA / FILE).read_text(encoding="utf-8"))["without"]
    left_out = {series for table in tables for series in table["series"]}
    assert {"vtrain1", "foundry", "titan", "mbridge", "bloomtune"} <= left_out
    for table in tables:
        for figure in free("step").tables:
            for name in figure.names:
                assert figure.low <= table["figures"][name] <= figure.high, name
