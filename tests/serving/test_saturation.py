"""The saturation of a replica: the rate at which requests start while others always wait."""

from __future__ import annotations

import pytest

from simulator.physics.forward_pass import Pass, ScaledPass
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.serving import Service
from simulator.serving.layout import Layout, Side
from simulator.serving.load import Requests
from simulator.serving.replica import Pool
from simulator.serving.run import _behind_running, saturated, saturation_rates
from simulator.serving.scheduler import Reuse
from tests.support.serving import MadePass

PLENTY = Pool(items={}, capacity=0.0, blocks=10**8, block=16)


def service(sequences: int, output: int, spread: str = "constant") -> Service:
    """Prompts of one token and equal answers on an engine with so many seats."""
    settings = {
        "serving.max_sequences": sequences,
        "load.prompt.tokens": 1,
        "load.prompt.spread": "constant",
        "load.output.tokens": output,
        "load.output.spread": spread,
    }
    return ServiceReader(chain_of("llama3-8b-chat-h100"), "x").read(settings)


def rates(asked: Service, work: Pass) -> tuple[float, float]:
    """Requests and tokens a second of one replica with room for all."""
    side = Side(serving=asked.serving, work=work, pool=PLENTY, reuse=Reuse())
    return saturation_rates(asked, Layout(main=side), 0)


@pytest.mark.parametrize(("seats", "rate"), [(8, 8 / 0.018), (32, 32 / 0.042)])
def test_batches_of_a_fixed_and_a_growing_part(seats: int, rate: float) -> None:
    """10 ms and 1 ms for each of b requests: b / (10 ms + b ms) complete."""
    found, tokens = rates(service(seats, 1), MadePass(fixed=0.01, prompt_token=0.001))
    assert found == pytest.approx(rate, rel=0.01)
    assert tokens == pytest.approx(rate, rel=0.01)


def test_one_seat_starts_a_request_whenever_one_ends() -> None:
    """Iterations of 11 ms, one after the other."""
    found, _ = rates(service(1, 1), MadePass(fixed=0.01, prompt_token=0.001))
    assert found == pytest.approx(1.0 / 0.011, rel=1e-9)


@pytest.mark.parametrize("spread", ["constant", "exponential"])
def test_seats_that_do_not_slow_each_other(spread: str) -> None:
    """32 seats with answers of 50 iterations of 10 ms complete 64 a second."""
    found, tokens = rates(service(32, 50, spread), MadePass(fixed=0.01))
    assert found == pytest.approx(64.0, rel=0.05)
    assert tokens == pytest.approx(3200.0, rel=0.02)


def test_twice_the_time_is_half_the_rate() -> None:
    """What intervals take for granted: rates scale with the forward pass."""
    work = MadePass(fixed=0.01, prompt_token=1e-4, sequence=1e-4, context=1e-6)
    fast, slow = (
        rates(service(16, 40, "exponential"), one)[0] for one in (work, ScaledPass(work, 2.0))
    )
    assert fast == pytest.approx(2.0 * slow, rel=1e-9)


def test_the_rate_of_a_replica_with_a_fixed_batch_follows_the_mean_lengths() -> None:
    """One of 32 seats is free every 100/32 iterations of 10 ms, with answers of 100 on average.

    Lengths vary by as much as their mean: a sample of 3,000 has a mean within 2% (one standard
    deviation), the rate is within 1.5% for each of five seeds.
    """
    asked, work = service(32, 100, "exponential"), MadePass(fixed=0.01)
    side = Side(serving=asked.serving, work=work, pool=PLENTY, reuse=Reuse())
    for seed in range(5):
        rate, tokens = saturation_rates(asked, Layout(main=side), seed)
        assert rate == pytest.approx(32.0, rel=0.015)
        assert tokens == pytest.approx(3200.0, rel=0.015)


def test_requests_that_run_first_have_long_answers() -> None:
    """Half of the answers take 1 iteration and half 99: of those that run 99% are long.

    At a random moment of 99 iterations, 49 are done on average.
    """
    every = Requests([1] * 2000, [1, 99] * 1000, [0.0] * 2000)
    both = _behind_running(every, 1000, 0)
    done = [prompt - 1 for prompt in both.prompts[:1000]]
    whole = [left + before for left, before in zip(both.outputs, done, strict=False)]
    assert sum(length == 99 for length in whole) == pytest.approx(990, abs=10)
    assert sum(done) == pytest.approx(1000 * 49, rel=0.05)
    assert both.outputs[1000:] == every.outputs


@pytest.mark.parametrize(("offered", "headroom", "drift"), [(4.0, 2.5, 0.0), (25.0, 0.4, 15.0)])
def test_headroom_by_hand(offered: float, headroom: float, drift: float) -> None:
    """Of 10 requests/s, the highest rate over the load; what exceeds it waits for ever."""
    found = saturated(10.0, 100.0, offered)
    assert found.headroom == pytest.approx(headroom)
    assert found.drift == pytest.approx(drift)
    assert saturated(10.0, 100.0, None).headroom is None
