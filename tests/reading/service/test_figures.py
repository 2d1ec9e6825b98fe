"""Figures of serving engines: what the file holds."""

from __future__ import annotations

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.service.figures import engines, serving_figures, serving_kernels
from simulator.schema.accelerators import Precision


@pytest.mark.parametrize("engine", engines())
def test_every_figure_is_possible_and_has_a_source(engine: str) -> None:
    """Shares lie between 0 and 1, times are below a second, and each figure rests on something."""
    found = serving_figures(engine)
    assert not found.carried_over
    for share in (found.stream, found.cache, found.attention, found.link):
        assert 0.0 < share <= 1.0
    for time in (found.layer, found.routing, found.iteration, found.sequence, found.request):
        assert 0.0 <= time < 1.0
    assert all(source.reference for source in found.sources.values())


def test_kernels_of_an_accelerator_that_was_never_timed_are_those_of_a_relative() -> None:
    """An L4 computes as its nearest measured relative does, and a device of no kind has none."""
    found = serving_kernels(Catalogue.default(()).gpu("l4"), Precision.BF16)
    assert found is not None
    assert found.carried_over
