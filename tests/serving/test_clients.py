"""What clients send and get on the network of a service's machines."""

from __future__ import annotations

import math

import pytest

from simulator.errors import InputError
from simulator.predict import layout_of, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.load import STREAMED, TEXT
from simulator.reading.service.scenario import ServiceReader
from simulator.results.metrics import service_figures
from simulator.results.serving import ServicePrediction
from simulator.schema.serving import Routing, Service
from simulator.serving.fleet import Clients
from simulator.serving.fleet import run as run_fleet
from simulator.serving.layout import Wire
from simulator.serving.load import Requests
from tests.support.serving import MadePass, fleet, settings


def service(name: str, *overrides: str) -> Service:
    """A shipped service with some settings."""
    return ServiceReader(chain_of(name), name, overrides=overrides).read({})


def predicted(name: str, *overrides: str) -> ServicePrediction:
    """The same, without intervals."""
    return predict_service(service(name, *overrides), intervals=False)


def test_requests_of_a_machine_come_one_after_the_other() -> None:
    """Ten tokens of 10 ms each take 0.1 s; those of another machine do not wait for them."""
    clients = Clients(Wire(prompt_token=0.01, token=0.0, flow=0.01), replicas=2.0)
    assert clients.receive(0, 10, 0.0) == pytest.approx(0.1)
    assert clients.receive(1, 10, 0.0) == pytest.approx(0.2)
    assert clients.receive(2, 10, 0.0) == pytest.approx(0.1)
    assert clients.receive(0, 10, 5.0) == pytest.approx(5.1)


def test_a_connection_of_its_own_is_slower_than_all_cards_together() -> None:
    """A request takes as long as its own connection does, while the network takes others."""
    clients = Clients(Wire(prompt_token=0.01, token=0.0, flow=0.05), replicas=1.0)
    assert [clients.receive(0, 10, 0.0) for _ in range(2)] == pytest.approx([0.5, 0.5])
    assert clients.busy == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("prompt", "token", "share"), [(0.02, 0.0, 1.0), (0.002, 0.0, 0.18), (0.0, 0.0055, 0.5)]
)
def test_the_busier_direction_counts(prompt: float, token: float, share: float) -> None:
    """A hundred requests of a token each, at 11 ms on one replica: what the network takes of it."""
    requests = Requests([1] * 100, [1] * 100, [0.0] * 100)
    made = fleet(requests, MadePass(fixed=0.011), settings(sequences=1), 1, Routing.ROUND_ROBIN)
    made.clients = Clients(Wire(prompt_token=prompt, token=token, flow=prompt), replicas=1.0)
    counts = run_fleet(made, requests)
    assert made.clients.share(requests, counts) == pytest.approx(share, rel=0.01)
    assert counts.end == pytest.approx(max(prompt * 100 + 0.011, prompt + 1.1), rel=1e-9)


def test_bytes_follow_from_the_file_or_from_what_is_usual() -> None:
    """Text and streamed tokens, what a model takes in, or what the file says."""
    chat = service("llama3-8b-chat-h100").load.traffic
    assert (chat.prompt_token, chat.token) == (TEXT, STREAMED)
    given = service("llama3-8b-chat-h100", "load.request_bytes=1155 kB", "load.answer_bytes=211 B")
    assert given.load.traffic.prompt_token == pytest.approx(1000.0)
    assert given.load.traffic.token == pytest.approx(1.0)
    bert = service("embeddings-bert")
    assert bert.load.traffic.prompt_token == bert.model.input_bytes > 0.0
    assert any("load.request_bytes not given" in one.what for one in bert.notes)
    assert not any("load.request_bytes" in one.what for one in given.notes)
    bulk = service("nightly-summaries").load.traffic
    assert (bulk.prompt_token, bulk.token) == (0.0, 0.0)


def test_pictures_of_cameras_are_bytes_over_the_rate_of_the_network() -> None:
    """Thirty-two cameras send 160 pictures of 99 kB a second."""
    found = predicted("cameras-32")
    network = found.service.group.host.network
    assert network is not None
    expected = 160.0 * 99e3 / network.bandwidth
    assert service_figures(found)["utilization.network"] == pytest.approx(expected, rel=0.02)


def test_a_network_that_is_too_slow_is_where_a_service_saturates() -> None:
    """Requests of 20 MB reach no more than its bytes allow, however few the device can take."""
    name, large = "image-classifier-t4", ("load.request_bytes=20 MB", "load.rate=100 /s")
    one = service(name, *large)
    network = one.group.host.network
    assert network is not None
    wire = layout_of(one).wire
    assert wire is not None
    assert wire.most(one.load) == pytest.approx(network.bandwidth / 20e6)
    found = predict_service(one)
    assert found.saturation is not None
    assert found.saturation.request_rate == pytest.approx(network.bandwidth / 20e6)
    assert any("network limits the rate" in text for text in found.warnings)
    band = found.interval["saturation.requests_per_s"]
    assert band["p10"] == pytest.approx(band["p90"])
    near = predicted(name, large[0], f"load.rate={0.9 * found.saturation.request_rate} /s")
    assert service_figures(near)["utilization.network"] == pytest.approx(0.9, rel=0.05)
    assert near.answered is not None
    assert near.answered.end_to_end.mean > 20e6 / network.bandwidth


def test_two_machines_carry_twice_as_much() -> None:
    """Each has its own network: the same load keeps each half as busy."""
    one, two = (
        service_figures(predicted("cameras-32", f"hardware.count={count}"))["utilization.network"]
        or 0.0
        for count in (1, 2)
    )
    assert two == pytest.approx(one / 2.0, rel=0.02)


def test_prompts_on_replicas_of_their_own_are_sent_to_these() -> None:
    """What goes between both kinds over NVLink leaves the machines' network to clients."""
    shares = service_figures(predicted("qwen3-235b-h200-split"))
    assert 0.0 < (shares["utilization.network"] or 0.0) < 0.001


def test_nothing_is_sent_where_no_network_is_known() -> None:
    """A machine whose network nobody states has no such resource."""
    found = service("llama3-8b-chat-h100")
    assert found.group.host.network is None
    assert layout_of(found).wire is None
    assert Wire(prompt_token=0.0, token=0.0, flow=0.0).most(found.load) == math.inf


def test_requests_that_wait_from_the_start_come_from_no_client() -> None:
    """Their bytes mean nothing."""
    with pytest.raises(InputError, match="request_bytes: means nothing with at-once arrivals"):
        service("nightly-summaries", "load.request_bytes=1 kB")
