"""Paths between cards without links of their own: by default, as stated, and refused ones."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.physics.collectives import pace_inside
from simulator.pipeline.stages.communication import bucket_shares, gradient_bytes
from simulator.predict import predict, simulation_input
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.schema.machines import Collective, Host, PeerPath, PeerTopology
from simulator.schema.scenario import Scenario

PAIR = ("hardware.machine=node/workstation", "hardware.gpus=2", "hardware.count=1")
ALONE = ("hardware.machine=node/workstation", "hardware.gpus=1", "hardware.count=1")
TRAINS = (
    "model.name=gpt2",
    "model.step_time=510 ms",
    "model.step_time_batch=4",
    "train.batch_size=4",
    "train.precision=fp32",
    "train.optimizer=adam",
    "data.layout=tokens",
    "data.samples=100000",
    "data.bytes_per_sample=4096 B",
    "input.workers=2",
    "software.framework=pytorch",
)
EMBEDDING = 50257 * 768 * 4.0
"""Bytes of the gradients of GPT-2's token embedding in fp32: 154 MB."""


def job(tmp_path_factory: pytest.TempPathFactory, *settings: str) -> Scenario:
    """Return GPT-2 in data parallel; 4 x 1024 tokens take one card 510 ms."""
    path = tmp_path_factory.mktemp("peers") / "job.toml"
    path.write_text('schema = 1\nname = "job"\n', encoding="utf-8")
    return load_scenario(str(path), overrides=[*TRAINS, *settings])


def host(name: str) -> Host:
    """Return a machine of the catalogue."""
    return Catalogue.default().host(name)


def test_geforce_cards_go_through_host_memory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """They have no peer access, so all-reduces reach the 4.6 GB/s of the staged path."""
    machine = job(tmp_path_factory, *PAIR, "hardware.gpu=rtx-3090").cluster.trainers.host
    assert machine.peer_path is PeerPath.HOST
    _, rate = pace_inside(Collective.ALL_REDUCE, 1e9, 2, machine)
    assert float(rate) == pytest.approx(4.6e9)


def test_data_centre_cards_copy_to_each_other() -> None:
    """Cards with peer access below one socket, or with measured collectives, need no buffer."""
    for name in ("instance/aws/g5.12xlarge", "node/asus-esc8000a-h100-pcie"):
        machine = host(name)
        assert machine.peers_by_default(machine.gpu_count) is PeerPath.P2P
    assert host("node/dgx-h100").peers_by_default(8) is PeerPath.NVLINK


def test_tpus_exchange_over_links_of_their_own() -> None:
    """3,200 Gb/s a chip of v6e are 400 GB/s one way (Google's page has 800 GB/s both ways)."""
    machine = host("instance/gcp/ct6e-standard-8t")
    assert machine.peers_by_default(8) is PeerPath.NVLINK
    assert machine.peer_link is not None
    assert machine.peer_link.peak == pytest.approx(3200e9 / 8)


def test_cards_below_several_sockets_go_through_host_memory() -> None:
    """On PCIe 3 no collective of 8 cards was measured: those of two sockets are staged."""
    settings = ["hardware.machine=instance/aws/p4d.24xlarge", "hardware.gpu=t4"]
    both = load_scenario("resnet50-imagenet-p4d", overrides=settings).cluster.trainers.host
    one = load_scenario("resnet50-imagenet-p4d", overrides=[*settings, "hardware.gpus=4"])
    assert set(both.gpu_sockets) == {0, 1}
    assert both.peer_path is PeerPath.HOST
    assert one.cluster.trainers.host.peer_path is PeerPath.P2P


def test_what_the_file_states_holds(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A bridge, copies from card to card and the staged path, on the same two cards."""
    hosts = {
        path: job(
            tmp_path_factory, *PAIR, "hardware.gpu=rtx-3090", f"hardware.peer_link={path}"
        ).cluster.trainers.host
        for path in PeerPath
    }
    assert {path: one.peer_path for path, one in hosts.items()} == {p: p for p in PeerPath}
    bridged = hosts[PeerPath.NVLINK]
    assert bridged.peer_link == Catalogue.default().link("link/nvlink3-bridge")
    assert bridged.peer_topology is PeerTopology.SWITCHED


def test_a_machine_of_two_cards_takes_their_bridge() -> None:
    """Linked cards that name no link of their own are joined by their bridge."""
    found = host("instance/azure/Standard_NC80adis_H100_v5")
    assert found.peer_link == Catalogue.default().link("link/nvlink4-bridge")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("hardware.gpu=rtx-4090", "hardware.gpus=2"), "no bridge of gpu/rtx-4090 is known"),
        (("hardware.gpu=rtx-3090", "hardware.gpus=4"), "joins 2 cards, and 4 of gpu/rtx-3090"),
    ],
)
def test_a_bridge_that_cannot_be_is_refused(
    tmp_path_factory: pytest.TempPathFactory, settings: tuple[str, ...], said: str
) -> None:
    """A card without one, and more cards than a bridge joins."""
    with pytest.raises(InputError, match=said):
        job(tmp_path_factory, *PAIR, *settings, "hardware.peer_link=nvlink")


def test_a_step_through_host_memory_by_hand(tmp_path_factory: pytest.TempPathFactory) -> None:
    """124.4 million gradients in fp32 take 498 MB / 4.6 GB/s = 108 ms, of which none is hidden.

    The published step of two cards without NVLink is 1.284 times that of one (655 ms, within the
    80% interval); with it, it is as long.
    """
    pair = job(tmp_path_factory, *PAIR, "hardware.gpu=rtx-3090")
    found = predict(pair)
    exchanged = float(gradient_bytes(pair)) / 4.6e9
    assert exchanged == pytest.approx(0.108, abs=0.001)
    assert found.timing.step_time.mean == pytest.approx(0.510 + exchanged, rel=0.002)
    band = found.interval["step_time_s.mean"]
    assert band["p10"] < 1.284 * 0.510 < band["p90"]
    bridged = job(tmp_path_factory, *PAIR, "hardware.gpu=rtx-3090", "hardware.peer_link=nvlink")
    single = predict(job(tmp_path_factory, *ALONE, "hardware.gpu=rtx-3090"))
    linked = predict(bridged).timing.step_time.mean / single.timing.step_time.mean
    assert 0.99 < linked < 1.02


def test_the_interval_of_an_exchange_over_pcie_is_a_factor_of_four(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The exposed exchange of a step spans x4 from its 10% to its 90% quantile.

    The step is that of one card and the exchange, so that what the step is longer than 510 ms has
    the quotient of the rate's quantiles; the device's own 3% blur it a little.
    """
    found = predict(job(tmp_path_factory, *PAIR, "hardware.gpu=rtx-3090"))
    band = found.interval["step_time_s.mean"]
    assert (band["p90"] - 0.510) / (band["p10"] - 0.510) > 3.5


def test_the_last_bucket_holds_the_whole_embedding(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A parameter is not split over buckets: 154 of 498 MB become ready last, not 25 MB."""
    bridged = job(tmp_path_factory, *PAIR, "hardware.gpu=rtx-3090", "hardware.peer_link=nvlink")
    shares = bucket_shares(bridged)
    assert sum(shares) == pytest.approx(1.0)
    assert shares[-1] == pytest.approx(EMBEDDING / float(gradient_bytes(bridged)))


def test_a_staged_copy_uses_host_memory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A buffer in host memory is written and read: twice the bytes that a card sends."""
    loads = {}
    for path in (PeerPath.HOST, PeerPath.P2P):
        settings = ("hardware.gpu=a10g", "hardware.memory_bandwidth=100 GB/s")
        stated = (*PAIR, *settings, f"hardware.peer_link={path}")
        inputs = simulation_input(job(tmp_path_factory, *stated))
        usage = predict(inputs.scenario).timing.usage
        loads[path] = usage["host_memory"].mean * predict(inputs.scenario).timing.step_time.mean
    sent = 2 * float(gradient_bytes(job(tmp_path_factory, *PAIR, "hardware.gpu=a10g")))
    assert (loads[PeerPath.HOST] - loads[PeerPath.P2P]) * 100e9 == pytest.approx(2 * sent, rel=0.02)
