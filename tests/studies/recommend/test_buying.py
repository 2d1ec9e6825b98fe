"""Buying what was recommended."""

from __future__ import annotations

from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader, RentingReader
from simulator.results.cost import dated_prices
from simulator.schema.goal import Plain
from simulator.studies.purchase import buying_option, rent_or_buy
from tests.studies.recommend.made import choice

READER = RentingReader(CandidateReader("llama3-8b-fsdp"))
RENTED: dict[str, Plain] = {
    "hardware.machine": "instance/aws/p5.48xlarge",
    "hardware.storage": "storage/ebs-gp3",
}


def test_as_many_of_the_same_accelerators_are_bought() -> None:
    """A p5.48xlarge stands beside a machine with eight H100 SXM, at the break-even of compare."""
    found = buying_option(READER, choice(0, 1.0, 1.0, settings=RENTED), Catalogue.default())
    assert found is not None
    bought = {"hardware.machine": found.machine, "cost.purchase": "owned"}
    owned = READER.read({**RENTED, **bought}).scenario
    rented = READER.read(RENTED).scenario
    assert owned.cluster.trainers.host.gpu_count == rented.cluster.trainers.host.gpu_count
    owned, rented = (predict(one, intervals=False) for one in (owned, rented))
    assert found.even == rent_or_buy(owned, rented)
    assert 0.0 < found.even.utilization < 1.0
    assert found.date


def test_what_nobody_states_a_price_of_is_not_bought() -> None:
    """No price to buy is known of machines with A100; an owned machine has nothing to beat."""
    catalogue = Catalogue.default()
    older = {**RENTED, "hardware.machine": "instance/aws/p4d.24xlarge"}
    assert buying_option(READER, choice(0, 1.0, 1.0, settings=older), catalogue) is None
    owned = {"hardware.machine": "node/dgx-h100", "cost.purchase": "owned"}
    assert buying_option(READER, choice(0, 1.0, 1.0, settings=owned), catalogue) is None


def test_prices_carry_their_dates() -> None:
    """The machine's and the store's, each with a year."""
    told = list(dated_prices(READER.read(RENTED).scenario))
    assert len(told) == 2
    assert all(", 20" in text for text in told)
