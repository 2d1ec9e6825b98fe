"""What a prediction of serving holds. Every face (terminal, JSON, sweep) renders these types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from simulator.results.prediction import StorageBill
from simulator.schema.serving import Service
from simulator.uncertainty.provenance import Assumption
from simulator.units import (
    HOUR,
    KILOWATT_HOUR,
    Bytes,
    Joules,
    Kilograms,
    PerSecond,
    Seconds,
    Usd,
    UsdPerSecond,
    Watts,
)

TOGETHER: Final = "together"
"""Among limits: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A latency over requests [s]."""

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p99: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the requests of a run saw, and what it came to.

    `first_token` is from sending a request to its first token, `per_token` from there to the last
    over the tokens after the first, `end_to_end` to the last, `wait` until it first runs [s].
    `requests` are those counted. Rates are of requests and of tokens over all replicas.
    `within` is the share of requests that keep each limit, `attainment` that keep all, `goodput`
    the rate of these.
    `running` and `waiting` are requests, on average, over all replicas, of which there are
    `replicas` on average; `busy` is the share of time in which a replica computes; `cache` the
    share of its cache in use, on average and at most. Where prompts are computed on replicas of
    their own, these figures are of those that write answers, `busy_of` has that share for both
    kinds, and `transfer` is the mean time of keys and values between them [s]. `links` has for
    each link, by its kind, and for the store of requests the share of the time in which it carries
    something. `host_busy` is
    the share of the time of the host's threads that goes into requests before their batches.
    `half_width` is the 95% half-width of the mean end-to-end latency by batch means.
    """

    requests: int
    duration: Seconds
    first_token: Latency
    per_token: Latency
    end_to_end: Latency
    wait: Latency
    request_rate: PerSecond
    prompt_rate: PerSecond
    output_rate: PerSecond
    within: Mapping[str, float]
    attainment: float
    goodput: PerSecond
    running: float
    waiting: float
    replicas: float
    busy: float
    busy_of: Mapping[str, float]
    links: Mapping[str, float]
    transfer: Seconds
    host_busy: float
    cache_mean: float
    cache_peak: float
    batch: float
    iterations: int
    preemptions: int
    half_width: Seconds


class AtSaturation(StrEnum):
    """What of a service at saturation is worked out.

    `NEEDED`: nothing where the load has an end, whose answers do not hang on it. `ROUGHLY`: the
    same from a shorter run, as one of many services needs it.
    """

    WHOLE = "whole"
    NEEDED = "needed"
    ROUGHLY = "roughly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The most requests and output tokens a second that the replicas complete for ever.

    `headroom` is by what factor the load may grow until then, `drift` by how many requests a
    second the queue grows where it is beyond; both None for a load that follows its answers.
    """

    request_rate: PerSecond
    output_rate: PerSecond
    headroom: float | None
    drift: PerSecond | None

    @property
    def is_passed(self) -> bool:
        """Whether the load is beyond saturation."""
        return self.drift is not None and self.drift > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """What one device holds [B], by item, and the tokens its replica's cache has room for."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    cache_tokens: int

    @property
    def total(self) -> Bytes:
        """All of it with a full cache [B]."""
        return sum(self.items.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCost:
    """What the machines cost [$/s], and tokens and requests [$].

    None where no price is known, or nothing is steady. `stores` is the bill of the store that
    requests are read from and answers written to, over all of them; as far as it is known, tokens
    and requests cost their part of it, too.
    """

    per_second: UsdPerSecond | None
    stores: StorageBill | None = None
    per_million_output_tokens: Usd | None = None
    per_million_tokens: Usd | None = None
    per_thousand_requests: Usd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEnergy:
    """What all machines draw on average [W], and the energy at their plugs of what is answered [J].

    `emitted_per_thousand_requests` is what the grid emits for these and their part of the building
    [kg]. None where a power or the grid is not known, or nothing is steady.
    """

    power: Watts | None = None
    per_million_output_tokens: Joules | None = None
    per_million_tokens: Joules | None = None
    per_thousand_requests: Joules | None = None
    emitted_per_thousand_requests: Kilograms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePrediction:
    """Everything `plan` says about one service.

    `answered` is None where nothing can be answered: the model does not fit, or the load is beyond
    saturation, where latencies grow for as long as one waits. `saturation` is None where the model
    does not fit, or where nobody asked for it (see `AtSaturation`). `meets` says for each limit
    whether enough requests keep it.
    """

    service: Service
    seed: int
    memory: DeviceMemory
    answered: Answered | None
    saturation: Saturation | None
    cost: ServiceCost
    energy: ServiceEnergy = ServiceEnergy()
    meets: Mapping[str, bool] = field(default_factory=dict)
    interval: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the model and one request fit the memory of the devices."""
        return self.saturation is not None or self.answered is not None

    @property
    def keeps_limits(self) -> bool:
        """Whether the load is served within all limits."""
        return self.answered is not None and all(self.meets.values())


def metrics(prediction: ServicePrediction) -> dict[str, float | None]:
    """All figures of a prediction by their dotted path; seconds, bytes, dollars, tokens.

    A figure that has no value (beyond saturation, without a price) is None. A model that answers in
    one pass has none of tokens and of a cache.
    """
    service = prediction.service
    return {name: value for name, value in _figures(prediction) if is_told(service, name)}


def is_told(service: Service, name: str) -> bool:
    """Whether a figure means something for a service."""
    return service.one_pass is None or not name.startswith(_OF_TOKENS)


def is_share(name: str) -> bool:
    """Whether a figure is a share of a whole: of requests, or of a resource."""
    return is_utilization(name) or name.startswith(("slo.within.", "slo.attainment"))


def is_utilization(name: str) -> bool:
    """Whether a figure is the share of a resource that is in use."""
    return name.startswith("utilization.")


def answered_metrics(answered: Answered) -> dict[str, float]:
    """The figures of a run by their dotted path."""
    found: dict[str, float] = {}
    for name, value in asdict(answered).items():
        if name == "within":
            found |= {f"slo.within.{key}": share for key, share in value.items()}
        elif name in {"busy_of", "links"}:
            found |= {f"utilization.{key}": share for key, share in value.items()}
        elif name == "transfer":
            found |= {"transfer_s.mean": value} if answered.busy_of else {}
        elif isinstance(value, dict):
            found |= {f"{name}_s.{key}": each for key, each in value.items()}
        else:
            found[_PATHS.get(name, name)] = value
    return found


def saturation_metrics(saturation: Saturation) -> dict[str, float | None]:
    """The figures of saturation by their dotted path."""
    return {
        "saturation.requests_per_s": saturation.request_rate,
        "saturation.output_tokens_per_s": saturation.output_rate,
        "saturation.headroom": saturation.headroom,
        "saturation.drift_per_s": saturation.drift,
    }


def work_cost_metrics(cost: ServiceCost) -> dict[str, float | None]:
    """What tokens and requests cost, by their dotted path; the price of machines is no result."""
    return {
        "cost.usd_per_million_output_tokens": cost.per_million_output_tokens,
        "cost.usd_per_million_tokens": cost.per_million_tokens,
        "cost.usd_per_thousand_requests": cost.per_thousand_requests,
        **_of_stores(cost.stores),
    }


def _of_stores(bill: StorageBill | None) -> dict[str, float | None]:
    """The bill of a store by its dotted paths, those of training; nothing where there is none."""
    if bill is None:
        return {}
    return {
        "cost.storage.usd": bill.total,
        "cost.storage.rent_usd": bill.rent,
        "cost.storage.requests_usd": bill.requests,
        "cost.storage.egress_usd": bill.egress,
    }


def energy_metrics(energy: ServiceEnergy) -> dict[str, float | None]:
    """What machines draw and what tokens and requests take of it, by their dotted path."""
    each = {
        "million_output_tokens": energy.per_million_output_tokens,
        "million_tokens": energy.per_million_tokens,
        "thousand_requests": energy.per_thousand_requests,
    }
    found = {
        f"energy.kwh_per_{of}": None if value is None else value / KILOWATT_HOUR
        for of, value in each.items()
    }
    emitted = energy.emitted_per_thousand_requests
    found |= {"energy.kg_co2e_per_thousand_requests": emitted}
    return {"energy.power_w": energy.power, **found}


_OF_TOKENS: Final = (
    *("first_token_s", "per_token_s", "output_tokens", "prompt_tokens", "cache_tokens"),
    *("utilization.cache", "saturation.output_tokens", "cost.usd_per_million", "preemptions"),
    *(
        "energy.kwh_per_million",
        "gpu_memory_bytes.cache",
        "slo.within.first_token",
        "slo.within.per_token",
    ),
)
"""Beginnings of the names of figures of tokens and of their cache."""
_PATHS = {
    "duration": "duration_s",
    "request_rate": "requests_per_s",
    "prompt_rate": "prompt_tokens_per_s",
    "output_rate": "output_tokens_per_s",
    "attainment": "slo.attainment",
    "goodput": "slo.goodput_per_s",
    "running": "queue.running",
    "waiting": "queue.waiting",
    "replicas": "replicas.mean",
    "host_busy": "utilization.host",
    "batch": "queue.decoding_per_iteration",
    "busy": "utilization.accelerator",
    "cache_mean": "utilization.cache_mean",
    "cache_peak": "utilization.cache_peak",
    "half_width": "end_to_end_s.half_width",
}


def _figures(prediction: ServicePrediction) -> Iterator[tuple[str, float | None]]:
    if prediction.answered is not None:
        yield from answered_metrics(prediction.answered).items()
    if prediction.saturation is not None:
        yield from saturation_metrics(prediction.saturation).items()
    memory = prediction.memory
    for name, size in memory.items.items():
        yield f"gpu_memory_bytes.{name}", size
    yield "gpu_memory_bytes.total", memory.total
    yield "gpu_memory_bytes.capacity", memory.capacity
    yield "cache_tokens", float(memory.cache_tokens)
    cost = prediction.cost
    yield "cost.usd_per_hour", None if cost.per_second is None else HOUR * cost.per_second
    yield from work_cost_metrics(cost).items()
    yield from energy_metrics(prediction.energy).items()
