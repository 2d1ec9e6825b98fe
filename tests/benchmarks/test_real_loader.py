"""The real loader's grid, predicted from pieces that were measured by themselves."""

from __future__ import annotations

import csv
import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "real_loader"
RESULTS = FOLDER / "results"
SHIPPED = Path(__file__).parents[2] / "simulator" / "data" / "measured"
BASE = SHIPPED / "bases" / "real-loader.toml"
CORES = 2


@pytest.fixture(scope="module", name="script")
def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_loader_predict", FOLDER / "predict.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", name="runs")
def _runs() -> list[dict[str, str]]:
    with (RESULTS / "grid.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module", name="found")
def _found(script: ModuleType, runs: list[dict[str, str]]) -> list[dict[str, str]]:
    return list(script.rows(runs, script.read_pieces(RESULTS)))


@pytest.fixture(scope="module", name="wrong")
def _wrong(script: ModuleType, found: list[dict[str, str]]) -> dict[str, np.ndarray]:
    wrong = script.errors(found, BASE)
    return {metric: np.abs(values) for metric, values in wrong.items()}


def test_step_times_are_within_the_target(script: ModuleType, wrong: dict[str, np.ndarray]) -> None:
    """Mean error at most 5%, nine of ten configurations within 12%."""
    assert np.mean(wrong[script.STEP]) <= 0.05
    assert np.quantile(wrong[script.STEP], 0.9) <= 0.12


def test_more_workers_than_cores_are_within_the_target(
    script: ModuleType, wrong: dict[str, np.ndarray], found: list[dict[str, str]]
) -> None:
    """The same holds for the configurations with more workers than cores by themselves."""
    over = [int(row["input.workers"]) > CORES for row in found]
    assert sum(over) >= 12
    assert np.mean(wrong[script.STEP][over]) <= 0.05
    assert np.quantile(wrong[script.STEP][over], 0.9) <= 0.12


def test_memory_is_within_15_percent_everywhere(
    script: ModuleType, wrong: dict[str, np.ndarray]
) -> None:
    """PSS of all processes together, configuration by configuration."""
    assert np.max(wrong[script.RAM]) <= 0.15


def test_batches_in_shared_memory(script: ModuleType, found: list[dict[str, str]]) -> None:
    """Where the consumer is slower, prefetch x workers + 1 batches lie in shared memory."""
    wrong = script.in_flight_error(found)
    assert len(wrong) >= 8
    assert np.max(np.abs(wrong)) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a core for every process", "taking a batch over costs nothing"])
def test_each_part_of_the_model_is_needed(
    script: ModuleType, wrong: dict[str, np.ndarray], found: list[dict[str, str]], part: str
) -> None:
    """Without the part the mean error is at least half as large again."""
    without = script.errors(found, BASE, script.LEFT_OUT[part])
    assert np.mean(np.abs(without[script.STEP])) >= 1.5 * np.mean(wrong[script.STEP])


def test_nothing_measured_on_the_grid_reaches_a_prediction(
    script: ModuleType, runs: list[dict[str, str]], found: list[dict[str, str]]
) -> None:
    """With measured columns exchanged between runs, every row overrides the same keys."""
    kept = {*script.COLUMNS, "other_load_cores"}
    mixed = random.Random(1).sample(runs, len(runs))  # noqa: S311 - a seeded order
    exchanged = [
        {key: value if key in kept else other[key] for key, value in run.items()}
        for run, other in zip(runs, mixed, strict=True)
    ]
    again = list(script.rows(exchanged, script.read_pieces(RESULTS)))
    assert again != found
    for before, after in zip(found, again, strict=True):
        for key in filter(script.is_override, before):
            assert before[key] == after[key]


def test_committed_set_is_the_scripts_output(
    script: ModuleType, found: list[dict[str, str]]
) -> None:
    """Rows and scenario are what predict.py makes of grid and pieces."""
    with (SHIPPED / "real_loader.csv").open(newline="") as stream:
        assert list(csv.DictReader(stream)) == found
    text = script.scenario_text(script.read_pieces(RESULTS))
    assert BASE.read_text() == text


def test_every_configuration_has_three_quiet_runs(found: list[dict[str, str]]) -> None:
    """At least 46 configurations, each the median of three runs or more."""
    assert len(found) >= 46
    assert all(int(row["repeats"]) >= 3 for row in found)


def test_pieces_between_batch_sizes(script: ModuleType) -> None:
    """A piece at a batch size that was not measured lies on the line between its neighbours."""
    table = {
        "ready_1.batch_8": {"mean_wait_s": {"median": 0.002}},
        "ready_1.batch_32": {"mean_wait_s": {"median": 0.005}},
    }
    pieces = script.Pieces(tables=table)
    assert pieces.receive_cost(1, 16) == pytest.approx(0.003)
    assert pieces.receive_cost(0, 16) == 0.0
