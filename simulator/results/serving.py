"""The types of the prediction of a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from simulator.results.prediction import StorageBill
from simulator.schema.provenance import Assumption
from simulator.schema.serving import Service
from simulator.units import (
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
    """Latencies, rates and shares of a run.

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
    """Which parts of saturation are computed.

    `NEEDED`: nothing where the load has an end, whose answers do not depend on it. `ROUGHLY`: the
    same from a shorter run, as one of many services needs it.
    """

    WHOLE = "whole"
    NEEDED = "needed"
    ROUGHLY = "roughly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The most requests and output tokens a second that the replicas complete sustainably.

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
    """Memory of one device by item [B], and the capacity of the cache [tokens]."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    cache_tokens: int

    @property
    def total(self) -> Bytes:
        """All of it with a full cache [B]."""
        return sum(self.items.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCost:
    """Cost of machines [$/s], tokens and requests [$].

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
    """Mean power of all machines [W], and energy at the plugs of tokens and requests [J].

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
    does not fit, or where it was not requested (see `AtSaturation`). `meets` says for each limit
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
