"""Measured runs predicted together."""

from __future__ import annotations

import numpy as np
import pytest

from fitting.figures import free, shipped
from fitting.kernels import expected, fit_all, measured
from fitting.language_models import Runs, runs
from simulator.physics.footprint import memory_fit
from simulator.physics.training_step import training_step
from simulator.physics.transformer import kernels_of, transformer_step
from simulator.reading.fitted.kernel_files import kernel_files, with_values

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> Runs:
    """All runs of the shipped set."""
    return runs()


def test_runs_together_are_predicted_as_one_by_one(found: Runs) -> None:
    """Stacked descriptions and figures give each run's own step and memory, to the last digit."""
    some = found.chosen(np.arange(len(found.rows)) % 100 == 0)
    alone = [float(training_step(transformer_step(s), kernels_of(s)).total) for s in some.scenarios]
    assert some.step_times(kernel_files()) == pytest.approx(alone, rel=1e-12)
    memory = memory_fit(some.scenarios[0])
    assert memory is not None
    assert some.memory_sizes(kernel_files())[0] == pytest.approx(memory.total)


def test_a_figure_moves_the_runs_it_holds_for(found: Runs) -> None:
    """A larger share of Hopper's peak shortens steps on Hopper and no others."""
    some = found.chosen(np.arange(len(found.rows)) % 20 == 0)
    before = some.step_times(kernel_files())
    after = some.step_times(with_values({"hopper.share16": 0.9}))
    gpus = [scenario.cluster.trainers.host.gpu for scenario in some.scenarios]
    hopper = np.array([gpu is not None and gpu.architecture == "Hopper" for gpu in gpus])
    assert hopper.any()
    assert np.all(after[~hopper] == before[~hopper])
    assert np.all(after[hopper] <= before[hopper])
    assert np.any(after[hopper] < before[hopper])


def test_the_shipped_figures_come_out_of_the_fit(found: Runs) -> None:
    """The fit begins at what is expected and ends, in four digits, at what ships."""
    values = expected()
    for one in fit_all(found, lambda _: None).values():
        values |= one.values
    names = sorted(values)
    for name, value, ships in zip(names, map(values.get, names), shipped(names), strict=True):
        assert value == pytest.approx(ships, rel=5e-4), name


def test_only_rows_of_split_fit_are_fitted_to(found: Runs) -> None:
    """Series that are kept back are in none of the parts."""
    own = found.chosen(found.fitted & measured(found, "step"))
    assert len(own.rows) > 700
    assert not {"kort5", "sc21t1", "bert", "bloom"} & set(own.series)
    assert len(free("step").tables) < 60
