"""A model given by its family and shape in the scenario itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.reading.model_library import load_model
from simulator.reading.scenario import load_scenario

SCENARIO = """
schema = 1
[hardware]
machine = "node/dgx-a100-80gb"
[data]
samples = 10000
bytes_per_sample = "8 kB"
[model]
family = "gpt"
[model.shape]
layers = 12
hidden = 768
heads = 12
vocabulary = 50257
positions = 1024
sequence = 1024
[train]
batch_size = 4
precision = "bf16"
"""


def load(folder: Path, *overrides: str) -> float:
    """Parameters of the model of the scenario above, with some keys overridden."""
    file = folder / "s.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    model = load_scenario(str(file), overrides=overrides).job.model
    assert model is not None
    return model.parameters


def test_the_shape_counts_as_the_library_model_of_that_shape(tmp_path: Path) -> None:
    """GPT-2's figures give GPT-2's parameters."""
    assert load(tmp_path) == load_model("gpt2").parameters


def test_a_figure_of_the_shape_can_be_overridden(tmp_path: Path) -> None:
    """Twice the layers add what twelve layers hold: 12 h^2 + 13 h each."""
    more = load(tmp_path, "model.shape.layers=24") - load(tmp_path)
    assert more == 12 * (12 * 768**2 + 13 * 768)


def test_a_wrong_figure_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    """A slip in the shape is found like a slip anywhere else."""
    with pytest.raises(InputError, match="did you mean 'layers'"):
        load(tmp_path, "model.shape.layer=24")


def test_an_unknown_family_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    """So is a slip in the family."""
    with pytest.raises(InputError, match="did you mean 'gpt'"):
        load(tmp_path, "model.family=gpd")
