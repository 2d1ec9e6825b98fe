"""Studies of services: the cheapest machines, variants, and what changes are worth."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simulator.errors import InputError, NotModelled
from simulator.predict import layout_of, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader, variants
from simulator.results.serving import ServicePrediction
from simulator.schema.serving import ClosedLoop, Service, Slo
from simulator.serving import answers
from simulator.serving.run import alone
from simulator.serving.sizing import Sizing
from simulator.studies.service_sizing import cheapest_machines, variant_outcomes, worths

CHAT = "llama3-8b-chat-h100"


def reader(*overrides: str) -> ServiceReader:
    """The shipped chat with some settings changed."""
    return ServiceReader(chain_of(CHAT), CHAT, overrides=overrides)


def predicted(*overrides: str, intervals: bool = False) -> ServicePrediction:
    """What is predicted of it."""
    return predict_service(reader(*overrides).read({}), intervals=intervals)


def sizing(service: Service) -> Sizing:
    """Sizing of a service as it is."""
    return Sizing(service=service, layouts=layout_of)


def test_the_fewest_machines_that_keep_the_limits() -> None:
    """One machine fewer breaks a limit or is beyond saturation."""
    found = sizing(reader("load.rate=60 /s").read({}))
    machines = found.machines()
    assert machines is not None
    assert found.keeps(machines)
    assert not found.keeps(machines - 1)


def test_the_highest_rate_within_the_limits() -> None:
    """It lies between the load's and saturation, and a little more breaks a limit."""
    service = reader().read({})
    found = sizing(service)
    rate = found.highest(1)
    assert rate is not None
    assert found.offered < rate < found.saturation[0]
    step = (found.saturation[0] - found.offered) / 2**answers.MAX_HALVINGS
    beyond = predicted(f"load.rate={rate + 1.01 * step} /s").answered
    assert beyond is None or beyond.attainment < service.slo.share


def test_more_machines_keep_the_limits_better() -> None:
    """The share of requests within the limits never falls with more machines."""
    found = sizing(reader("load.rate=50 /s").read({}))
    kept = [told.attainment for n in (3, 4, 6, 12) if (told := found.answered(n)) is not None]
    assert len(kept) == 4
    assert kept == sorted(kept)


def test_a_limit_that_no_machine_keeps_is_named() -> None:
    """A token in a microsecond is beyond any number of machines, and the answer says which."""
    found = cheapest_machines(reader("slo.per_token=1 us").read, [{}])
    assert found.choices == ()
    assert "the limit per token is kept by" in found.refused[0].reason


def test_a_model_that_fits_nowhere_is_refused() -> None:
    """Candidates too small for the model are told with what takes their memory."""
    found = cheapest_machines(reader("model.name=llama-3.1-405b").read, [{}])
    assert "does not fit" in found.refused[0].reason


def test_sizing_needs_a_rate() -> None:
    """Clients that wait for answers ask for no number of machines."""
    service = reader().read({})
    load = replace(service.load, arrivals=ClosedLoop(concurrency=4))
    with pytest.raises(NotModelled, match="arrive at a rate"):
        _ = sizing(replace(service, load=load)).offered


@pytest.mark.slow
def test_the_cheapest_comes_first() -> None:
    """Choices are in the order of their price, and what was left out costs more."""
    asked = reader("load.rate=40 /s")
    found = cheapest_machines(asked.read, asked.candidates())
    prices = [choice.price for choice in found.choices]
    assert prices == sorted(prices)
    assert all(one.least > prices[0] for one in found.dearer)
    best = found.choices[0]
    assert predict_service(asked.read(best.settings), intervals=False).keeps_limits


def test_variants_are_predicted_in_their_order() -> None:
    """Every combination has figures; a mistake stands in the place of its own."""
    points = variants(["load.rate=1 /s,10 /s", "serving.tensor=1,2"])
    found = variant_outcomes(reader().read, points)
    assert [one.settings for one in found] == list(points)
    assert [bool(one.reason) for one in found] == [False, True, False, True]
    first, second = (found[n].figures["per_token_s.mean"] for n in (0, 2))
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize("text", ["load.rate", "load.speed=1", "rate=1"])
def test_variants_of_no_key(text: str) -> None:
    """A key that services lack is refused."""
    with pytest.raises(InputError):
        variants([text])


@pytest.mark.slow
def test_changes() -> None:
    """More bandwidth shortens tokens, more load lengthens them."""
    base, changed = worths(reader().read({}))
    by_name = {worth.name: worth.prediction for worth in changed}
    own = base.answered
    fast, full = (by_name[name].answered for name in ("memory bandwidth x1.25", "load x1.25"))
    assert own is not None
    assert fast is not None
    assert full is not None
    assert fast.per_token.mean < own.per_token.mean < full.per_token.mean


def test_a_rate_near_zero_is_the_bare_forward_pass() -> None:
    """With nobody else there, a mean request takes what it takes alone."""
    told = predicted(
        "load.rate=0.001 /s", "load.prompt.spread=constant", "load.output.spread=constant"
    ).answered
    service = reader("load.prompt.spread=constant", "load.output.spread=constant").read({})
    assert told is not None
    assert told.end_to_end.mean == pytest.approx(alone(service, layout_of(service)), rel=0.01)


def test_doubt_goes_through_the_queue() -> None:
    """Near saturation the interval of the latency is wider than that of the forward pass."""
    bare = "serving.request_overhead=0 s"
    calm = predicted("load.rate=0.1 /s", bare, intervals=True).interval["end_to_end_s.mean"]
    busy = predicted("load.rate=16 /s", bare, intervals=True).interval["end_to_end_s.mean"]
    assert calm["p10"] is not None
    assert calm["p90"] is not None
    assert busy["p10"] is not None
    assert calm["p90"] / calm["p10"] < math.exp(2.0 * 1.2816 * 0.14) * 1.05
    assert busy["p90"] is None or busy["p90"] / busy["p10"] > 2.0 * calm["p90"] / calm["p10"]


def test_few_of_the_requests_tell_how_far_a_long_run_may_be_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bands of 1,500 requests at once are those that runs of all of them have."""
    bulk = "nightly-summaries"
    load = ("load.requests=1500", "load.prompt.tokens=600", "load.output.tokens=40")
    service = ServiceReader(chain_of(bulk), bulk, overrides=load).read({})
    few = predict_service(service, intervals=True).interval
    monkeypatch.setattr(answers, "MAX_REQUESTS_AT_ONCE", 2000)
    every = predict_service(service, intervals=True).interval
    for name in ("duration_s", "first_token_s.p99", "output_tokens_per_s"):
        assert few[name] != every[name]
        for end in ("p10", "p90"):
            assert few[name][end] == pytest.approx(every[name][end], rel=0.01)


def test_saturation_is_where_latencies_end() -> None:
    """Just below the rate found the queue is finite, above it there is no latency."""
    found = predicted().saturation
    assert found is not None
    below = predicted(f"load.rate={0.9 * found.request_rate} /s")
    above = predicted(f"load.rate={1.1 * found.request_rate} /s")
    assert below.answered is not None
    assert above.answered is None
    assert above.saturation is not None
    assert above.saturation.drift == pytest.approx(0.1 * found.request_rate, rel=0.02)


def test_without_limits_nothing_is_missed() -> None:
    """A service without limits keeps them."""
    service = replace(reader().read({}), slo=Slo())
    assert predict_service(service, intervals=False).keeps_limits
