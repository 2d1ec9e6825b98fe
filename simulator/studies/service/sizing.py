"""Studies of services: the cheapest machines that keep limits, variants, what a change is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.errors import PlanError
from simulator.predict import layout_of, predict_service
from simulator.results.serving import Answered, ServiceCost, ServicePrediction, metrics
from simulator.schema.goal import Plain
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.link import Link
from simulator.schema.serving import OpenLoop, RateCurve, Routing, Service, Serving
from simulator.serving.cost import cost_of, price_of_all
from simulator.serving.run import at_peak
from simulator.serving.sizing import Sizing
from simulator.studies.service.bulk import BulkSizing
from simulator.uncertainty.components import P90
from simulator.units import THOUSAND, PerSecond, Usd, UsdPerSecond

Read = Callable[[Mapping[str, Plain]], Service]
Progress = Callable[[float], None]
ALSO: Final = 1.5
"""Candidates that cost up to so many times the cheapest are worked out too."""
STRONGER: Final = 1.25
"""How much more of something a change of `whatif` brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Machines that keep the limits: the settings that give them, and what they come to.

    `sure` is how many machines keep the limits in nine of ten cases, None where no number does;
    `headroom` by what factor the load may grow, or the deadline of a bulk job come nearer;
    `highest` the highest rate at which `machines` keep the limits, of the cheapest choice alone.
    `total` is the bill of a bulk job, machines and store.
    """

    settings: Mapping[str, Plain]
    service: Service
    answered: Answered
    machines: int
    sure: int | None
    price: UsdPerSecond
    headroom: float
    highest: PerSecond | None = None
    total: Usd | None = None

    @property
    def paid(self) -> UsdPerSecond | Usd:
        """What choices are ordered by: their price by time, or that of all of a bulk job."""
        return self.price if self.total is None else self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A candidate that will not do, and why."""

    settings: Mapping[str, Plain]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dearer:
    """A candidate that was not worked out: what it costs at least is more than others cost.

    That is by time [$/s], or of all of a bulk job [$].
    """

    settings: Mapping[str, Plain]
    least: UsdPerSecond | Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The choices, the cheapest first, what costs more, and what was refused."""

    service: Service
    choices: tuple[Choice, ...]
    dearer: tuple[Dearer, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    settings: Mapping[str, Plain]
    sizing: Sizing | BulkSizing
    each: UsdPerSecond

    @property
    def least(self) -> UsdPerSecond | Usd:
        """What it costs at least, by time or, of a bulk job, for all of it."""
        return self.sizing.least_price(self.each)


def size(
    read: Read,
    candidates: Sequence[Mapping[str, Plain]],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Sized:
    """The cheapest machines that keep the limits of a service, among candidates.

    Candidates whose price at saturation is far above that of the cheapest found are left out: they
    cannot cost less.

    Parameters
    ----------
    read : callable
        The service with some settings over its own.
    candidates : sequence of mapping
        Settings of one machine each.
    seed : int
        Of lengths and arrivals.
    progress : callable, optional
        Told how far the study is, 0 to 1.
    """
    known, refused = list[_Candidate](), list[Refused]()
    for number, settings in enumerate(candidates):
        found = _candidate(read, settings, seed)
        if isinstance(found, Refused):
            refused.append(found)
        else:
            known.append(found)
        if progress is not None:
            progress((number + 1) / (len(candidates) + 1))
    choices, dearer = list[tuple[Choice, Sizing | BulkSizing]](), list[Dearer]()
    for candidate in sorted(known, key=lambda one: one.least):
        best = min((choice.paid for choice, _ in choices), default=math.inf)
        if candidate.least > ALSO * best:
            dearer.append(Dearer(settings=candidate.settings, least=candidate.least))
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
    return Sized(
        service=read({}), choices=tuple(told), dearer=tuple(dearer), refused=tuple(refused)
    )


def _candidate(read: Read, settings: Mapping[str, Plain], seed: int) -> _Candidate | Refused:
    try:
        service = at_peak(read(settings))
        sizing = _sizing(service, seed)
        price = price_of_all(service)
        reason = sizing.hindrance if price is not None else "no price is known"
    except PlanError as mistake:
        return Refused(settings=settings, reason=str(mistake))
    if reason or price is None:
        return Refused(settings=settings, reason=reason)
    return _Candidate(settings, sizing, price)


def _sizing(service: Service, seed: int) -> Sizing | BulkSizing:
    if service.load.is_bulk:
        return BulkSizing(service=service, seed=seed)
    return Sizing(service=service, layout=layout_of(service), seed=seed)


def _choice(candidate: _Candidate, machines: int) -> Choice:
    sizing = candidate.sizing
    service, told = sizing.on(machines), sizing.answered(machines)
    if told is None:
        msg = "machines that keep limits are not beyond saturation"
        raise TypeError(msg)
    counts = {"hardware.count": machines, "serving.replicas": service.serving.replicas}
    if service.serving.prefill is not None:
        counts["serving.prefill.replicas"] = service.serving.prefill.replicas
    cost, total = cost_of(service, told, None), None
    if isinstance(sizing, BulkSizing):
        room = sizing.deadline / told.duration
        total = (cost.per_thousand_requests or 0.0) * told.requests / THOUSAND
    else:
        room = machines * sizing.saturation[0] / sizing.offered
    return Choice(
        settings={**candidate.settings, **counts},
        service=service,
        answered=told,
        machines=machines,
        sure=sizing.slow(P90).machines(),
        price=cost.per_second or machines * candidate.each,
        headroom=room,
        total=total,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many machines of its own kind a service needs at a rate.

    `machines` keep the limits, `sure` do in nine of ten cases; None where no number does, and
    `reason` says why. `headroom` is by what factor the rate may grow until saturation, `highest`
    the highest rate at which `machines` keep the limits, at the service's own rate alone, `price`
    that of `machines`, where it is known.
    """

    rate: PerSecond
    machines: int | None
    sure: int | None
    answered: Answered | None = None
    headroom: float | None = None
    highest: PerSecond | None = None
    price: UsdPerSecond | None = None
    reason: str = ""


GROWTH: Final = (1.0, 2.0, 4.0, 8.0)
"""Rates that `needs` looks at, over that of the service."""


def needs(service: Service, *, seed: int = 0, progress: Progress | None = None) -> tuple[Need, ...]:
    """The fewest machines that keep the limits of a service, at its rate and at higher ones.

    Parameters
    ----------
    service : Service
        Its machine, tensor degree and number formats stay; how many there are is found out.
    seed : int
        Of lengths and arrivals.
    progress : callable, optional
        Told how far the study is, 0 to 1.

    Raises
    ------
    NotModelled
        If its load is no rate of arrivals.
    """
    found = list[Need]()
    for number, factor in enumerate(GROWTH):
        found.append(_need(_on_one(service, factor), seed, told=not found))
        if progress is not None:
            progress((number + 1) / len(GROWTH))
    return tuple(found)


def _on_one(service: Service, factor: float) -> Service:
    """The service on one machine, as full of replicas as it gets, with so many times the load."""
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
        load=replace(service.load, arrivals=ways, requests=None),
    )


def _need(service: Service, seed: int, *, told: bool) -> Need:
    sizing = Sizing(service=service, layout=layout_of(service), seed=seed)
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
        headroom=sizing.saturation[0] * machines / rate,
        highest=sizing.highest(machines) if told else None,
        price=cost_of(sizing.on(machines), answered, None).per_second,
    )


def cost_at(choice: Choice) -> ServiceCost:
    """What the machines of a choice cost, its tokens and its requests."""
    return cost_of(choice.service, choice.answered, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A service with some settings, and its figures; a mistake where it has none."""

    settings: Mapping[str, Plain]
    figures: Mapping[str, float | None]
    mistake: str = ""


def sweep(
    read: Read,
    candidates: Sequence[Mapping[str, Plain]],
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Variant, ...]:
    """The figures of variants of a service, without intervals, in their order."""
    found = []
    for number, settings in enumerate(candidates):
        try:
            figures = metrics(predict_service(read(settings), seed=seed, intervals=False))
            found.append(Variant(settings=settings, figures=figures))
        except PlanError as mistake:
            found.append(Variant(settings=settings, figures={}, mistake=str(mistake)))
        if progress is not None:
            progress((number + 1) / len(candidates))
    return tuple(found)


LOADS: Final = (0.05, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Shares of saturation at which latencies are shown against the load."""


def against_load(prediction: ServicePrediction) -> tuple[ServicePrediction, ...]:
    """The service at loads up to its saturation; none where its load is no rate of arrivals."""
    service, found = at_peak(prediction.service), prediction.saturation
    ways = service.load.arrivals
    if found is None or not isinstance(ways, OpenLoop) or math.isinf(ways.rate):
        return ()
    at = [replace(ways, rate=share * found.request_rate) for share in LOADS]
    loads = [replace(service.load, arrivals=one, requests=None) for one in at]
    return tuple(
        predict_service(replace(service, load=load), seed=prediction.seed) for load in loads
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """A change to a service, and the service with it."""

    name: str
    prediction: ServicePrediction


def whatif(service: Service, *, seed: int = 0) -> tuple[ServicePrediction, tuple[Worth, ...]]:
    """The service as it is, and with each of some changes."""
    base = predict_service(service, seed=seed, intervals=False)
    found = [
        Worth(name=name, prediction=predict_service(changed, seed=seed, intervals=False))
        for name, changed in _changes(service)
    ]
    return base, tuple(found)


def _changes(service: Service) -> Iterator[tuple[str, Service]]:
    """Changes by name: the accelerator's rates, the engine's settings, the load."""
    serving, more = service.serving, f"x{STRONGER:g}"
    for name, host in _stronger(service.group.host).items():
        yield f"{name} {more}", _with_host(service, host)
    if serving.tensor > 1 and (faster := _linked(service.group.host)) is not None:
        yield f"links between accelerators {more}", _with_host(service, faster)
    if service.reading is not None:
        yield "requests that are there already", replace(service, reading=None)
    for name, other in _settings(serving).items():
        yield name, replace(service, serving=other)
    ways = service.load.arrivals
    if isinstance(ways, RateCurve) or (isinstance(ways, OpenLoop) and math.isfinite(ways.rate)):
        for factor in (0.5, STRONGER, 2.0):
            rate = replace(ways, rate=factor * ways.rate)
            yield f"load x{factor:g}", replace(service, load=replace(service.load, arrivals=rate))


def _stronger(host: Host) -> dict[str, Host]:
    """The machine with faster accelerators, or cores where it has none, by what is faster."""
    gpu, cpu, rate = host.gpu, host.cpu, host.memory_bandwidth
    if gpu is not None:
        memory = replace(gpu, memory_bandwidth=STRONGER * gpu.memory_bandwidth)
        peak = {name: STRONGER * rate for name, rate in gpu.peak.items()}
        return {
            "memory bandwidth": replace(host, gpu=memory),
            "arithmetic": replace(host, gpu=replace(gpu, peak=peak)),
            "device memory": replace(host, gpu=replace(gpu, memory=STRONGER * gpu.memory)),
        }
    if cpu.base_clock is None or rate is None:
        return {}
    clock = replace(cpu, base_clock=STRONGER * cpu.base_clock)
    return {
        "memory bandwidth": replace(host, memory_bandwidth=STRONGER * rate),
        "arithmetic": replace(host, cpu=clock),
    }


def _linked(host: Host) -> Host | None:
    """The machine with faster links between its accelerators; None where none are known."""
    if host.peer_link is not None:
        return replace(host, peer_link=_faster(host.peer_link))
    return None if host.host_link is None else replace(host, host_link=_faster(host.host_link))


def _faster(link: Link) -> Link:
    rate = None if link.achievable is None else STRONGER * link.achievable
    return replace(link, peak=STRONGER * link.peak, achievable=rate)


def _with_host(service: Service, host: Host) -> Service:
    """The service on another machine, in the job of a model that answers in one pass too."""
    changed = replace(service, group=replace(service.group, host=host))
    if service.one_pass is None:
        return changed
    job = service.one_pass.job
    groups = tuple(replace(each, host=host) for each in job.cluster.groups)
    other = replace(job, cluster=replace(job.cluster, groups=groups))
    return replace(changed, one_pass=replace(service.one_pass, job=other))


def _settings(serving: Serving) -> dict[str, Serving]:
    """Other settings of the engine by name."""
    tokens, requests = serving.max_batched_tokens, serving.max_sequences
    found = {
        "no time beside iterations": replace(
            serving, request_overhead=0.0, prompt_overhead=0.0, reply_lag=0.0, host_time=0.0
        )
    }
    if serving.replicas > 1:
        found["requests to the replica with the fewest"] = replace(serving, routing=Routing.LEAST)
    if serving.dynamic is not None:
        half, never = max(1, tokens // 2), replace(serving.dynamic, delay=0.0, preferred=())
        return found | {
            "twice the largest batch": _batches(serving, 2 * tokens),
            "half the largest batch": _batches(serving, half),
            "batches never wait for others": replace(serving, dynamic=never),
        }
    return found | {
        "twice the tokens of an iteration": replace(serving, max_batched_tokens=2 * tokens),
        "half the tokens of an iteration": replace(serving, max_batched_tokens=max(1, tokens // 2)),
        "half the requests at once": replace(serving, max_sequences=max(1, requests // 2)),
    }


def _batches(serving: Serving, most: int) -> Serving:
    return replace(serving, max_batched_tokens=most, max_sequences=most)
