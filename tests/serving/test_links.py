"""Utilization of links: what tokens, keys and values, and pictures send over them."""

from __future__ import annotations

import pytest

from simulator.physics.forward_pass import ScaledPass, SpeculativePass
from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.report.document import Format, render
from simulator.report.prediction.service import document
from simulator.results.metrics import service_figures
from simulator.results.serving import ServicePrediction
from simulator.schema.machines import LinkKind
from simulator.schema.serving import Speculation
from simulator.serving.fleet import Line, links_of, links_of_both
from simulator.serving.layout import Layout, Side, Transfer
from simulator.serving.load import Requests
from simulator.serving.replica import Pool
from simulator.serving.scheduler import Reuse
from tests.support.serving import MadePass, run, settings

CARRIED = 1e-4
"""Time of a token on a link [s]."""


def predicted(name: str, *overrides: str) -> ServicePrediction:
    """A shipped service with some settings."""
    reader = ServiceReader(chain_of(name), name, overrides=overrides)
    return predict_service(reader.read({}), intervals=False)


def side(work: MadePass) -> Side:
    """Replicas with a made forward pass."""
    pool = Pool(items={}, capacity=0.0, blocks=10**8, block=16)
    return Side(serving=settings(), work=work, pool=pool, reuse=Reuse())


def test_a_link_is_busy_for_as_long_as_its_tokens_take() -> None:
    """A prompt of 100 tokens and 10 more in iterations of 10 ms: 0.11 s end, 109 tokens pass."""
    work = MadePass(fixed=0.01, carried=CARRIED)
    counts = run(Requests([100], [10], [0.0]), work, settings())
    assert counts.end == pytest.approx(0.1)
    assert links_of(side(work), counts) == {"nvlink": pytest.approx(109 * CARRIED / 0.1)}
    assert links_of(side(MadePass(fixed=0.01)), counts) == {}


def test_a_slower_pass_sends_the_same() -> None:
    """An uncertainty of iterations moves no bytes more."""
    plain = MadePass(fixed=0.01, carried=CARRIED)
    assert ScaledPass(plain, 2.0).link_seconds(5, 7) == plain.link_seconds(5, 7)


def test_guesses_send_more() -> None:
    """Three guesses of 3% each: four rows are checked, and nine per cent of a pass makes them."""
    guessed = SpeculativePass(
        MadePass(carried=CARRIED), Speculation(drafts=3, accepted=2.0, draft=0.03)
    )
    assert guessed.link_seconds(10, 100) == {"nvlink": pytest.approx((10 + 409) * CARRIED)}


@pytest.mark.parametrize("kind", [LinkKind.NVLINK, LinkKind.NETWORK])
def test_keys_and_values_take_their_own_link(kind: LinkKind) -> None:
    """Within a machine they share the links of replicas for prompts, else they take the network."""
    work = MadePass(fixed=0.01, carried=CARRIED)
    counts = run(Requests([100], [10], [0.0]), work, settings())
    transfer = Transfer(link=kind, senders=2, token=2e-4)
    line = Line(transfer)
    line.send(0, 100, 0, 0.0)
    layout = Layout(main=side(work), prompts=side(work), transfer=transfer)
    found = links_of_both(layout, counts, counts, line)
    own, sent = 109 * CARRIED / 0.1, 100 * 2e-4 / (2 * 0.1)
    beside = sent if kind is LinkKind.NVLINK else 0.0
    expected = {"nvlink_of_prompts": own + beside, "nvlink_of_answers": own}
    if kind is LinkKind.NETWORK:
        expected["network"] = sent
    assert found == pytest.approx(expected)


def test_all_reduces_of_a_shipped_service() -> None:
    """Two all-reduces a layer: bytes of a token over the link's share, times tokens a second."""
    found = predicted("llama3-70b-service")
    told, service = found.answered, found.service
    link, figures = service.group.host.peer_link, service.figures
    assert told is not None
    assert link is not None
    assert figures is not None
    ranks = service.serving.tensor
    sent = 80 * 2 * (2.0 * (ranks - 1) / ranks) * 8192 * 2.0
    tokens = (told.prompt_rate + told.output_rate) / service.serving.replicas
    expected = tokens * sent / (link.peak * figures.link)
    # The run counts its beginning and its end, the rates leave both out.
    assert service_figures(found)["utilization.nvlink"] == pytest.approx(expected, rel=0.1)


def test_cards_without_links_of_their_own_use_those_to_the_host() -> None:
    """Tensor parallelism over PCIe."""
    found = predicted(
        "llama3-8b-chat-l4", "hardware.machine=instance/aws/g6.12xlarge", "serving.tensor=4"
    )
    assert 0.0 < (service_figures(found)["utilization.pcie"] or 0.0) < 1.0
    assert "links" in render(document(found), Format.TABLE)


def test_a_device_alone_has_no_link() -> None:
    """Nothing is told of links that nothing goes over."""
    found = service_figures(predicted("llama3-8b-chat-h100"))
    assert not [name for name in found if name.startswith(("utilization.nvlink", "utilization.p"))]


def test_pictures_go_over_the_link_to_the_host() -> None:
    """So many bytes a second over its rate."""
    found = predicted("image-classifier-t4")
    told, one = found.answered, found.service.one_pass
    assert told is not None
    assert one is not None
    model, rate = one.job.job.model, found.service.group.host.device_rate
    assert model is not None
    assert rate is not None
    expected = told.request_rate * model.input_bytes / rate
    assert service_figures(found)["utilization.pcie"] == pytest.approx(expected, rel=0.1)
