"""Purchase of machines: on demand, reserved, spot or both; break-even of renting and buying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from simulator.equations.cost import break_even_time, break_even_utilization
from simulator.errors import InputError, PlanError
from simulator.long_run.attempts import Array, simulate_runs
from simulator.long_run.forecast import (
    Paid,
    RunSimulation,
    finish_range,
    paid_for,
    simulation_of,
    summary,
)
from simulator.predict import predict, rates_with_fewer
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.long_run.interruptions import cards_of, interruptions_of
from simulator.reading.search.candidates import CandidateReader
from simulator.records import dataclass
from simulator.results.cost import bill
from simulator.results.energy import Standing, is_owned, missing, standing
from simulator.results.prediction import Outlook, Prediction, Way
from simulator.schema.cost import MOST_IN_BLOCKS, Purchase
from simulator.schema.goal import Plain
from simulator.schema.long_run import Interruptions, Terms
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.studies.levers.machines import owned_machines
from simulator.studies.recommend.ranking import Choice
from simulator.units import Seconds, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class RentOrBuy:
    """Break-even utilization from which owning is cheaper than renting for the same work.

    `utilization` is the share of the time in which the owned machines must be busy; above 1 renting
    is always cheaper. `planned` is the utilization in the scenario, and `payback` the time after
    which the purchase price is recovered at it [s]; infinite if never.
    """

    utilization: float
    planned: float
    payback: Seconds


def rent_or_buy(owned: Prediction, rented: Prediction) -> RentOrBuy | None:
    """Compare owned machines with rented machines for the same job.

    Parameters
    ----------
    owned, rented : Prediction
        Predictions of the same work; machines and run time may differ.

    Returns
    -------
    RentOrBuy or None
        None if not all machines of `owned` are owned, those of `rented` are, or a price is unknown.
    """
    costs, plan = _standing(owned), owned.scenario.owned
    rent, drawn = rented.cost.for_machines, owned.cost.electricity
    if rented.scenario.cost.purchase is Purchase.OWNED or plan is None:
        return None
    if costs is None or rent is None or drawn is None:
        return None
    time = owned.cost.time_to_train
    # Electricity at rest is paid all the time: work adds what is drawn above it.
    at_rest = sum(count * float(one.electricity.value) for count, one in costs)
    spared = rent / time - (drawn / time - at_rest)
    return RentOrBuy(
        utilization=float(break_even_utilization(sum(n * one.price for n, one in costs), spared)),
        planned=plan.utilization,
        payback=float(
            break_even_time(
                sum(count * one.capex for count, one in costs),
                plan.utilization * spared,
                sum(count * one.running for count, one in costs),
            )
        ),
    )


def cheapest_rent(owned: Prediction, others: Sequence[Prediction]) -> int | None:
    """Return the index of the cheapest rented prediction; None if none can be compared."""
    found = {
        number: even.utilization
        for number, other in enumerate(others)
        if (even := rent_or_buy(owned, other)) is not None
    }
    return max(found, key=lambda number: found[number]) if found else None


def _standing(prediction: Prediction) -> list[tuple[int, Standing]] | None:
    """Return for each group its number of machines and the fixed costs of one; None if unknown."""
    scenario, found = prediction.scenario, list[tuple[int, Standing]]()
    for group in scenario.cluster.groups:
        one = standing(scenario, group) if is_owned(scenario, group) else None
        if one is None:
            return None
        found.append((group.count, one))
    return found


PURCHASES: Final = (*((one, False) for one in Purchase), (Purchase.SPOT, True))
"""All ways to buy, and whether on-demand machines replace missing spot ones."""
NO_PRICE: Final = "no price is known"
NO_DEMAND: Final = "no price on demand is known"
TOO_MANY: Final = f"no more than {MOST_IN_BLOCKS} machines at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Purchase:
    """A way to buy machines with its simulated runs and bills, before the comparison."""

    way: Way
    simulation: RunSimulation | None = None
    paid: Paid | None = None


def long_run(
    reader: CandidateReader,
    *,
    terms: Terms,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> tuple[Prediction, Outlook]:
    """Return the long run of a scenario, with the ways to buy its machines.

    Parameters
    ----------
    reader : CandidateReader
        Reads the scenario.
    terms : Terms
        Number of simulated runs, and a deadline and a budget that override the scenario's.
    seed : int
        Seed of all random numbers; all ways to buy get the same ones.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    InputError
        With all mistakes of the scenario.
    """
    asked = reader.read({}).scenario
    told = _interruptions(reader, asked, spot=asked.cost.purchase is Purchase.SPOT)
    told = replace(told, terms=_merged_terms(terms, told.terms))
    prediction = predict(replace(asked, interruptions=None), seed=seed)
    tries, tried = _Purchases(reader, prediction, told, seed), list[_Purchase]()
    tell = progress or (lambda _: None)
    found = tries.outlook()
    for one in PURCHASES:
        tell(tries.done)
        tried.append(tries.way(*one))
    return prediction, replace(found, ways=_against_each_other(tried))


def with_ways(prediction: Prediction, reader: CandidateReader) -> Prediction:
    """Add a comparison of the ways to buy machines to a prediction of a long run.

    `reader` reads its scenario. Simulated runs and checkpoints of the prediction are reused.
    """
    found, told = prediction.outlook, prediction.scenario.interruptions
    if found is None or told is None:
        return prediction
    tries = _Purchases(reader, replace(prediction, outlook=None), told, found.seed)
    tries.know(found)
    ways = _against_each_other([tries.way(*one) for one in PURCHASES])
    return replace(prediction, outlook=replace(tries.outlook(), ways=ways))


def _merged_terms(given: Terms, own: Terms) -> Terms:
    """Merge the terms of a request with those of the scenario; the former take precedence."""
    return Terms(
        deadline=own.deadline if given.deadline is None else given.deadline,
        budget=own.budget if given.budget is None else given.budget,
        draws=given.draws,
    )


def _interruptions(reader: CandidateReader, asked: Scenario, *, spot: bool) -> Interruptions:
    trainers = asked.cluster.trainers
    return interruptions_of(
        reader.document(),
        devices=max(1, trainers.gpus_per_host),
        machines=trainers.count if trainers.gpus_per_host else 1,
        spot=spot,
        cards=cards_of(trainers.host),
    )


class _Purchases:
    """One predicted run with its machines bought in several ways; simulated runs are reused."""

    def __init__(
        self, reader: CandidateReader, prediction: Prediction, told: Interruptions, seed: int
    ) -> None:
        self._reader, self._prediction, self._told = reader, prediction, told
        self._seed, self._fewer = seed, rates_with_fewer(prediction, told)
        self._drawn: list[tuple[Interruptions, RunSimulation]] = []
        self._ranges: dict[int, dict[float, tuple[Seconds, Seconds]]] = {}

    @property
    def done(self) -> float:
        """Share of the simulations done: on stable machines, on spot ones, and on both."""
        spot = self._reader.document().value(("spot",)) is not None
        return min(0.95, len(self._drawn) / (3.0 if spot else 1.0))

    def know(self, found: Outlook) -> None:
        """Repeat the simulated runs of a forecast with its checkpoint interval, and cache them."""
        drawn = simulate_runs(found.run, draws=self._told.terms.draws, seed=self._seed)
        simulation = RunSimulation(
            run=found.run, intervals=found.intervals, drawn=drawn, seed=self._seed
        )
        self._drawn.append((self._told, simulation))

    def outlook(self) -> Outlook:
        """Return the forecast of the run with machines bought as the scenario says."""
        found = self._simulation(self._told)
        paid = paid_for(self._prediction, found)
        return self._summary(self._prediction, self._told, found, paid)

    def _summary(
        self, bought: Prediction, told: Interruptions, found: RunSimulation, paid: Paid
    ) -> Outlook:
        if id(found) not in self._ranges:
            self._ranges[id(found)] = finish_range(found)
        return replace(summary(bought, told, found, paid), finish_range=self._ranges[id(found)])

    def way(self, purchase: Purchase, fallback: bool) -> _Purchase:  # noqa: FBT001 - a row of WAYS
        """Return the forecast of the run with its machines bought in another way."""
        bought = self._bought(purchase)
        told = self._at(purchase, fallback=fallback)
        if isinstance(told, str):
            return _Purchase(way=Way(purchase=purchase, fallback=fallback, missing=told))
        found = self._simulation(told)
        paid = paid_for(bought, found)
        way = Way(
            purchase=purchase,
            fallback=fallback,
            outlook=self._summary(bought, told, found, paid),
            missing="" if paid.bills is not None else _unpriced(bought),
        )
        return _Purchase(way=way, simulation=found, paid=paid)

    def _simulation(self, told: Interruptions) -> RunSimulation:
        for known, found in self._drawn:
            if (known.failures, known.outages) == (told.failures, told.outages):
                return found
        draws = told.terms.draws
        more = simulation_of(
            self._prediction, told, draws=draws, seed=self._seed, rates_with_fewer=self._fewer
        )
        self._drawn.append((told, more))
        return more

    def _bought(self, purchase: Purchase) -> Prediction:
        """Return the prediction with the bill of another way to buy.

        A stated price applies only to the scenario's own way to buy.
        """
        scenario = self._prediction.scenario
        if purchase is scenario.cost.purchase:
            return self._prediction
        other = replace(scenario, cost=replace(scenario.cost, purchase=purchase, price=None))
        if purchase is Purchase.OWNED:
            owned = self._reader.less((("cost", "price"),)).without_uncertainty(
                {"cost.purchase": "owned"}
            )
            other = replace(other, owned=owned.owned, energy=owned.energy)
        cost = bill(other, self._prediction.timing)
        return replace(self._prediction, scenario=other, cost=cost)

    def _at(self, purchase: Purchase, *, fallback: bool) -> Interruptions | str:
        """Return the interruptions of machines bought in this way, or why they are unknown."""
        told, groups = self._told, self._prediction.scenario.cluster.groups
        machines = sum(group.count for group in groups)
        if purchase is Purchase.CAPACITY_BLOCK and machines > MOST_IN_BLOCKS:
            return TOO_MANY
        if purchase is not Purchase.SPOT:
            return replace(told, outages=None)
        if told.outages is None:
            try:
                outages = _interruptions(self._reader, self._prediction.scenario, spot=True).outages
            except InputError:
                # A trace that cannot be read is a mistake, not a lack of knowledge.
                if self._reader.document().value(("spot", "trace")) is not None:
                    raise
                return "[spot] does not say when machines can be had"
            told = replace(told, outages=outages)
        if told.outages is None:
            return "[spot] does not say when machines can be had"
        return replace(told, outages=replace(told.outages, fallback=fallback))


def _unpriced(bought: Prediction) -> str:
    if bought.scenario.cost.purchase is Purchase.OWNED:
        return "; ".join(missing(bought.scenario)) or NO_PRICE
    return NO_PRICE if bought.cost.per_second is None else NO_DEMAND


_MIN_COMPARED: Final = 2
"""Minimum number of ways with a bill for a comparison."""


def _against_each_other(tries: Sequence[_Purchase]) -> tuple[Way, ...]:
    """Add to each way the share of simulated runs in which it is cheapest; ties share a run."""
    priced = [
        one.paid.bills for one in tries if one.paid is not None and one.paid.bills is not None
    ]
    if len(priced) < _MIN_COMPARED:
        return tuple(one.way for one in tries)
    least = np.min(priced, axis=0)
    ties = np.sum([np.equal(bills, least) for bills in priced], axis=0)
    return tuple(_held(tries, least, ties))


def _held(tries: Sequence[_Purchase], least: Array, ties: Array) -> Iterator[Way]:
    for one in tries:
        if one.paid is None or one.paid.bills is None:
            yield one.way
            continue
        wins = np.equal(one.paid.bills, least) & np.isfinite(least)
        yield replace(one.way, cheapest=float((wins / ties).mean()))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyingOption:
    """A machine to buy instead of a rented one, with its break-even utilization.

    `date` is the date of its purchase price `capex`.
    """

    machine: str
    count: int
    capex: Usd
    date: str
    even: RentOrBuy


def buying_option(
    reader: CandidateReader, winner: Choice, catalogue: Catalogue, seed: int = 0
) -> BuyingOption | None:
    """Return the cheapest machine to buy instead of the rented one, with its break-even.

    Parameters
    ----------
    reader : CandidateReader
        Reads the scenario with some keys set.
    winner : Choice
        Best choice, with rented machines.
    catalogue : Catalogue
        Machines with purchase prices.
    seed : int
        Random seed of both predictions.

    Returns
    -------
    BuyingOption or None
        None if the choice is owned, if no machine with as many of the same accelerators has a known
        purchase price, or if the job does not run on it unchanged.
    """
    scenario = reader.read(winner.settings).scenario
    trainers = scenario.cluster.trainers
    if scenario.cost.purchase is Purchase.OWNED or trainers.host.gpu is None:
        return None
    host = _cheapest_to_buy(catalogue, trainers.host)
    if host is None or host.capex is None:
        return None
    settings: dict[str, Plain] = {
        **winner.settings,
        **owned_machines(host, trainers.count),
    }
    try:
        owned = _predicted(reader, settings, seed)
        even = rent_or_buy(owned, _predicted(reader, winner.settings, seed))
    except PlanError:
        return None
    if even is None:
        return None
    source = host.sources.get("capex")
    return BuyingOption(
        machine=host.name,
        count=trainers.count,
        capex=host.capex,
        date="undated" if source is None else source.date,
        even=even,
    )


def _predicted(reader: CandidateReader, settings: Mapping[str, Plain], seed: int) -> Prediction:
    scenario = replace(reader.read(settings).scenario, interruptions=None)
    return predict(scenario, seed=seed, intervals=False)


def _cheapest_to_buy(catalogue: Catalogue, rented: Host) -> Host | None:
    """Return the cheapest machine to buy with the same accelerators; None if there is none."""
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
