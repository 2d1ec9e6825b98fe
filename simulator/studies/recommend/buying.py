"""Buying what was recommended: the same accelerators in machines of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simulator.errors import PlanError
from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.results.prediction import Prediction
from simulator.schema.goal import Plain
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.price import Purchase
from simulator.studies.changes.rent_or_buy import RentOrBuy, rent_or_buy
from simulator.studies.recommend.choice import Choice
from simulator.units import Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Buying:
    """A machine that could be bought in place of a rented one, and from which use on that pays.

    `date` is when its price `capex` was stated.
    """

    machine: str
    count: int
    capex: Usd
    date: str
    even: RentOrBuy


def buying(
    reader: CandidateReader, winner: Choice, catalogue: Catalogue, seed: int = 0
) -> Buying | None:
    """When buying is as cheap as renting the best choice.

    Parameters
    ----------
    reader : CandidateReader
        Of the scenario.
    winner : Choice
        What is rented.
    catalogue : Catalogue
        Machines with prices to buy.
    seed : int
        Of both predictions.

    Returns
    -------
    Buying or None
        None where the choice is owned, or no machine with as many of the same accelerators has a
        known price to buy, or the job does not run on it as it is.
    """
    scenario = reader.read(winner.settings).scenario
    trainers = scenario.cluster.trainers
    if scenario.cost.purchase is Purchase.OWNED or trainers.host.gpu is None:
        return None
    host = _cheapest(catalogue, trainers.host)
    if host is None or host.capex is None:
        return None
    settings: dict[str, Plain] = {
        **winner.settings,
        "hardware.machine": host.name,
        "hardware.count": trainers.count,
        "cost.purchase": Purchase.OWNED.value,
    }
    try:
        owned = _predicted(reader, settings, seed)
        even = rent_or_buy(owned, _predicted(reader, winner.settings, seed))
    except PlanError:
        return None
    if even is None:
        return None
    source = host.sources.get("capex")
    return Buying(
        machine=host.name,
        count=trainers.count,
        capex=host.capex,
        date="undated" if source is None else source.date,
        even=even,
    )


def _predicted(reader: CandidateReader, settings: Mapping[str, Plain], seed: int) -> Prediction:
    """The undisturbed run, without intervals."""
    scenario = replace(reader.read(settings).scenario, interruptions=None)
    return predict(scenario, seed=seed, intervals=False)


def _cheapest(catalogue: Catalogue, rented: Host) -> Host | None:
    """The cheapest machine to buy with as many accelerators of the same kind."""
    hosts = (catalogue.host(name) for name in catalogue.names("node"))
    alike = [
        (host.capex, host)
        for host in hosts
        if host.capex is not None
        and host.gpu is not None
        and rented.gpu is not None
        and host.gpu.name == rented.gpu.name
        and host.gpu_count == rented.gpu_count
    ]
    return min(alike, key=lambda pair: pair[0])[1] if alike else None
