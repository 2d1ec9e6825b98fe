"""What to do next about a service: the few changes that gain most, each predicted and priced.

A service that keeps its limits gains by a lower price of its answers, as long as it still keeps
them; one that misses them by keeping them, or by more requests within them; one whose load is
beyond saturation by what it carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from simulator.errors import InputError, PlanError, UnknownName
from simulator.predict import layout_of, predict_service, saturation_of
from simulator.reading.hardware.catalogue import Catalogue
from simulator.results.serving import AtSaturation, ServicePrediction
from simulator.schema.goal import Plain
from simulator.schema.hardware.gpu import Stack
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.price import price_of
from simulator.schema.serving import OpenLoop, Service
from simulator.serving.cost import price_of_all
from simulator.serving.load import usual_count
from simulator.studies.changes.action_levers import Lever
from simulator.studies.changes.actions import LEAST, MOST, machines_beside
from simulator.studies.recommend.machines import machine_of
from simulator.studies.service.levers import ServiceKind, service_levers
from simulator.units import Usd, UsdPerSecond

ATTAINMENT: Final = "slo.attainment"
Read = Callable[[Mapping[str, Plain]], Service]
FEW: Final = 600
"""Requests of the runs that compare changes, where all are there from the start."""
MACHINES: Final = 3
"""Other machines that are predicted at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAction:
    """A change to a service, and the service with it, with its intervals.

    `rent` is what the machines cost more [$/s]; None where a price is not known.
    """

    lever: Lever
    prediction: ServicePrediction
    rent: UsdPerSecond | None


def service_actions(
    read: Read, base: ServicePrediction, catalogue: Catalogue
) -> tuple[ServiceAction, ...]:
    """What gains most, best first, one of each kind; nothing where nothing gains.

    Parameters
    ----------
    read : callable
        The service of `base` with some keys set.
    base : ServicePrediction
        The service as it is.
    catalogue : Catalogue
        Machines on offer.
    """
    # Requests that are all there are fewer in runs that compare: with others, the run is the same.
    same = base.answered is not None and _short(base.service) is base.service
    quick = base if same else _quick(base.service, base.seed)
    best: dict[StrEnum, tuple[Lever, ServicePrediction]] = {}
    hosts = _hosts(base.service, catalogue, keeps=base.keeps_limits)
    levers = service_levers(base.service, hosts)
    if not _waits_for_reads(base):
        levers = (lever for lever in levers if lever.kind is not ServiceKind.READS)
    for lever, service in _read(read, levers):
        if not _may_gain(base, service):
            continue
        try:
            after = _quick(service, base.seed)
        except PlanError:
            continue
        known = best.get(lever.kind)
        if gains(quick, after) and (known is None or worth(after) > worth(known[1])):
            best[lever.kind] = lever, after
    ranked = sorted(best.values(), key=lambda each: worth(each[1]), reverse=True)
    found = [_action(base, read, lever, quickly) for lever, quickly in ranked[:MOST]]
    told = [
        one
        for one in found
        if gains(base, one.prediction) and keeps_as_surely(base, one.prediction)
    ]
    return tuple(sorted(told, key=lambda one: worth(one.prediction), reverse=True))


def _quick(service: Service, seed: int) -> ServicePrediction:
    """What is enough to choose among many changes."""
    return predict_service(_short(service), seed=seed, intervals=False, wanted=AtSaturation.ROUGHLY)


def _short(service: Service) -> Service:
    """The service with few requests where all are there from the start: rates are those of all."""
    ways, count = service.load.arrivals, usual_count(service.load)
    if not isinstance(ways, OpenLoop) or math.isfinite(ways.rate) or (count or 0) <= FEW:
        return service
    return replace(service, load=replace(service.load, requests=FEW))


def paid(prediction: ServicePrediction) -> Usd | None:
    """What its answers cost: a million output tokens, or a thousand requests [$]."""
    if prediction.service.one_pass is not None:
        return prediction.cost.per_thousand_requests
    return prediction.cost.per_million_output_tokens


def gains(base: ServicePrediction, after: ServicePrediction) -> bool:
    """Whether a change is worth telling: by more than `LEAST` in what counts for the service."""
    if base.keeps_limits:
        before, now = paid(base), paid(after)
        if not after.keeps_limits or before is None or now is None:
            return False
        return now < (1.0 - LEAST) * before
    if after.keeps_limits:
        return True
    if base.answered is not None:
        more = 0.0 if after.answered is None else after.answered.attainment
        return more > base.answered.attainment + LEAST
    return after.answered is not None or carried(after) > (1.0 + LEAST) * carried(base)


def keeps_as_surely(base: ServicePrediction, after: ServicePrediction) -> bool:
    """Whether a change leaves the share of requests within all limits as sure as it is.

    A service that keeps its limits in nine of ten cases is not told to save where it may miss them.
    """
    if not base.keeps_limits:
        return True
    return _at_worst(after) >= _at_worst(base) - LEAST


def _at_worst(prediction: ServicePrediction) -> float:
    """The lower end of the share of requests within all limits; 0 beyond saturation."""
    ends = prediction.interval.get(ATTAINMENT)
    return 1.0 if ends is None else min(ends["p10"] or 0.0, ends["p90"] or 0.0)


def carried(prediction: ServicePrediction) -> float:
    """Requests that are answered in a second for ever [1/s]; none where the model does not fit."""
    if not prediction.fits:
        return 0.0
    found = prediction.saturation or saturation_of(prediction.service, seed=prediction.seed)
    return found.request_rate


def worth(prediction: ServicePrediction) -> tuple[float, ...]:
    """What orders services: limits kept at the least price, then requests within them, the load.

    Of equals that miss them, that is what they carry at saturation, or while the load lasts.
    """
    price, told, found = paid(prediction), prediction.answered, prediction.saturation
    cheap = -math.inf if price is None else -price
    if prediction.keeps_limits:
        return (1.0, cheap, 0.0)
    served = 0.0 if told is None else told.request_rate
    kept = -1.0 if told is None else told.attainment
    return (0.0, kept, served if found is None else found.request_rate)


def _read(read: Read, levers: Iterable[Lever]) -> Iterator[tuple[Lever, Service]]:
    """Levers with their services, without those that are refused."""
    for lever in levers:
        try:
            yield lever, read(lever.settings)
        except PlanError:
            continue


def _waits_for_reads(base: ServicePrediction) -> bool:
    """Whether requests are answered as fast as they are read; else faster reads are no gain."""
    found, reading = base.saturation, layout_of(base.service).reading
    return reading is not None and (found is None or found.request_rate >= reading.rate)


def _may_gain(base: ServicePrediction, service: Service) -> bool:
    """Whether a change can lower the price of what is answered at a rate that is given.

    A rate that is given is answered whatever is changed, so that only a lower rent does; where
    requests wait for answers, or for the start of the run, faster machines do.
    """
    found, rent = base.saturation, price_of_all(service)
    if not base.keeps_limits or found is None:
        return True
    if found.headroom is None or service.serving.autoscaling is not None:
        return True
    before = base.cost.per_second
    return before is not None and rent is not None and rent < (1.0 - LEAST) * before


def _hosts(service: Service, catalogue: Catalogue, *, keeps: bool) -> list[Host]:
    """Other machines of the cloud: the cheapest that may do, as far as memory and rates tell."""
    own = service.group.host
    now = price_of_all(service)
    if now is None or service.owned is not None:
        return []
    found = list[tuple[UsdPerSecond, Host]]()
    for machine in machines_beside(catalogue, machine_of(own)):
        try:
            host = catalogue.host(machine.name)
        except (InputError, UnknownName):
            continue
        price = price_of(host.prices, service.cost.purchase, service.cost.region)
        if price is None or host.name == own.name or not _may_do(service, host):
            continue
        if not keeps or price.usual < (1.0 - LEAST) * now:
            found.append((price.usual, host))
    return [host for _, host in sorted(found, key=lambda each: each[0])[:MACHINES]]


def _may_do(service: Service, host: Host) -> bool:
    """Whether a machine runs the same software, and has room for the weights of tokens."""
    own = service.group.host.gpu
    if host.gpu is not None and host.gpu.stack is not (Stack.CUDA if own is None else own.stack):
        return False
    if service.one_pass is not None:
        return True
    if host.gpu is None:
        return False
    weights = service.model.parameters * service.serving.weights.bytes_per_element
    return weights < host.gpu_count * host.gpu.memory


def _action(
    base: ServicePrediction, read: Read, lever: Lever, quickly: ServicePrediction
) -> ServiceAction:
    """A change with its intervals, which a shorter look has chosen."""
    service = read(lever.settings)
    after = predict_service(
        service,
        seed=base.seed,
        wanted=AtSaturation.NEEDED,
        known=quickly.answered if _short(service) is service else None,
    )
    before, now = base.cost.per_second, after.cost.per_second
    rent = None if before is None or now is None else now - before
    return ServiceAction(lever=lever, prediction=after, rent=rent)
