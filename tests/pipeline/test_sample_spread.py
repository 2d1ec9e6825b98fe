"""The spread of samples that is assumed where none is stated."""

from __future__ import annotations

from simulator.errors import NotModelled
from simulator.pipeline.sample_spread import ASSUMED, with_assumed_spread, with_assumed_spreads
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.scenario import Scenario


def test_a_candidate_whose_batches_cannot_be_made_spoils_no_other() -> None:
    """Where the device shares the host's RAM, a model whose memory is not known is refused."""
    reader = CandidateReader("unet-m1-max")
    asked = [
        reader.without_uncertainty({"train.recompute": how}) for how in ("none", "full", "none")
    ]
    first, second, third = with_assumed_spreads(asked)
    assert isinstance(first, Scenario)
    assert isinstance(second, NotModelled)
    assert isinstance(third, Scenario)


def test_many_scenarios_get_what_each_gets_alone() -> None:
    """Batches of scenarios of equal structure are resolved as single ones."""
    names = ["gpu-decode", "gpt2-tokens-h100", "rl-actors", "gpu-decode"]
    asked = [load_scenario(name) for name in names]
    assert with_assumed_spreads(asked) == tuple(map(with_assumed_spread, asked))


def test_workers_that_read_and_compute_in_turn_vary() -> None:
    """An assumption is noted once, and applied once."""
    resolved = with_assumed_spread(load_scenario("gpu-decode"))
    assert resolved.job.dataset.size_spread == ASSUMED
    assert resolved.notes[-1].what.startswith("spread of samples")
    assert with_assumed_spread(resolved) is resolved


def test_a_stated_spread_is_kept() -> None:
    """A spread in the file leaves the scenario as it is."""
    stated = ("data.size_spread.shape=gamma", "data.size_spread.relative_deviation=0.1")
    scenario = load_scenario("gpu-decode", overrides=stated)
    assert with_assumed_spread(scenario) is scenario
