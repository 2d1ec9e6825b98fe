"""A machine that is bought in a way that its profile has no price for."""

import pytest

from simulator.errors import InputError
from simulator.reading.merge_documents import chain_of
from simulator.reading.scenario import load_scenario
from simulator.reading.service.scenario import ServiceReader

CHAT = "llama3-8b-chat-h100"


def _service(*overrides: str) -> ServiceReader:
    """Reads a shipped service with some settings changed."""
    return ServiceReader(chain_of(CHAT), CHAT, overrides=overrides)


def test_a_purchase_without_a_price_is_refused() -> None:
    """The message lists the prices that the machine has."""
    with pytest.raises(InputError, match=r"reserved-3y.*it has on-demand in us"):
        load_scenario("resnet50-imagenet-p4d", overrides=("cost.purchase=reserved-3y",))


def test_a_region_without_a_price_is_refused() -> None:
    """A region is looked up as it is written."""
    with pytest.raises(InputError, match="on-demand in the-moon"):
        load_scenario("resnet50-imagenet-p4d", overrides=("cost.region=the-moon",))


def test_a_stated_price_needs_no_listed_one() -> None:
    """With cost.price of one's own the profile's prices do not matter."""
    asked = ("cost.purchase=reserved-3y", "cost.price=$10/h")
    assert load_scenario("resnet50-imagenet-p4d", overrides=asked).cost.price is not None


def test_a_machine_of_ones_own_needs_no_listed_price() -> None:
    """What is owned is not rented: its profile's prices do not matter."""
    asked = ("cost.purchase=owned", "owned.capex=$100000", "energy.tariff=$0.1/kWh")
    assert load_scenario("resnet50-imagenet-p4d", overrides=asked).cost.price is None


def test_machines_of_a_service_are_owned_at_a_price_that_is_known() -> None:
    """Where the profile has none it is asked for, and a stated one does."""
    reader = _service("cost.purchase=owned")
    with pytest.raises(InputError, match=r"cost\.purchase: finds no price to buy.*owned\.capex"):
        reader.read({})
    owned = reader.read({"owned.capex": "$40000"}).owned
    assert owned is not None
    assert owned.capex == 40_000.0
    assert reader.read({"cost.price": "$2/h"}).owned is None


def test_a_service_is_asked_for_a_price_that_there_is() -> None:
    """A region without a price is refused as for a job."""
    reader = _service("cost.region=the-moon")
    with pytest.raises(InputError, match="on-demand in the-moon"):
        reader.read({})


@pytest.mark.parametrize(
    ("word", "meant"),
    [("buy", "owned"), ("Bought", "owned"), ("rent", "on-demand"), ("preemptible", "spot")],
)
def test_other_words_for_a_way_to_buy_are_understood(word: str, meant: str) -> None:
    """People write what they do and what their cloud calls it; both mean one of our names."""
    found = load_scenario("resnet50-imagenet-p4d", overrides=(f"cost.purchase={word}",))
    assert found.cost.purchase.value == meant
