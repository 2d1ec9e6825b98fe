"""Another machine comes as it is rented; the scenario's own one as the scenario describes it."""

from __future__ import annotations

import pickle

import pytest

from simulator.reading.search.candidates import CandidateReader, RentingReader
from simulator.schema.scenario import Scenario

OTHER = {"hardware.machine": "instance/aws/p4d.24xlarge"}
STATED = ("hardware.gpu=rtx-3090", "hardware.gpus=2", "hardware.ram=128 GB", "cost.price=$1/h")


@pytest.fixture(scope="module")
def reader() -> RentingReader:
    """A box of one's own with two cards, put in place of a shipped scenario's machine."""
    overrides = ("hardware.machine=node/workstation", *STATED)
    return RentingReader(CandidateReader("gpt2-tokens-h100", overrides=overrides))


def cards(scenario: Scenario) -> tuple[str, int]:
    """What accelerators a machine has, and how many are used."""
    gpu, group = scenario.cluster.trainers.host.gpu, scenario.cluster.trainers
    return ("" if gpu is None else gpu.name, group.gpus_per_host)


def test_the_own_machine_is_as_stated(reader: RentingReader) -> None:
    """Whether it is named again or not."""
    for settings in ({}, {"hardware.machine": "workstation"}, {"train.batch_size": 8}):
        scenario = reader.read(settings).scenario
        assert cards(scenario) == ("gpu/rtx-3090", 2)
        assert scenario.cost.price is not None


def test_another_machine_is_as_rented(reader: RentingReader) -> None:
    """Its own accelerators, all of them, its own RAM, and its listed price."""
    for scenario in (reader.read(OTHER).scenario, reader.without_uncertainty(OTHER)):
        assert cards(scenario) == ("gpu/a100-sxm4-40gb", 8)
        assert scenario.cluster.trainers.host.ram > 1e12
        assert scenario.cost.price is None


def test_many_at_once_keep_their_order(reader: RentingReader) -> None:
    """Machines of both kinds are read in one call, also in another process."""
    asked = [OTHER, {"train.batch_size": 8}, {**OTHER, "train.batch_size": 4}]
    for one in (reader, pickle.loads(pickle.dumps(reader))):  # noqa: S301 - its own
        found = [
            getattr(loaded, "scenario", None) for loaded in one.read_without_uncertainty(asked)
        ]
        assert [cards(scenario)[1] for scenario in found if scenario] == [8, 2, 8]
        assert [scenario.job.train.batch_size for scenario in found[1:] if scenario] == [8, 4]


def test_a_machine_that_is_owned_is_rented_elsewhere() -> None:
    """Nobody owns the machines that a search offers."""
    plain = CandidateReader("gpt2-tokens-h100", overrides=("cost.purchase=owned",))
    assert str(RentingReader(plain).read(OTHER).scenario.cost.purchase) != "owned"
