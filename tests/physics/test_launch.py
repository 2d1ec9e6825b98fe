"""Launches of a layer, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics import launch
from simulator.physics.describe import describe, kernels_of
from simulator.physics.kernels import Both
from simulator.reading.scenario import load_scenario


def test_only_a_layer_that_is_split_launches_collectives() -> None:
    """One more launch in each pass over two ranks than on a rank alone."""
    scenario = load_scenario("gpt3-175b-megatron")
    description, kernels = describe(scenario), kernels_of(scenario)
    figures = replace(kernels.launch, jitter=0.0, collective=1e-3)
    kernels = replace(kernels, launch=figures)

    def over(ranks: float) -> Both:
        layout = replace(description.layout, tensor=ranks)
        return launch.layer(replace(description, layout=layout), kernels)

    alone, split = over(1.0), over(2.0)
    one = figures.collective * figures.factor
    assert float(split.forward - alone.forward) == pytest.approx(one)
    assert float(split.backward - alone.backward) == pytest.approx(one)
