"""Levers on a service: machines, replicas, number formats, iterations, batches, purchase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from simulator.schema.accelerators import Precision
from simulator.schema.cost import Purchase
from simulator.schema.goal import Plain
from simulator.schema.machines import Host, Link, short_name
from simulator.schema.serving import OpenLoop, RateCurve, Routing, Service
from simulator.studies.levers.lever import Change, ServiceSituation

TENSOR_DEGREES: Final = (1, 2, 4, 8)
"""Tensor degrees that are tried."""
GUESSES: Final = 3
ACCEPTED: Final = 0.7
"""Guesses of speculative decoding and the share that is accepted: a guess, since it depends on the
draft model and on the texts."""
READS_FACTOR: Final = 4
"""Factor on the requests that are read at a time."""
WEIGHT_SHARE: Final = 0.75
"""Share of the memory that weights may take, next to a cache and activations: a guess."""
REQUESTS_PER_REPLICA: Final = 8.0
"""Requests under way on each replica that autoscaling aims at: a guess to begin with."""
PURCHASES: Final = {
    Purchase.SPOT: "machines may be taken away, which these figures leave out",
    Purchase.RESERVED_1Y: "paid for a year, used or not",
    Purchase.RESERVED_3Y: "paid for three years, used or not",
}
"""Ways to buy that are proposed, with a note on each."""
FASTER: Final = 1.25
"""Factor on rates of hardware that a what-if tries."""
LOAD_FACTORS: Final = (0.5, FASTER, 2.0)
"""Factors on the load that a what-if tries."""


def decodes(situation: ServiceSituation) -> bool:
    """Return whether the model is a language model that generates tokens."""
    return situation.service.one_pass is None


def answers_in_one_pass(situation: ServiceSituation) -> bool:
    """Return whether the model answers each request in one forward pass."""
    return situation.service.one_pass is not None


def has_fixed_replicas(situation: ServiceSituation) -> bool:
    """Return whether all replicas of a language model are equal and their number is fixed."""
    serving = situation.service.serving
    return decodes(situation) and serving.prefill is None and serving.autoscaling is None


# machines and replicas


def other_machine_counts(situation: ServiceSituation) -> Iterator[Change]:
    """Propose more or fewer machines, each with the current number of replicas."""
    service = situation.service
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
        name = f"{other} machine{'s' if other > 1 else ''} instead of {count}"
        yield Change(name, settings)


def other_tensor_degrees(situation: ServiceSituation) -> Iterator[Change]:
    """Propose numbers of replicas and tensor degrees that use all accelerators."""
    serving, group = situation.service.serving, situation.service.group
    for degree in TENSOR_DEGREES:
        replicas = group.count * (group.gpus_per_host // degree)
        if (degree == serving.tensor and replicas == serving.replicas) or replicas < 1:
            continue
        kind = "replicas" if degree == serving.tensor else ""
        name = f"{replicas} replica{'s' if replicas > 1 else ''} of {degree}"
        yield Change(
            f"{name} accelerator{'s' if degree > 1 else ''} each",
            {"serving.tensor": degree, "serving.replicas": replicas},
            kind=kind,
        )


def separate_prefill(situation: ServiceSituation) -> Iterator[Change]:
    """Propose half of the replicas for prefill only."""
    serving = situation.service.serving
    before = serving.replicas // 2
    if before:
        yield Change(
            f"prompts on {before} of the replicas alone",
            {"serving.prefill.replicas": before, "serving.replicas": serving.replicas - before},
        )


def other_hosts(situation: ServiceSituation) -> Iterator[Change]:
    """Propose one machine of another kind, with as many replicas as fit."""
    service = situation.service
    for host in situation.hosts:
        settings: dict[str, Plain] = {"hardware.machine": host.name, "hardware.count": 1}
        if service.one_pass is None:
            degree = _degree(service, host)
            replicas = max(1, host.gpu_count) // degree
            settings |= {"serving.tensor": degree, "serving.replicas": replicas}
        else:
            settings["serving.replicas"] = max(1, host.gpu_count)
        gpu = "no accelerator" if host.gpu is None else f"{host.gpu_count} x {host.gpu.name}"
        yield Change(
            f"one {short_name(host.name)} ({gpu.replace('gpu/', '')}) as the machine", settings
        )


def _degree(service: Service, host: Host) -> int:
    """Return the tensor degree at which weights and KV cache fit: the current one or more."""
    weights = service.model.parameters * service.serving.weights.bytes_per_element
    memory, there = host.ram if host.gpu is None else host.gpu.memory, max(1, host.gpu_count)
    degree = min(service.serving.tensor, there)
    while 2 * degree <= there and weights > WEIGHT_SHARE * degree * memory:
        degree *= 2
    return degree


def other_purchases(situation: ServiceSituation) -> Iterator[Change]:
    """Propose other ways to buy the machines."""
    cost = situation.service.cost
    for purchase, note in PURCHASES.items():
        if cost.price is None and cost.purchase is not purchase:
            yield Change(
                f"buy the machines as {purchase}", {"cost.purchase": str(purchase)}, note=note
            )


# the engine


def lower_precision(situation: ServiceSituation) -> Iterator[Change]:
    """Propose weights and KV cache in 8 bits."""
    serving, note = situation.service.serving, "check the answers' quality"
    if serving.weights is not Precision.FP8:
        settings: dict[str, Plain] = {"serving.weights": "fp8"}
        yield Change("weights in fp8", settings, note=note)
        both: dict[str, Plain] = {**settings, "serving.cache": "fp8"}
        yield Change("weights and cache in fp8", both, note=note)
    elif serving.cache is not Precision.FP8:
        yield Change("cache in fp8", {"serving.cache": "fp8"}, note=note)


def other_iterations(situation: ServiceSituation) -> Iterator[Change]:
    """Propose other limits on the tokens of an iteration and on concurrent requests."""
    serving = situation.service.serving
    tokens, requests = serving.max_batched_tokens, serving.max_sequences
    for other in (2 * tokens, tokens // 4):
        name = f"iterations of up to {other:,} tokens"
        yield Change(name, {"serving.max_batched_tokens": other})
    name = f"up to {2 * requests:,} requests at once"
    yield Change(name, {"serving.max_sequences": 2 * requests})


def speculative_decoding(situation: ServiceSituation) -> Iterator[Change]:
    """Propose speculative decoding with a draft model."""
    if situation.service.serving.speculation is None:
        yield Change(
            f"{GUESSES} guessed tokens an iteration, {ACCEPTED:.0%} accepted",
            {"serving.speculation.drafts": GUESSES, "serving.speculation.acceptance": ACCEPTED},
            note="the accepted share is a guess",
        )


def autoscaled_machines(situation: ServiceSituation) -> Iterator[Change]:
    """Propose autoscaling for a load that varies."""
    service = situation.service
    if service.serving.autoscaling is None and isinstance(service.load.arrivals, RateCurve):
        yield Change(
            "machines that come and go with the load",
            {"serving.autoscaling.target": REQUESTS_PER_REPLICA},
        )


def other_batches(situation: ServiceSituation) -> Iterator[Change]:
    """Propose other maximum batch sizes, and batches that do not wait for more requests."""
    serving = situation.service.serving
    most, rules = serving.max_batched_tokens, serving.dynamic
    for other in (2 * most, most // 2):
        if other:
            name = f"batches of up to {other:,}"
            yield Change(name, {"serving.max_batch": other})
    if rules is not None and rules.delay and not rules.preferred:
        name = "batches that never wait for more requests"
        yield Change(name, {"serving.queue_delay": "0 s"})


def concurrent_reads(situation: ServiceSituation) -> Iterator[Change]:
    """Propose more concurrent reads of inputs."""
    reading = situation.service.reading
    if reading is not None and situation.reads:
        readers = READS_FACTOR * int(reading.job.input.workers)
        yield Change(f"{readers} reads at a time on each machine", {"load.inputs.readers": readers})


# variants for a what-if

Variants = Iterator[tuple[str, Service]]


def _with_host(service: Service, host: Host) -> Service:
    """Return the service on another machine, including the job of a one-pass model."""
    changed = replace(service, group=replace(service.group, host=host))
    if service.one_pass is None:
        return changed
    job = service.one_pass.job
    groups = tuple(replace(group, host=host) for group in job.cluster.groups)
    other = replace(job, cluster=replace(job.cluster, groups=groups))
    return replace(changed, one_pass=replace(service.one_pass, job=other))


def _is_modeled(host: Host) -> bool:
    known = host.cpu.base_clock is not None and host.memory_bandwidth is not None
    return host.gpu is not None or known


def faster_memory(service: Service) -> Variants:
    """Yield the service with a higher memory bandwidth of accelerators, or of RAM without any."""
    host = service.group.host
    if not _is_modeled(host):
        return
    if host.gpu is not None:
        gpu = replace(host.gpu, memory_bandwidth=FASTER * host.gpu.memory_bandwidth)
        changed = replace(host, gpu=gpu)
    else:
        changed = replace(host, memory_bandwidth=FASTER * (host.memory_bandwidth or 0.0))
    yield f"memory bandwidth x{FASTER:g}", _with_host(service, changed)


def faster_arithmetic(service: Service) -> Variants:
    """Yield the service with higher peak rates of accelerators, or a higher clock of cores."""
    host = service.group.host
    if not _is_modeled(host):
        return
    if host.gpu is not None:
        peak = {name: FASTER * rate for name, rate in host.gpu.peak.items()}
        changed = replace(host, gpu=replace(host.gpu, peak=peak))
    else:
        cpu = replace(host.cpu, base_clock=FASTER * (host.cpu.base_clock or 0.0))
        changed = replace(host, cpu=cpu)
    yield f"arithmetic x{FASTER:g}", _with_host(service, changed)


def larger_memory(service: Service) -> Variants:
    """Yield the service with larger GPU memory."""
    host = service.group.host
    if host.gpu is not None:
        gpu = replace(host.gpu, memory=FASTER * host.gpu.memory)
        yield f"device memory x{FASTER:g}", _with_host(service, replace(host, gpu=gpu))


def faster_links(service: Service) -> Variants:
    """Yield the service with faster links between the accelerators of a replica, if known."""
    host = service.group.host
    if service.serving.tensor <= 1:
        return
    if host.peer_link is not None:
        changed = replace(host, peer_link=_faster(host.peer_link))
    elif host.host_link is not None:
        changed = replace(host, host_link=_faster(host.host_link))
    else:
        return
    yield f"links between accelerators x{FASTER:g}", _with_host(service, changed)


def _faster(link: Link) -> Link:
    rate = None if link.achievable is None else FASTER * link.achievable
    return replace(link, peak=FASTER * link.peak, achievable=rate)


def inputs_in_memory(service: Service) -> Variants:
    """Yield the service with inputs in memory instead of a store."""
    if service.reading is not None:
        yield "requests that are there already", replace(service, reading=None)


def _serving(service: Service, **changes: Any) -> Service:  # noqa: ANN401 - of any field
    return replace(service, serving=replace(service.serving, **changes))


def no_overhead(service: Service) -> Variants:
    """Yield the service without the time between iterations."""
    none = dict.fromkeys(("request_overhead", "prompt_overhead", "reply_lag", "host_time"), 0.0)
    yield "no time between iterations", _serving(service, **none)


def least_loaded_routing(service: Service) -> Variants:
    """Yield the service with requests sent to the replica with the fewest requests."""
    if service.serving.replicas > 1:
        changed = _serving(service, router=Routing.LEAST)
        yield "requests to the replica with the fewest", changed


def batch_sizes(service: Service) -> Variants:
    """Yield the service with other maximum batch sizes and waiting times of its batcher."""
    most, rules = service.serving.max_batched_tokens, service.serving.dynamic
    if rules is None:
        return
    for name, size in (("twice", 2 * most), ("half", max(1, most // 2))):
        changed = _serving(service, max_batched_tokens=size, max_sequences=size)
        yield f"{name} the largest batch", changed
    never = replace(rules, delay=0.0, preferred=())
    yield "batches never wait for others", _serving(service, dynamic=never)


def iteration_sizes(service: Service) -> Variants:
    """Yield the service with other limits on tokens per iteration and concurrent requests."""
    serving = service.serving
    tokens, requests = serving.max_batched_tokens, serving.max_sequences
    if serving.dynamic is not None:
        return
    for name, size in (("twice", 2 * tokens), ("half", max(1, tokens // 2))):
        yield f"{name} the tokens of an iteration", _serving(service, max_batched_tokens=size)
    fewer = _serving(service, max_sequences=max(1, requests // 2))
    yield "half the requests at once", fewer


def other_loads(service: Service) -> Variants:
    """Yield the service with other request rates."""
    ways = service.load.arrivals
    if isinstance(ways, RateCurve) or (isinstance(ways, OpenLoop) and math.isfinite(ways.rate)):
        for factor in LOAD_FACTORS:
            arrivals = replace(ways, rate=factor * ways.rate)
            load = replace(service.load, arrivals=arrivals)
            yield f"load x{factor:g}", replace(service, load=load)
