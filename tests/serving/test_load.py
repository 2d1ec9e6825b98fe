"""The requests of a load: lengths and arrivals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.schema.serving import (
    ClosedLoop,
    LengthDistribution,
    Lengths,
    Load,
    OpenLoop,
    RateCurve,
    Trace,
)
from simulator.serving.load import mean_context, requests_of, usual_count

UNIFORM = Lengths(tokens=1024, spread=LengthDistribution.UNIFORM, ratio=0.8)


def load(arrivals: ClosedLoop | OpenLoop | RateCurve, prompt: Lengths = UNIFORM) -> Load:
    """A load with such arrivals and prompts."""
    return Load(arrivals=arrivals, prompt=prompt, output=UNIFORM)


def test_lengths_are_those_of_the_benchmark_client() -> None:
    """With its seed the client of vLLM's and SGLang's benchmark draws the same sequence."""
    np.random.seed(0)  # noqa: NPY002 - the client's own generator
    prompts = np.random.randint(819, 1025, size=40)  # noqa: NPY002
    outputs = np.random.randint(819, 1025, size=40)  # noqa: NPY002
    found = requests_of(load(ClosedLoop(concurrency=4)), 40, seed=0)
    assert found.prompts == prompts.tolist()
    assert found.outputs == outputs.tolist()


def test_a_closed_loop_runs_ten_requests_a_client() -> None:
    """All clients send their first request at the start."""
    asked = load(ClosedLoop(concurrency=16))
    assert usual_count(asked) == 160
    assert requests_of(asked, 160, seed=0).arrivals == [0.0] * 16


@pytest.mark.parametrize(("shape", "variation"), [(1.0, 1.0), (0.25, 2.0), (math.inf, 0.0)])
def test_arrivals_have_their_rate_and_burstiness(shape: float, variation: float) -> None:
    """Gaps have the mean of the rate; their variation is one over the root of the shape."""
    ways = OpenLoop(rate=5.0, burstiness=shape)
    arrivals = requests_of(load(ways), 40_000, seed=1).arrivals
    gaps = np.diff(arrivals)
    assert gaps.mean() == pytest.approx(0.2, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.03, abs=1e-9)


@pytest.mark.parametrize(
    "lengths",
    [
        UNIFORM,
        Lengths(tokens=300.0),
        Lengths(tokens=300.0, spread=LengthDistribution.EXPONENTIAL),
        Lengths(tokens=300.0, spread=LengthDistribution.LOGNORMAL, deviation=0.7),
    ],
)
def test_lengths_have_their_mean(lengths: Lengths) -> None:
    """Drawn lengths are whole tokens with the mean that the load says."""
    found = requests_of(load(OpenLoop(rate=1.0), lengths), 40_000, seed=2).prompts
    assert min(found) >= 1
    assert np.mean(found) == pytest.approx(lengths.mean, rel=0.02)


def test_a_rate_that_rises_and_falls() -> None:
    """Arrivals along a curve: its mean over a period, its shares in each part, then again."""
    curve = RateCurve(rate=20.0, shares=(0.0, 1.0), period=1000.0)
    assert curve.mean == 10.0
    times = np.asarray(requests_of(load(curve), 20_000, seed=5).arrivals)
    assert (np.diff(times) >= 0.0).all()
    assert times[-1] == pytest.approx(2000.0, rel=0.03)
    first = np.histogram(times, bins=[0, 250, 500, 750, 1000, 1250])[0]
    assert first == pytest.approx([1250, 3750, 3750, 1250, 1250], rel=0.08)
    assert usual_count(load(curve)) == 10_000


def test_an_even_curve_is_a_poisson_process() -> None:
    """Gaps of a curve without ups and downs are exponential."""
    curve = RateCurve(rate=5.0, shares=(1.0,), period=60.0)
    gaps = np.diff(requests_of(load(curve), 20_000, seed=6).arrivals)
    assert gaps.mean() == pytest.approx(0.2, rel=0.02)
    assert gaps.std() == pytest.approx(0.2, rel=0.03)


def test_requests_are_cut_to_what_a_cache_holds() -> None:
    """The tail of a distribution never exceeds the cache, which no request could leave again."""
    tail = Lengths(tokens=1000.0, spread=LengthDistribution.LOGNORMAL, deviation=3.0)
    found = requests_of(load(OpenLoop(rate=1.0), tail), 5000, seed=4, most=4000)
    assert max(map(sum, zip(found.prompts, found.outputs, strict=True))) == 4000


@pytest.mark.parametrize(
    "output",
    [
        Lengths(tokens=200.0),
        Lengths(tokens=200.0, spread=LengthDistribution.EXPONENTIAL),
        Lengths(tokens=200.0, spread=LengthDistribution.LOGNORMAL, deviation=0.8),
        Lengths(tokens=200.0, spread=LengthDistribution.UNIFORM, ratio=0.2),
    ],
)
def test_running_requests_have_longer_answers_than_arriving_ones(output: Lengths) -> None:
    """The sum of contexts over all iterations of 200,000 drawn requests, over these iterations.

    With exponential answers of 200 it is the prompt and 200, not 100.
    """
    load = Load(arrivals=OpenLoop(rate=1.0), prompt=Lengths(tokens=1000.0), output=output)
    drawn = np.asarray(requests_of(load, 200_000, 0).outputs, dtype=float)
    contexts = (drawn * (1000.0 + 0.5 * drawn)).sum() / drawn.sum()
    assert mean_context(load) == pytest.approx(contexts, rel=0.005)
    if output.spread is LengthDistribution.EXPONENTIAL:
        assert mean_context(load) == pytest.approx(1200.0, rel=1e-3)


def test_the_mean_context_of_a_trace_is_that_of_its_requests() -> None:
    """Two requests: 10 iterations at 105 tokens on average, and 30 iterations at 215."""
    trace = Trace(prompts=(100, 200), outputs=(10, 30), arrivals=(0.0, 1.0))
    load = Load(arrivals=trace, prompt=Lengths(tokens=150.0), output=Lengths(tokens=20.0))
    assert mean_context(load) == pytest.approx((10 * 105 + 30 * 215) / 40)
