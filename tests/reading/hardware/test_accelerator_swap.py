"""Another accelerator in a machine's slots, through the door of scenario files."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.schema.machines import Host, PeerTopology
from simulator.schema.scenario import Scenario

SCENARIO = "resnet50-imagenet-p4d"


def load(*overrides: str, name: str = SCENARIO) -> Scenario:
    """A shipped scenario with some keys set."""
    return load_scenario(name, overrides=overrides)


def machine(*overrides: str, name: str = SCENARIO) -> Host:
    """The machine that trains in it."""
    return load(*overrides, name=name).cluster.trainers.host


def test_only_the_accelerator_changes() -> None:
    """Processors, RAM, network, drives and layout stay those of the machine."""
    before, after = machine(), machine("hardware.gpu=gpu/h100-sxm5-80gb")
    assert (after.gpu.name if after.gpu else "") == "gpu/h100-sxm5-80gb"
    for name in ("name", "cpu", "ram", "network", "local_storage", "switches", "gpu_count"):
        assert getattr(after, name) == getattr(before, name)


def test_the_slot_or_the_card_sets_the_pace_of_its_link() -> None:
    """A faster card runs at the slot's rate, a slower one at its own."""
    before = machine().host_link
    faster, slower = machine("hardware.gpu=h100-sxm5-80gb"), machine("hardware.gpu=v100-sxm2-16gb")
    assert before is not None
    assert faster.host_link == before
    assert slower.host_link is not None
    assert slower.host_link.rate < before.rate


def test_links_between_accelerators_come_with_them() -> None:
    """Cards with links of their own bring them, cards without go over PCIe."""
    linked, bare = machine("hardware.gpu=h100-sxm5-80gb"), machine("hardware.gpu=l40s")
    assert linked.peer_link == Catalogue.default().link("link/nvlink4")
    assert (bare.peer_link, bare.peer_topology) == (None, PeerTopology.PCIE)


def test_a_machine_nobody_sells_has_no_price() -> None:
    """The rent of the machine as sold says nothing of the changed one; a stated price does."""
    assert not machine("hardware.gpu=t4").prices
    stated = load("hardware.gpu=t4", "cost.price=$9/h")
    assert stated.cost.price == pytest.approx(9.0 / 3600.0)


def test_its_own_accelerator_changes_nothing_but_the_price() -> None:
    """Naming the accelerator that is there is the machine as it is."""
    before, after = load(), load("hardware.gpu=gpu/a100-sxm4-40gb")
    for name in ("gpu", "host_link", "peer_link", "peer_topology"):
        assert getattr(after.cluster.trainers.host, name) == getattr(
            before.cluster.trainers.host, name
        )
    assert after.job.software == before.job.software


@pytest.mark.parametrize(
    ("name", "overrides", "said"),
    [
        (SCENARIO, ("hardware.gpu=gpu/h100",), "there is no accelerator 'gpu/h100'; did you mean"),
        (SCENARIO, ("hardware.gpu=inferentia1",), "which doesn't train"),
        (
            SCENARIO,
            ("hardware.gpu=v100-sxm2-16gb", "train.precision=bf16"),
            "is not a format of gpu/v100-sxm2-16gb",
        ),
        ("svm-cpu-only", ("hardware.gpu=t4",), "replaces accelerators, and"),
    ],
)
def test_what_cannot_be_is_refused(name: str, overrides: tuple[str, ...], said: str) -> None:
    """Unknown names, cards that don't train or lack the precision, machines without any."""
    with pytest.raises(InputError) as refused:
        load(*overrides, name=name)
    assert said in str(refused.value)
