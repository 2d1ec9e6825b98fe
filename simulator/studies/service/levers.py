"""What a user can change about a service: each lever with its settings and what it is called.

Nothing is predicted here. Levers that the service refuses are left out by whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from simulator.schema.goal import Plain
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.price import Purchase
from simulator.schema.precision import Precision
from simulator.schema.serving import RateCurve, Service
from simulator.studies.changes.action_levers import Lever

DEGREES: Final = (1, 2, 4, 8)
"""Tensor degrees that are tried."""
GUESSES: Final = 3
ACCEPTED: Final = 0.7
"""Guesses of speculative decoding and the share that is accepted: a guess, which hangs on the
guesser and on the texts."""
MORE_READS: Final = 4
"""By how much more requests are read at a time."""
HELD: Final = 0.75
"""Share of the memory that weights may take, beside a cache and activations: a guess."""
PER_REPLICA: Final = 8.0
"""Requests under way on each replica that autoscaling aims at: a guess to begin with."""
BOUGHT: Final = {
    Purchase.SPOT: "machines may be taken away, which these figures leave out",
    Purchase.RESERVED_1Y: "paid for a year, used or not",
    Purchase.RESERVED_3Y: "paid for three years, used or not",
}
"""Ways to buy that are offered, with what else they ask for."""


class ServiceKind(StrEnum):
    """Levers of which one is enough: only the best of a kind is advised."""

    COUNT = "machines"
    REPLICAS = "replicas"
    TENSOR = "tensor degree"
    PRECISION = "number formats"
    ITERATION = "tokens and requests of an iteration"
    SPECULATION = "speculation"
    PREFILL = "prompts apart"
    SCALING = "autoscaling"
    BATCH = "batches"
    MACHINE = "another machine"
    READS = "reads at a time"
    PURCHASE = "purchase"


def service_levers(service: Service, hosts: Iterable[Host]) -> Iterator[Lever]:
    """Everything that could be changed about a service.

    Parameters
    ----------
    service : Service
        As it stands.
    hosts : iterable of Host
        Other machines of its cloud, those to try first in front.
    """
    yield from _counts(service)
    if service.one_pass is not None:
        yield from _batches(service)
    else:
        yield from _spread(service)
        yield from _numbers(service)
        yield from _iterations(service)
        yield from _ways(service)
    if service.reading is not None:
        more = MORE_READS * int(service.reading.job.loader.workers)
        what = f"{more} reads at a time on each machine"
        yield _lever(ServiceKind.READS, what, {"load.inputs.readers": more})
    for purchase, note in BOUGHT.items():
        if service.cost.price is None and service.cost.purchase is not purchase:
            what = f"machines bought as {purchase}"
            yield _lever(ServiceKind.PURCHASE, what, {"cost.purchase": str(purchase)}, note)
    for host in hosts:
        yield _machine(service, host)


def _lever(kind: ServiceKind, what: str, settings: dict[str, Plain], note: str = "") -> Lever:
    return Lever(kind=kind, what=what, settings=settings, note=note)


def _counts(service: Service) -> Iterator[Lever]:
    """More or fewer machines, each with as many replicas as now."""
    count, serving = service.group.count, service.serving
    if serving.autoscaling is not None or serving.replicas % count:
        return
    each, before = serving.replicas // count, serving.prefill
    for other in sorted(
        {count // 4, count // 2, count - 1, count + 1, count + 2, 2 * count, 4 * count}
    ):
        if other < 1 or other == count or (before is not None and before.replicas % count):
            continue
        settings: dict[str, Plain] = {"hardware.count": other, "serving.replicas": other * each}
        if before is not None:
            settings["serving.prefill.replicas"] = other * before.replicas // count
        machines = f"{other} machine{'s' if other > 1 else ''} in place of {count}"
        yield _lever(ServiceKind.COUNT, machines, settings)


def _spread(service: Service) -> Iterator[Lever]:
    """Replicas and tensor degrees that fill the accelerators, and prompts on replicas apart."""
    serving, group = service.serving, service.group
    if serving.prefill is not None or serving.autoscaling is not None:
        return
    for degree in DEGREES:
        replicas = group.count * (group.gpus_per_host // degree)
        if (degree == serving.tensor and replicas == serving.replicas) or replicas < 1:
            continue
        kind = ServiceKind.REPLICAS if degree == serving.tensor else ServiceKind.TENSOR
        what = f"{replicas} replica{'s' if replicas > 1 else ''} of {degree}"
        settings: dict[str, Plain] = {"serving.tensor": degree, "serving.replicas": replicas}
        yield _lever(kind, f"{what} accelerator{'s' if degree > 1 else ''} each", settings)
    before = serving.replicas // 2
    if before:
        settings = {"serving.prefill.replicas": before}
        settings["serving.replicas"] = serving.replicas - before
        yield _lever(ServiceKind.PREFILL, f"prompts on {before} of the replicas alone", settings)


def _numbers(service: Service) -> Iterator[Lever]:
    """Weights and cache in 8 bits."""
    note = "check the answers' quality"
    if service.serving.weights is not Precision.FP8:
        settings: dict[str, Plain] = {"serving.weights": "fp8"}
        yield _lever(ServiceKind.PRECISION, "weights in fp8", settings, note)
        both: dict[str, Plain] = {**settings, "serving.cache": "fp8"}
        yield _lever(ServiceKind.PRECISION, "weights and cache in fp8", both, note)
    elif service.serving.cache is not Precision.FP8:
        yield _lever(ServiceKind.PRECISION, "cache in fp8", {"serving.cache": "fp8"}, note)


def _iterations(service: Service) -> Iterator[Lever]:
    """Other bounds on the tokens of an iteration and on the requests that run at once."""
    tokens, requests = service.serving.max_batched_tokens, service.serving.max_sequences
    for other in (2 * tokens, tokens // 4):
        what = f"iterations of up to {other:,} tokens"
        yield _lever(ServiceKind.ITERATION, what, {"serving.max_batched_tokens": other})
    more = f"up to {2 * requests:,} requests at once"
    yield _lever(ServiceKind.ITERATION, more, {"serving.max_sequences": 2 * requests})


def _ways(service: Service) -> Iterator[Lever]:
    """Guessed tokens, and replicas that come and go with a load that does."""
    serving = service.serving
    if serving.speculation is None:
        settings: dict[str, Plain] = {
            "serving.speculation.drafts": GUESSES,
            "serving.speculation.acceptance": ACCEPTED,
        }
        note = "that share is a guess"
        what = f"{GUESSES} guessed tokens an iteration, {ACCEPTED:.0%} accepted"
        yield _lever(ServiceKind.SPECULATION, what, settings, note)
    if serving.autoscaling is None and isinstance(service.load.arrivals, RateCurve):
        aim: dict[str, Plain] = {"serving.autoscaling.target": PER_REPLICA}
        yield _lever(ServiceKind.SCALING, "machines that come and go with the load", aim)


def _batches(service: Service) -> Iterator[Lever]:
    """Other largest batches, and none that wait for others."""
    most, rules = service.serving.max_batched_tokens, service.serving.dynamic
    for other in (2 * most, most // 2):
        if other:
            what = f"batches of up to {other:,}"
            yield _lever(ServiceKind.BATCH, what, {"serving.max_batch": other})
    if rules is not None and rules.delay and not rules.preferred:
        what = "batches that never wait for others"
        yield _lever(ServiceKind.BATCH, what, {"serving.queue_delay": "0 s"})


def _degree(service: Service, host: Host) -> int:
    """Accelerators of a machine that hold the weights with room for a cache: as now, or more."""
    weights = service.model.parameters * service.serving.weights.bytes_per_element
    memory, there = host.ram if host.gpu is None else host.gpu.memory, max(1, host.gpu_count)
    degree = min(service.serving.tensor, there)
    while 2 * degree <= there and weights > HELD * degree * memory:
        degree *= 2
    return degree


def _machine(service: Service, host: Host) -> Lever:
    """One machine of another kind, as full of replicas as it gets."""
    settings: dict[str, Plain] = {"hardware.machine": host.name, "hardware.count": 1}
    if service.one_pass is None:
        degree = _degree(service, host)
        replicas = max(1, host.gpu_count) // degree
        settings |= {"serving.tensor": degree, "serving.replicas": replicas}
    else:
        settings["serving.replicas"] = max(1, host.gpu_count)
    name = short_name(host.name)
    gpu = "no accelerator" if host.gpu is None else f"{host.gpu_count} x {host.gpu.name}"
    gpu = gpu.replace("gpu/", "")
    return _lever(ServiceKind.MACHINE, f"one {name} ({gpu}) as the machine", settings)
