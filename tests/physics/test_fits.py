"""Whether memory is enough, where it is known how far what is needed may be off."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.physics.footprint import MemoryFit, Verdict, verdict
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.uncertainty.components import P90


def fit(total: float, capacity: float, log_sd: float, waste: float = 0.0) -> MemoryFit:
    """What is needed of a capacity, part of it wasted by the allocator."""
    items = {"activations": total - waste, "fragmentation": waste}
    word = verdict(total, capacity, waste, log_sd)
    return MemoryFit(items=items, capacity=capacity, verdict=word, log_sd=log_sd)


def test_as_much_as_there_is_fits_every_second_time() -> None:
    """What is needed is the median: it is more as often as less."""
    assert fit(80e9, 80e9, 0.1).probability == pytest.approx(0.5)
    assert fit(80e9, 80e9, 0.1).verdict is Verdict.UNCERTAIN


@pytest.mark.parametrize(("deviations", "word"), [(1.3, "yes"), (0.0, "uncertain"), (-1.3, "no")])
def test_the_word_follows_from_the_probability(deviations: float, word: str) -> None:
    """Nine times in ten is yes, once in ten is no, for one job and for many at once."""
    total = 80e9 / math.exp(0.1 * deviations)
    assert fit(total, 80e9, 0.1).verdict == word
    many = verdict(np.array([total, total]), 80e9, 0.0, 0.1)
    assert list(np.asarray(many)) == [word, word]


def test_an_allocator_gives_back_what_it_wastes() -> None:
    """Waste is part of what is needed, not of what decides whether it fits."""
    plain, wasteful = fit(80e9, 80e9, 0.1), fit(80e9, 80e9, 0.1, waste=8e9)
    assert wasteful.total == plain.total
    assert wasteful.probability > plain.probability


def test_a_band_holds_four_in_five() -> None:
    """Its ends lie as many deviations away as the 10% and 90% quantiles."""
    low, high = fit(80e9, 80e9, 0.1).band
    assert [math.log(end / 80e9) for end in (low, high)] == pytest.approx([-P90 * 0.1, P90 * 0.1])


def test_what_is_unlike_measured_runs_is_known_less_well() -> None:
    """Memory of a framework that nobody measured has a wider interval; both are predicted."""
    own = predict(load_scenario("gpt2-tokens-h100", overrides=["software.framework=jax"]))
    like = predict(load_scenario("bloom-176b"))
    widths = [p.interval["gpu_memory_bytes.total"]["p90"] / p.memory.total for p in (like, own)]
    assert 1.0 < widths[0] < widths[1]
    assert 0.0 <= own.memory.probability <= 1.0
