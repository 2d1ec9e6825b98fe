"""What the requests of a run saw: latencies, rates, the share that keeps the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.equations.serving import little
from simulator.results.serving import Answered, Latency
from simulator.schema.serving import Slo
from simulator.serving.engine import Counts
from simulator.serving.load import Requests
from simulator.units import Seconds

Times = npt.NDArray[np.float64]
BATCHES: Final = 30
"""Batches of equal numbers of requests whose means give the half-width."""
QUANTILE: Final = 2.045
"""Of Student's distribution with `BATCHES` - 1 degrees of freedom, for 95%."""
ENDS: Final = 0.1
"""Share of the requests of a steady run that are left out at its beginning and at its end."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run added up to: replicas that write answers, and those that compute prompts alone.

    `transfer` is the mean time of a request between the two [s], `threads` how many of the host
    each replica has. `links` is the share of the time in which links carry something, by name.
    """

    counts: Counts
    prompts: Counts | None = None
    transfer: Seconds = 0.0
    threads: float = 1.0
    links: Mapping[str, float] = field(default_factory=dict)


def answered(  # noqa: PLR0913 - what a run left, and how it is read
    requests: Requests,
    ran: Ran,
    slo: Slo,
    *,
    blocks: int,
    steady: bool,
    lag: float = 0.0,
) -> Answered:
    """What the requests of all replicas saw.

    Parameters
    ----------
    requests : Requests
        All of them, answered.
    ran : Ran
        What their run added up to.
    slo : Slo
        The limits.
    blocks : int
        Blocks of the cache of one replica.
    steady : bool
        Whether the beginning and the end are left out; a benchmark or a trace counts whole.
    lag : float
        Iterations that pass until a token reaches the client; each takes as long as those of the
        request's own tokens.
    """
    columns = _columns(requests)
    counted = _counted(columns["arrivals"], steady=steady)
    first, each, whole, waited = _times(columns, counted, lag)
    answers = columns["outputs"][counted]
    duration = _duration(columns, counted, steady=steady)
    rate = len(first) / duration
    kept = _kept({"first_token": first, "per_token": each, "end_to_end": whole}, slo)
    share = float(np.logical_and.reduce([*kept.values(), whole >= 0.0]).mean())
    counts = ran.counts
    provided = max(counts.provided, 1e-12)
    groups = {} if ran.prompts is None else {"prompts": ran.prompts, "answers": counts}
    return Answered(
        requests=len(first),
        duration=duration,
        first_token=_latency(first),
        per_token=_latency(each[answers > 1.0]),
        end_to_end=_latency(whole),
        wait=_latency(waited),
        request_rate=rate,
        prompt_rate=float(columns["prompts"][counted].sum()) / duration,
        output_rate=float(answers.sum()) / duration,
        within={name: float(each_kept.mean()) for name, each_kept in kept.items()},
        attainment=share,
        goodput=share * rate,
        running=float(little(rate, (whole - waited).mean())),
        waiting=float(little(rate, waited.mean())),
        busy=counts.busy / provided,
        busy_of={name: each.busy / max(each.provided, 1e-12) for name, each in groups.items()},
        links=ran.links,
        transfer=ran.transfer,
        host_busy=counts.prepared / (provided * ran.threads),
        replicas=provided / max(counts.end, 1e-12),
        cache_mean=counts.held / (provided * blocks),
        cache_peak=counts.peak / blocks,
        batch=(counts.decoded or counts.prefilled) / max(1, counts.iterations),
        iterations=counts.iterations,
        preemptions=counts.preemptions,
        half_width=half_width(whole),
    )


def _times(columns: Mapping[str, Times], counted: slice, lag: float) -> tuple[Times, ...]:
    """To the first token, for each further one, to the last, and until a request first ran [s]."""
    arrived = columns["arrivals"]
    first = (columns["first"] - arrived)[counted]
    whole = (columns["last"] - arrived)[counted]
    later = columns["outputs"][counted] - 1.0
    each = np.where(later > 0.0, (whole - first) / np.maximum(later, 1.0), 0.0)
    waited = (columns["scheduled"] - arrived)[counted]
    return first + lag * each, each, whole + lag * each, waited


def _duration(columns: Mapping[str, Times], counted: slice, *, steady: bool) -> Seconds:
    """Time over which rates are counted [s]."""
    arrived = columns["arrivals"][counted]
    stop = arrived.max() if steady else columns["last"].max()
    return max(float(stop - arrived.min()), 1e-12)


def half_width(values: Times) -> float:
    """95% half-width of the mean of values in the order of their requests, by batch means."""
    if len(values) < 2 * BATCHES:
        return float(QUANTILE * values.std() / max(1, len(values)) ** 0.5)
    size = len(values) // BATCHES
    means = values[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return float(QUANTILE * means.std(ddof=1) / BATCHES**0.5)


def _columns(requests: Requests) -> dict[str, Times]:
    """All requests in the order of their arrivals, column by column."""
    names = ("arrivals", "prompts", "outputs", "scheduled", "first", "last")
    return {name: np.asarray(getattr(requests, name), dtype=float) for name in names}


def _counted(arrived: Times, *, steady: bool) -> slice:
    left_out = int(ENDS * len(arrived)) if steady else 0
    return slice(left_out, len(arrived) - left_out)


def _latency(times: Times) -> Latency:
    if not len(times):
        return Latency(mean=0.0, p50=0.0, p90=0.0, p99=0.0)
    half, most, nearly_all = np.quantile(times, (0.5, 0.9, 0.99)).tolist()
    return Latency(mean=float(times.mean()), p50=half, p90=most, p99=nearly_all)


def _kept(latencies: Mapping[str, Times], slo: Slo) -> dict[str, npt.NDArray[np.bool_]]:
    """Which requests keep each limit."""
    return {name: latencies[name] <= limit for name, limit in slo.limits.items()}
