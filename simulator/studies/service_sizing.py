"""Sizing of services: the fewest and the cheapest machines within the limits; variants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Final

from simulator.errors import InputError, NotModelled, PlanError
from simulator.predict import layout_of, predict_service
from simulator.reading.service.scenario import ServiceReader
from simulator.records import dataclass
from simulator.results.cost import service_cost, service_price
from simulator.results.metrics import service_figures
from simulator.results.serving import Answered, AtSaturation, ServiceCost, ServicePrediction
from simulator.schema.goal import Plain
from simulator.schema.serving import OpenLoop, Service
from simulator.schema.uncertainty import P90
from simulator.serving.answers import lack, uncertain
from simulator.serving.layout import Layout
from simulator.serving.load import usual_count
from simulator.serving.run import (
    ServiceRun,
    at_peak,
    let_through,
    saturated,
    saturation_rates,
)
from simulator.serving.sizing import LIMITS, Sizing, on_machines
from simulator.studies.levers.catalogue import variants
from simulator.studies.search.outcome import Candidate, Outcome, Progress, Status, tracked
from simulator.units import SECOND, THOUSAND, PerSecond, Seconds, Usd, UsdPerSecond, show

SINGLE_REQUESTS: Final = 2000
"""Maximum number of simulated requests per replica; further ones take their time at saturation."""
TOTAL_REQUESTS: Final = 20_000
"""Maximum number of requests for which the chosen machines are simulated with all requests."""
FEW_MORE: Final = 16
"""Divisor: this fraction of the machines is added while some finish late."""


@dataclass(frozen=True, kw_only=True)
class BulkSizing:
    """Sizing of one kind of machine for a bulk job: all requests at once, with a deadline.

    Every machine serves an equal share of the requests, so one simulated machine represents all;
    the chosen number of machines is simulated again with all requests, unless they are too many.

    Parameters
    ----------
    service : Service
        Service on one machine, with as many replicas as fit.
    seed : int
        Seed of token lengths.
    deviations : float
        Slowdown of iterations, in standard deviations of their uncertainty.
    """

    service: Service
    seed: int = 0
    deviations: float = 0.0

    @cached_property
    def deadline(self) -> Seconds:
        """Time until the last request must be answered [s].

        Raises
        ------
        NotModelled
            If no deadline is stated.
        """
        found = self.service.deadline or self.service.slo.end_to_end
        if found is None:
            msg = "sizing a bulk job needs a deadline: goal.deadline, or slo.end_to_end"
            raise NotModelled(msg)
        return found

    @cached_property
    def requests(self) -> int:
        """Number of requests of the job."""
        return usual_count(self.service.load) or 1

    @cached_property
    def hindrance(self) -> str:
        """Reason why no number of these machines is sufficient; empty if none is known."""
        return lack(self.service, self._one)

    @cached_property
    def least(self) -> int:
        """Lower bound on the number of machines, from the request rate at saturation."""
        return max(1, math.ceil(self.requests / (self._rate * self.deadline)))

    def least_price(self, each: UsdPerSecond) -> Usd:
        """Return a lower bound on the cost of the job, from the price of one machine [$]."""
        return each * self.requests / self._rate

    def slow(self, deviations: float) -> BulkSizing:
        """Return the sizing with iterations slower by `deviations` standard deviations."""
        return replace(self, deviations=deviations)

    def on(self, machines: int) -> Service:
        """Return the service on a number of machines, each of which reads an equal share."""
        return on_machines(self.service, machines)

    def answered(self, machines: int) -> Answered | None:
        """Return latencies and total time on a number of machines; None if it cannot be served."""
        if self.requests > TOTAL_REQUESTS or self.deviations:
            return self._told(machines)
        if machines not in self._whole:
            service = self.on(machines)
            self._whole[machines] = self._run(service, self._uncertain(service), self.requests)
        return self._whole[machines]

    def machines(self) -> int | None:
        """Return the fewest machines that meet the deadline and the other limits, or None."""
        fails, enough, most = self.least - 1, self.least, self.requests
        while enough < most and not self._keeps(self._told(enough)):
            fails, enough = enough, min(most, 2 * enough)
        if not self._keeps(self._told(enough)):
            return None
        while enough - fails > 1:
            middle = (fails + enough) // 2
            found = self._keeps(self._told(middle))
            fails, enough = (fails, middle) if found else (middle, enough)
        # A machine with more than its share of long answers is late: a few more make up for it.
        while not self._keeps(self.answered(enough)):
            if enough == most:
                return None
            enough = min(most, enough + max(1, enough // FEW_MORE))
        return enough

    def missed(self) -> str:
        """Describe the limit that is missed even if every machine answers a single request."""
        told = self._told(self.requests)
        late = told is None or told.duration > self.deadline
        if told is None or late:
            time = "" if told is None else f": one alone takes {show(told.duration, SECOND, 2)}"
            return f"no number of machines finishes in {show(self.deadline, SECOND)}{time}"
        name = min(self._others(told), key=lambda each: told.within[each])
        kept = told.within[name]
        return f"{LIMITS[name]} is kept by {kept:.1%} of the requests however many machines"

    @cached_property
    def _one(self) -> Layout:
        return replace(self._uncertain(self.service), reading=None)

    @cached_property
    def _rate(self) -> PerSecond:
        return saturation_rates(self.service, self._one, self.seed)[0]

    def _uncertain(self, service: Service) -> Layout:
        return uncertain(layout_of(service), service, self.deviations)

    def _run(self, service: Service, layout: Layout, requests: int) -> Answered | None:
        load = replace(service.load, requests=requests)
        run = ServiceRun(replace(service, load=load), layout, self.seed)
        return run.answered(saturated(self._rate, 0.0, None))

    @cached_property
    def _whole(self) -> dict[int, Answered | None]:
        return {}

    @cached_property
    def _shares(self) -> dict[int, Answered | None]:
        return {}

    def _told(self, machines: int) -> Answered | None:
        """Return the results of all machines, extrapolated from one machine with its share."""
        share = math.ceil(self.requests / machines)
        part = min(share, SINGLE_REQUESTS * self.service.serving.replicas)
        if part not in self._shares:
            self._shares[part] = self._run(self.service, self._one, part)
        told = self._shares[part]
        if told is None:
            return None
        service = self.on(machines)
        layout = layout_of(service)
        read = self.requests / let_through(service, self._late(layout))
        time = max(read, told.duration + (share - part) / self._rate)
        return _of_all(told, time, self.requests, machines)

    def _late(self, layout: Layout) -> Layout:
        reading = layout.reading
        return replace(layout, reading=None if reading is None else reading.slower(self.deviations))

    def _others(self, told: Answered) -> list[str]:
        return [name for name in told.within if name != "end_to_end"]

    def _keeps(self, told: Answered | None) -> bool:
        if told is None or told.duration > self.deadline:
            return False
        return all(told.within[name] >= self.service.slo.share for name in self._others(told))


def _of_all(told: Answered, duration: Seconds, requests: int, machines: int) -> Answered:
    """Return the results for all requests and machines, scaled from those of one machine."""
    longer = requests * told.duration / (told.requests * duration)
    flows = ("request_rate", "prompt_rate", "output_rate", "goodput")
    found = {name: longer * getattr(told, name) for name in flows}
    found |= {name: machines * getattr(told, name) for name in ("running", "waiting", "replicas")}
    return replace(told, **found, requests=requests, duration=duration)


Read = Callable[[Mapping[str, Plain]], Service]
MAX_PRICE_RATIO: Final = 1.5
"""Ratio to the lowest price up to which candidates are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Machines within the limits: their settings, number, price and latencies.

    `sure` is the number of machines that meets the limits with 90% probability, None if none does;
    `capacity` is the request rate of `machines` at saturation, None for a bulk job; `headroom` is
    the factor by which the load may grow, or the deadline of a bulk job shrink; `highest` is the
    highest rate that `machines` serve within the limits, only for the cheapest choice. `total` is
    the bill of a bulk job, machines and store.
    """

    settings: Mapping[str, Plain]
    service: Service
    answered: Answered
    machines: int
    sure: int | None
    price: UsdPerSecond
    headroom: float
    capacity: PerSecond | None = None
    highest: PerSecond | None = None
    total: Usd | None = None

    @property
    def paid(self) -> UsdPerSecond | Usd:
        """Price by which choices are sorted: per time [$/s], or in total for a bulk job [$]."""
        return self.price if self.total is None else self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A candidate that cannot serve the load within the limits, and the reason."""

    settings: Mapping[str, Plain]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TooExpensive:
    """A candidate that was not simulated, as its minimum price exceeds that of others.

    The price `least` is per time [$/s], or in total for a bulk job [$].
    """

    settings: Mapping[str, Plain]
    least: UsdPerSecond | Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceChoices:
    """Result of sizing a service: choices, cheapest first, and candidates not chosen."""

    service: Service
    choices: tuple[Choice, ...]
    dearer: tuple[TooExpensive, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    settings: Mapping[str, Plain]
    sizing: Sizing | BulkSizing
    each: UsdPerSecond

    @property
    def least(self) -> UsdPerSecond | Usd:
        """Minimum price, per time [$/s] or in total for a bulk job [$]."""
        return self.sizing.least_price(self.each)


def cheapest_machines(
    read: Read,
    candidates: Sequence[Mapping[str, Plain]],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> ServiceChoices:
    """Size a service on each candidate machine and return the results, cheapest first.

    Candidates whose minimum price, at saturation, is far above that of the cheapest choice are not
    simulated.

    Parameters
    ----------
    read : callable
        Returns the service with some settings in addition to its own.
    candidates : sequence of mapping
        Settings of each candidate machine.
    seed : int
        Seed of token lengths and arrivals.
    progress : callable, optional
        Called with the finished share, 0 to 1.
    """
    known, refused = list[_Candidate](), list[Refused]()
    for settings in tracked(candidates, progress):
        found = _candidate(read, settings, seed)
        if isinstance(found, Refused):
            refused.append(found)
        else:
            known.append(found)
    choices, dearer = list[tuple[Choice, Sizing | BulkSizing]](), list[TooExpensive]()
    for candidate in sorted(known, key=lambda one: one.least):
        best = min((choice.paid for choice, _ in choices), default=math.inf)
        if candidate.least > MAX_PRICE_RATIO * best:
            dearer.append(TooExpensive(settings=candidate.settings, least=candidate.least))
            continue
        machines = candidate.sizing.machines()
        if machines is None:
            refused.append(Refused(settings=candidate.settings, reason=candidate.sizing.missed()))
        else:
            choices.append((_choice(candidate, machines), candidate.sizing))
    choices.sort(key=lambda each: each[0].paid)
    told = [choice for choice, _ in choices]
    if choices:
        cheapest, sizing = choices[0]
        if isinstance(sizing, Sizing):
            told[0] = replace(cheapest, highest=sizing.highest(cheapest.machines))
    return ServiceChoices(
        service=read({}), choices=tuple(told), dearer=tuple(dearer), refused=tuple(refused)
    )


def _candidate(read: Read, settings: Mapping[str, Plain], seed: int) -> _Candidate | Refused:
    try:
        service = at_peak(read(settings))
        sizing = _sizing(service, seed)
        price = service_price(service)
        reason = sizing.hindrance if price is not None else "no price is known"
    except PlanError as mistake:
        return Refused(settings=settings, reason=str(mistake))
    if reason or price is None:
        return Refused(settings=settings, reason=reason)
    return _Candidate(settings, sizing, price)


def _sizing(service: Service, seed: int) -> Sizing | BulkSizing:
    if service.load.is_bulk:
        return BulkSizing(service=service, seed=seed)
    return Sizing(service=service, layouts=layout_of, seed=seed)


def _choice(candidate: _Candidate, machines: int) -> Choice:
    sizing = candidate.sizing
    service, told = sizing.on(machines), sizing.answered(machines)
    if told is None:
        msg = "machines within limits are not beyond saturation"
        raise TypeError(msg)
    cost, total, capacity = service_cost(service, told, None), None, None
    if isinstance(sizing, BulkSizing):
        room = sizing.deadline / told.duration
        total = (cost.per_thousand_requests or 0.0) * told.requests / THOUSAND
    else:
        capacity = sizing.saturation_on(machines)[0]
        room = capacity / sizing.offered
    return Choice(
        settings={**candidate.settings, **counts(service)},
        service=service,
        answered=told,
        machines=machines,
        sure=sizing.slow(P90).machines(),
        price=cost.per_second or machines * candidate.each,
        headroom=room,
        capacity=capacity,
        total=total,
    )


def counts(service: Service) -> dict[str, Plain]:
    """Return the settings of the numbers of machines and replicas of a service."""
    found: dict[str, Plain] = {
        "hardware.count": service.group.count,
        "serving.replicas": service.serving.replicas,
    }
    if service.serving.prefill is not None:
        found["serving.prefill.replicas"] = service.serving.prefill.replicas
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Number of machines of its own kind that a service needs at a request rate.

    `machines` meet the limits, `sure` meet them with 90% probability; None if no number does, for
    `reason`. `capacity` is their request rate at saturation, `headroom` the factor by which the
    rate may grow until then, `highest` the highest rate that `machines` serve within the limits
    (only at the service's own rate), `price` the price of `machines`, if known [$/s], `settings`
    their numbers of machines and replicas.
    """

    rate: PerSecond
    machines: int | None
    sure: int | None
    answered: Answered | None = None
    capacity: PerSecond | None = None
    headroom: float | None = None
    highest: PerSecond | None = None
    price: UsdPerSecond | None = None
    settings: Mapping[str, Plain] = field(default_factory=dict)
    reason: str = ""


RATE_FACTORS: Final = (1.0, 2.0, 4.0, 8.0)
"""Request rates of `needs`, relative to that of the service."""


def needs(service: Service, *, seed: int = 0, progress: Progress | None = None) -> tuple[Need, ...]:
    """Return the fewest machines within the limits of a service, at its rate and at higher ones.

    Parameters
    ----------
    service : Service
        Service whose machine, tensor degree and number formats are used.
    seed : int
        Seed of token lengths and arrivals.
    progress : callable, optional
        Called with the finished share, 0 to 1.

    Raises
    ------
    NotModelled
        If the load is not a rate of arrivals.
    """
    return tuple(
        _need(_on_one(service, factor), seed, told=factor == RATE_FACTORS[0])
        for factor in tracked(RATE_FACTORS, progress)
    )


def _on_one(service: Service, factor: float) -> Service:
    """Return the service on one full machine, with its load multiplied by `factor`."""
    service = at_peak(service)
    ways, serving, group = service.load.arrivals, service.serving, service.group
    if isinstance(ways, OpenLoop):
        ways = replace(ways, rate=factor * ways.rate)
    before = serving.prefill
    taken = 0 if before is None else before.replicas * before.tensor
    replicas = max(1, (group.gpus_per_host - taken) // serving.tensor)
    return replace(
        service,
        group=replace(group, count=1),
        serving=replace(serving, replicas=replicas),
        load=replace(service.load, arrivals=ways),
    )


def _need(service: Service, seed: int, *, told: bool) -> Need:
    sizing = Sizing(service=service, layouts=layout_of, seed=seed)
    rate, reason = sizing.offered, sizing.hindrance
    machines = None if reason else sizing.machines()
    if machines is None:
        return Need(rate=rate, machines=None, sure=None, reason=reason or sizing.missed())
    answered = sizing.answered(machines)
    return Need(
        rate=rate,
        machines=machines,
        sure=sizing.slow(P90).machines(),
        answered=answered,
        capacity=sizing.saturation_on(machines)[0],
        headroom=sizing.saturation_on(machines)[0] / rate,
        highest=sizing.highest(machines) if told else None,
        price=service_cost(sizing.on(machines), answered, None).per_second,
        settings=counts(sizing.on(machines)),
    )


def cost_at(choice: Choice) -> ServiceCost:
    """Return the cost of the machines of a choice, and of its tokens and requests."""
    return service_cost(choice.service, choice.answered, None)


def variant_outcomes(
    read: Read,
    candidates: Sequence[Mapping[str, Plain]],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Outcome, ...]:
    """Predict variants of a service, without intervals, and return the outcomes in their order."""

    def figures(settings: Mapping[str, Plain]) -> dict[str, float | None] | PlanError:
        try:
            return service_figures(predict_service(read(settings), seed=seed, intervals=False))
        except PlanError as mistake:
            return mistake

    return tuple(
        Outcome(candidate=candidate, status=Status.REFUSED, reason=str(found))
        if isinstance(found, PlanError)
        else Outcome(candidate=candidate, status=Status.PREDICTED, figures=found)
        for index, settings in enumerate(tracked(candidates, progress))
        for candidate in (Candidate(index=index, settings=settings),)
        for found in (figures(settings),)
    )


LOAD_SHARES: Final = (0.05, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Loads, as shares of saturation, at which latencies are predicted."""


def against_load(prediction: ServicePrediction) -> tuple[ServicePrediction, ...]:
    """Predict the service at loads up to saturation; empty unless it has an arrival rate."""
    service, found = at_peak(prediction.service), prediction.saturation
    ways = service.load.arrivals
    if found is None or not isinstance(ways, OpenLoop) or math.isinf(ways.rate):
        return ()
    at = [replace(ways, rate=share * found.request_rate) for share in LOAD_SHARES]
    loads = [replace(service.load, arrivals=one, requests=None) for one in at]
    return tuple(
        predict_service(
            replace(service, load=load), seed=prediction.seed, wanted=AtSaturation.NEEDED
        )
        for load in loads
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedService:
    """A named change to a service, with the prediction of the changed service."""

    name: str
    prediction: ServicePrediction


def worths(
    service: Service, *, seed: int = 0
) -> tuple[ServicePrediction, tuple[ChangedService, ...]]:
    """Predict the service without changes, and with each change of `plan whatif`."""
    base = predict_service(service, seed=seed, intervals=False)
    found = [
        ChangedService(name=name, prediction=predict_service(changed, seed=seed, intervals=False))
        for name, changed in variants(service)
    ]
    return base, tuple(found)


def check_limits(reader: ServiceReader) -> Service:
    """Return the service of a reader after checking that it has limits to size machines for.

    Raises
    ------
    InputError
        If it has none.
    """
    service = reader.read({})
    if service.load.is_bulk and not (service.deadline or service.slo.end_to_end):
        msg = 'has no deadline; add [goal] with deadline = "8 h", or slo.end_to_end'
        raise InputError((reader.document().problem(("goal",), msg, show=False),))
    if not service.slo.limits and not service.load.is_bulk:
        msg = "has no limits; add [slo] with first_token, per_token or end_to_end"
        raise InputError((reader.document().problem(("slo",), msg, show=False),))
    return service
