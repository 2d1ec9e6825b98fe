"""Free figures: what is expected of them, and the files they are in."""

from __future__ import annotations

import numpy as np
import pytest
from support.catalogue import each

from fitting.figures import (
    FreeTable,
    at_bound,
    changed_texts,
    free,
    rounded,
    shipped,
)
from fitting.kernels import FOLDER
from fitting.part import DATA
from simulator.reading.fitted.kernel_files import with_values

ALL = [table for part in ("step", "memory", "expected") for table in free(part).tables]


@each("table", ALL)
def test_figures_ship_within_their_bounds_and_tied_ones_alike(table: FreeTable) -> None:
    """A figure lies within its bounds, all names of it have one value, one not fitted the prior."""
    values = shipped(table.names)
    assert table.low <= table.prior <= table.high
    assert table.low <= values[0] <= table.high
    assert values == [values[0]] * len(values)
    if table.part == "expected":
        assert values[0] == rounded(table.prior)


def test_deviations_and_values_are_two_ways_to_say_the_same() -> None:
    """Zero is what is expected; values come back from their deviations."""
    figures = free("step")
    priors = [table.prior for table in figures.tables]
    assert figures.values(np.zeros(len(priors))) == pytest.approx(priors)
    values = shipped(figures.names)
    assert figures.values(figures.scaled(values)) == pytest.approx(values, rel=1e-6)


def test_other_values_are_tried_without_changing_what_ships() -> None:
    """A figure of its own, a factor of a variant, and one of a network."""
    names = ("hopper.share16", "blackwell.variant.0.products", "networks.network.0.sends")
    before = shipped(names)
    files = with_values(dict.fromkeys(names, 0.5))
    assert files["hopper"].figures["share16"].value == 0.5
    assert files["blackwell"].variant[0].products == 0.5
    assert files["networks"].network[0].sends == 0.5
    assert shipped(names) == before


def test_shipped_values_are_written_as_they_stand() -> None:
    """Writing what ships changes no file; writing another value changes that line."""
    tables = [table for table in ALL if table.part != "expected"]
    values = {name: shipped([name])[0] for table in tables for name in table.names}
    for name, text in changed_texts(values, tables, DATA / FOLDER).items():
        assert text == (DATA / FOLDER / name).read_text(encoding="utf-8")
    (made,) = changed_texts({"hopper.share16": 0.7}, tables, DATA / FOLDER).values()
    assert "[figures.share16]\nvalue = 0.7\n" in made


def test_a_value_at_its_bound_is_told() -> None:
    """Within a five-hundredth of the range."""
    table = next(t for t in ALL if t.names[0] == "hopper.share16")
    assert at_bound(table, table.low) == "low"
    assert at_bound(table, table.high) == "high"
    assert not at_bound(table, table.prior)
