"""Types of the prediction of a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from simulator.records import dataclass
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
"""Name of all limits of the SLO combined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Distribution of a latency over requests [s].

    `at_slo` is the quantile at the share of requests that must meet the SLO.
    """

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p99: Seconds
    at_slo: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Latencies, rates and utilizations of a simulated service.

    `first_token` is the time from sending a request to its first token (TTFT), `per_token` the time
    per later token (TPOT), `end_to_end` the time to the last token, `wait` the time until the
    request is first scheduled [s]. `requests` is the number of requests evaluated. Rates are of
    requests and tokens over all replicas. `within` is the share of requests that meet each limit of
    the SLO, `attainment` the share that meet all, `goodput` the rate of these requests.

    `running` and `waiting` are mean numbers of requests over all replicas, `replicas` is the mean
    number of replicas; `busy` is the utilization of a replica; `cache_mean` and `cache_peak` are
    mean and maximum of the used share of the KV cache. With separate prefill replicas these are
    values of the decode replicas, `busy_of` has the utilization of both kinds, and `transfer` is
    the mean time to transfer the KV cache [s]. `links` is the utilization of each link, by its
    kind, and of the store of requests. `host_busy` is the utilization of the host's threads by
    requests before they are batched. `half_width` is the half-width of the 95% confidence interval
    of the mean end-to-end latency, by batch means [s].
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
    """Parts of saturation to compute.

    `WHOLE`: with intervals, also the highest rate within the SLO. `NEEDED`: none for a load with a
    fixed number of requests, whose latencies do not depend on it. `ROUGHLY`: as `NEEDED`, from a
    shorter simulation, for searches over many services.
    """

    WHOLE = "whole"
    NEEDED = "needed"
    ROUGHLY = "roughly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Largest rates of requests and output tokens that the replicas can sustain [/s].

    `headroom` is the factor by which the load may grow until saturation, `drift` the growth of the
    queue in requests per second beyond it; both None for a closed-loop load. `within_slo` is the
    highest rate of requests at which the SLO is met; None without limits, without a rate of
    arrivals, or if it was not requested.
    """

    request_rate: PerSecond
    output_rate: PerSecond
    headroom: float | None
    drift: PerSecond | None
    within_slo: PerSecond | None = None

    @property
    def is_passed(self) -> bool:
        """True if the load is beyond saturation."""
        return self.drift is not None and self.drift > 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory of one device by item [B], and the capacity of the KV cache [tokens]."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    cache_tokens: int

    @property
    def total(self) -> Bytes:
        """Memory used with a full KV cache [B]."""
        return sum(self.items.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCost:
    """Cost of machines [$/s], tokens and requests [$].

    None if no price is known, or if there is no steady state. `stores` is the bill of the store
    that holds requests and answers, over all requests; its known charges are included in the costs
    of tokens and requests.
    """

    per_second: UsdPerSecond | None
    stores: StorageBill | None = None
    per_million_output_tokens: Usd | None = None
    per_million_tokens: Usd | None = None
    per_thousand_requests: Usd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEnergy:
    """Mean power of all machines [W], and their energy per tokens and requests [J].

    `emitted_per_thousand_requests` are emissions of the grid, including building losses [kg]. None
    if a power or the grid is unknown, or if there is no steady state.
    """

    power: Watts | None = None
    per_million_output_tokens: Joules | None = None
    per_million_tokens: Joules | None = None
    per_thousand_requests: Joules | None = None
    emitted_per_thousand_requests: Kilograms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePrediction:
    """Prediction of one service: memory, latencies, saturation, cost, energy and warnings.

    `answered` is None if no request can be served: the model does not fit, or the load is beyond
    saturation, where latencies grow without limit. `saturation` is None if the model does not fit,
    or if it was not requested (see `AtSaturation`). `meets` maps each limit of the SLO to whether
    enough requests meet it.
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
        """True if the model and one request fit the memory of the devices."""
        return self.saturation is not None or self.answered is not None

    @property
    def keeps_limits(self) -> bool:
        """True if the load is served within all limits of the SLO."""
        return self.answered is not None and all(self.meets.values())
