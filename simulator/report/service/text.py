"""A service: what it is, whether it keeps its limits, its latencies, rates, memory and cost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from simulator.report.format.table import Cell, Table
from simulator.report.labels import dated
from simulator.report.numbers import (
    HALF_PERCENT,
    digits_between,
    quantity,
    share_known,
    significant,
)
from simulator.report.prediction.json import SCHEMA, assumption_object
from simulator.report.prediction.setting import machine_called
from simulator.report.prediction.summary import next_section
from simulator.report.service.links import links_text, told_of
from simulator.report.text import WIDTH, columns, labelled, section, wrapped
from simulator.results.metrics import service_figures
from simulator.results.power import is_known
from simulator.results.prediction import StorageBill
from simulator.results.serving import Answered, Latency, ServicePrediction
from simulator.schema.hardware.naming import short_name
from simulator.schema.serving import (
    Autoscaling,
    ClosedLoop,
    Dynamic,
    Lengths,
    OpenLoop,
    RateCurve,
    Service,
    Serving,
    Spread,
    Trace,
)
from simulator.serving.cost import listed_price
from simulator.units import (
    BYTE,
    KILOGRAM,
    KILOWATT_HOURS,
    PERCENT,
    SECOND,
    THOUSAND,
    USD,
    USD_PER_SECOND,
    WATT,
    PerSecond,
    Unit,
    show,
)
from simulator.version import __version__

LATENCIES: Final = {
    "first_token": "first token (TTFT)",
    "per_token": "per token (TPOT)",
    "end_to_end": "end to end",
    "wait": "of it waiting",
}
MOST_TOLD: Final = 3
"""Assumptions in a report that is no full one; that on the time of a batch comes first."""
MOST_LINES: Final = 45
"""Of a report that is no full one: a longer one leaves out blank lines, then the last steps."""
CACHED: Final = "cache of a replica"
CAPACITY: Final = "it has"
_QUANTILES: Final = ("mean", "p50", "p90", "p99")
_LIMITS: Final = {
    "first_token": "first token",
    "per_token": "per token",
    "end_to_end": "end to end",
}


_NEARLY: Final = 0.99
_COSTS: Final = {
    "a million output tokens": "cost.usd_per_million_output_tokens",
    "a million tokens": "cost.usd_per_million_tokens",
    "a thousand requests": "cost.usd_per_thousand_requests",
}
_EMISSIONS: Final = {"emitted for these": "energy.kg_co2e_per_thousand_requests"}
_ALL_COST: Final = {"for all of it": "cost.usd_per_thousand_requests"}
_ALL_ENERGY: Final = {"for all of it": "energy.kwh_per_thousand_requests"}
_ENERGIES: Final = {
    "a million output tokens": "energy.kwh_per_million_output_tokens",
    "a million tokens": "energy.kwh_per_million_tokens",
    "a thousand requests": "energy.kwh_per_thousand_requests",
}


def as_text(
    prediction: ServicePrediction,
    next_steps: Sequence[str] = (),
    *,
    width: int = WIDTH,
    full: bool = False,
) -> str:
    """The report, at most `width` columns wide.

    Parameters
    ----------
    prediction : ServicePrediction
        With its intervals.
    next_steps : sequence of str
        What to do next, one text each, best first; none: the section is left out. A short report
        tells as many as it has room for.
    width : int
        Columns.
    full : bool
        Also all assumptions with their sources.
    """
    lines = _lines(prediction, next_steps, width, full=full)
    if not full and next_steps and len(lines) > MOST_LINES:
        lines = [line for line in lines if line]
        if len(lines) > MOST_LINES and len(next_steps) > 1:
            return as_text(prediction, next_steps[:-1], width=width)
    return "\n".join(lines)


def _lines(
    prediction: ServicePrediction, next_steps: Sequence[str], width: int, *, full: bool
) -> list[str]:
    service = prediction.service
    title = f"{service.name}: {service.title}" if service.title else service.name
    return [
        *wrapped(title, width=width),
        *labelled(rows := setting_rows(service), 1 + max(len(name) for name, _ in rows), width),
        "",
        *wrapped(verdict(prediction), hang="", width=width),
        *section("Latency", _latency_lines(prediction)),
        *section("Rates", columns(list(rate_rows(prediction)), "<<")),
        *_memory_lines(prediction),
        *section("Cost and energy", [*columns(_bill_rows(prediction), "<<<"), *_store(prediction)]),
        *section("The answer hangs on", list(_assumptions(prediction, full=full))),
        *next_section(next_steps, width),
        *section("Warnings", [line for text in prediction.warnings for line in wrapped(text)]),
    ]


def setting_rows(service: Service) -> list[tuple[str, str]]:
    """What is served, on what, to whom."""
    group, serving = service.group, service.serving
    gpu = "" if group.host.gpu is None else short_name(group.host.gpu.name).upper()
    machine = machine_called(group.host, group.gpus_per_host)
    each = " each" if group.count > 1 else ""
    numbers = f"weights {serving.weights}"
    if service.one_pass is None:
        numbers += f", cache {serving.cache}"
    rows = [
        ("machines", f"{group.count} x {machine}{each}"),
        ("model", f"{service.model.name}, {numbers}"),
        ("engine", engine_called(serving, gpu)),
        ("load", load_called(service)),
    ]
    if serving.prefill is not None:
        before = serving.prefill
        called = f"{before.replicas} of {before.tensor} x {gpu}; the others decode"
        rows.append(("prompts on", called))
    if serving.autoscaling is not None:
        rows.append(("scaling", scaling_called(serving.autoscaling)))
    return [*rows, ("limits", limits_called(service))] if service.slo.limits else rows


def engine_called(serving: Serving, gpu: str) -> str:
    """An engine and how it is set, in words."""
    replicas = f"{serving.replicas} replica{'s' if serving.replicas > 1 else ''}"
    spread = f"{replicas} of {serving.tensor} x {gpu}" if serving.tensor > 1 else replicas
    if serving.attention_groups > 1:
        spread += f" in {serving.attention_groups} attention groups"
    if serving.replicas > 1:
        spread += f", {serving.router}"
    engine = f"{serving.rules.name} {serving.rules.version}: {spread}; "
    if serving.dynamic is not None:
        return f"{engine}{batches_called(serving.dynamic, serving.max_batched_tokens)}"
    if serving.speculation is not None:
        guessed = serving.speculation
        engine += f"{guessed.drafts} guesses leave {guessed.accepted:.3g} tokens an iteration; "
    tokens, requests = f"{serving.max_batched_tokens:,}", f"{serving.max_sequences:,}"
    return f"{engine}iterations of up to {tokens} tokens, {requests} requests"


def batches_called(rules: Dynamic, most: int) -> str:
    """How batches are formed, in words."""
    if math.isinf(rules.delay):
        return f"batches of {most:,}, full ones only"
    preferred = f", {' or '.join(map(str, rules.preferred))} preferred" if rules.preferred else ""
    waits = f", {show(rules.delay, SECOND)} for others" if rules.delay else ""
    return f"batches of up to {most:,}{preferred}{waits}"


def scaling_called(rules: Autoscaling) -> str:
    """Rules of autoscaling in words."""
    target, delay = f"{rules.target:g} requests under way each", show(rules.delay, SECOND)
    return f"{rules.least} to {rules.most} replicas for {target}; a start takes {delay}"


def load_called(service: Service) -> str:
    """The load of a service in words."""
    load, ways = service.load, service.load.arrivals
    if isinstance(ways, Trace):
        return f"a trace of {len(ways.arrivals):,} requests"
    lengths = f"prompts of {_lengths(load.prompt)}, answers of {_lengths(load.output)} tokens"
    if service.one_pass is not None:
        lengths = f"{load.prompt.tokens:,.0f} sample{'s' if load.prompt.tokens > 1.0 else ''} each"
    if isinstance(ways, ClosedLoop):
        think = f" that think {show(ways.think, SECOND)}" if ways.think else ""
        who = "clients" if load.users is None else "users"
        return f"{ways.concurrency:,} {who}{think}, a request each; {lengths}"
    users = "" if load.users is None else f" of {load.users:,} users"
    return f"{_arrivals(ways)}{users}{_read_from(service)}; {lengths}"


def _read_from(service: Service) -> str:
    """From where requests are read, in words; empty where they are there."""
    job = service.reading
    if job is None:
        return ""
    size, store = show(float(job.job.dataset.bytes_per_sample), BYTE, 3), job.site.storage.name
    return f", {size} each read from {short_name(store)}"


def _arrivals(ways: OpenLoop | RateCurve) -> str:
    if isinstance(ways, RateCurve):
        peak, mean = significant(ways.rate, 3), significant(ways.mean, 3)
        return f"{peak} requests/s at the peak, {mean} on average over {show(ways.period, SECOND)}"
    if math.isinf(ways.rate):
        return "all requests at once"
    rate = f"{significant(ways.rate, 3)} requests/s"
    if ways.sources is not None:
        return f"{rate} from {ways.sources:,} sources at equal gaps"
    if math.isinf(ways.burstiness):
        return f"{rate}, evenly spaced"
    return rate if ways.burstiness == 1.0 else f"{rate} in bursts (shape {ways.burstiness:g})"


def _lengths(lengths: Lengths) -> str:
    most = f"{lengths.tokens:,.0f}"
    if lengths.spread is Spread.UNIFORM:
        return f"{int(lengths.ratio * lengths.tokens):,} to {most}"
    return most if lengths.spread is Spread.CONSTANT else f"about {most} ({lengths.spread})"


def limits_called(service: Service) -> str:
    """The limits in words."""
    limits = [f"{_LIMITS[name]} {show(time, SECOND)}" for name, time in service.slo.limits.items()]
    share = f"{significant(PERCENT * service.slo.share, 3)}%"
    return f"{', '.join(limits)} at most for {share} of the requests"


def verdict(prediction: ServicePrediction) -> str:
    """Whether it fits, keeps up and keeps its limits; how much more it could take."""
    saturation, service = prediction.saturation, prediction.service
    if saturation is None:
        return "It does not fit the memory of its devices."
    digits = _digits(prediction, "saturation.requests_per_s")
    most = f"{significant(saturation.request_rate, digits)} requests/s"
    if prediction.answered is None:
        drift = significant(saturation.drift or 0.0, digits)
        return (
            f"The load is beyond saturation: the replicas complete {most}, and the queue grows by "
            f"{drift} requests/s. No latency holds."
        )
    room = ""
    if saturation.headroom is not None:
        more = significant(saturation.headroom, digits)
        room = f" It saturates at {most}{_band(prediction, 'saturation.requests_per_s')}, {more} "
        room += "times the load."
    if not service.slo.limits:
        return f"It keeps up with its load.{room}"
    share = kept_share(prediction.answered.attainment, service.slo.share)
    if prediction.keeps_limits:
        return f"It keeps its limits: {share} of the requests are within all of them.{room}"
    said = f"It does not keep its limits: {share} of the requests are within all of them"
    return f"{said}{_least_kept(prediction.answered, service.slo.share)}.{room}"


def _least_kept(told: Answered, wanted: float) -> str:
    """The limit that most requests miss, and how many keep it; empty where there is one alone."""
    if len(told.within) == 1:
        return ""
    name = min(told.within, key=lambda each: told.within[each])
    return f", {kept_share(told.within[name], wanted)} within that of the {_LIMITS[name]}"


def kept_share(share: float, wanted: float) -> str:
    """A share of requests in whole per cent, nearly all told from all.

    In tenths where more than 99% are wanted.

    Examples
    --------
    >>> kept_share(0.9982, 0.95), kept_share(0.9982, 0.999), kept_share(0.978, 0.95)
    ('over 99%', '99.8%', '98%')
    """
    if wanted > _NEARLY and share < 1.0:
        return f"{math.floor(10.0 * PERCENT * share) / 10.0:g}%"
    return f"over {_NEARLY:.0%}" if 1.0 - HALF_PERCENT <= share < 1.0 else share_known(share)


def _band(prediction: ServicePrediction, name: str) -> str:
    """The 80% interval of a plain number in brackets."""
    ends = prediction.interval.get(name)
    if ends is None or ends["p10"] == ends["p90"]:
        return ""
    low, high = ends["p10"], ends["p90"]
    lower, upper = significant(low or 0.0, 2), "no end" if high is None else significant(high, 2)
    return "" if lower == upper else f" ({lower} to {upper})"


def _latency_lines(prediction: ServicePrediction) -> list[str]:
    return columns(latency_rows(prediction), "<>>>><")


def latency_rows(prediction: ServicePrediction) -> list[tuple[str, ...]]:
    """A head and a row for each latency; none beyond saturation."""
    if prediction.answered is None:
        return []
    rows: list[tuple[str, ...]] = [("", *_QUANTILES, "mean in 4 of 5 cases")]
    left_out = ("first_token", "per_token") if prediction.service.one_pass is not None else ()
    for name, called in LATENCIES.items():
        if name in left_out:
            continue
        latency: Latency = getattr(prediction.answered, name)
        path = f"{name}_s.mean"
        digits = _digits(prediction, path)
        cells = [quantity(getattr(latency, each), SECOND, digits) for each in _QUANTILES]
        rows.append((called, *cells, _time_band(prediction, path)))
    return rows


def latencies_of(service: Service) -> dict[str, str]:
    """The latencies that its tables of choices show, by their heading."""
    if service.one_pass is not None:
        return {"answer p99": "end_to_end"}
    return {"TTFT p99": "first_token", "TPOT p99": "per_token"}


def _digits(prediction: ServicePrediction, name: str) -> int:
    ends = prediction.interval.get(name)
    low, high = (None, None) if ends is None else (ends["p10"], ends["p90"])
    return 2 if low is None or high is None else digits_between(low, high)


def _time_band(prediction: ServicePrediction, name: str) -> str:
    ends = prediction.interval.get(name)
    if ends is None:
        return ""
    low, high = ends["p10"], ends["p90"]
    upper = "no end" if high is None else quantity(high, SECOND, 2)
    return f"{quantity(low or 0.0, SECOND, 2)} to {upper}"


def rate_rows(prediction: ServicePrediction) -> Iterator[tuple[str, str]]:
    """Rates, what is in the system, what an iteration holds."""
    told, at_once = prediction.answered, prediction.service.one_pass is not None
    if told is not None:
        kept = f"{significant(told.goodput, 2)}/s within the limits"
        yield "requests", f"{_rate(prediction, 'requests_per_s', told.request_rate)}, {kept}"
        if not at_once:
            yield "output tokens", _rate(prediction, "output_tokens_per_s", told.output_rate)
        if prediction.service.load.is_bulk:
            time = quantity(told.duration, SECOND, _digits(prediction, "duration_s"))
            yield "all answered", f"after {time}"
        yield (
            "in the system",
            f"{significant(told.running, 2)} running, {significant(told.waiting, 2)} waiting",
        )
        yield from _device_rows(prediction, told)
    found = prediction.saturation
    if found is not None:
        name = "requests_per_s" if at_once else "output_tokens_per_s"
        rate = found.request_rate if at_once else found.output_rate
        called = " requests" if at_once else " output tokens"
        yield "at saturation", _rate(prediction, f"saturation.{name}", rate, called)


def _rate(prediction: ServicePrediction, name: str, rate: PerSecond, of: str = "") -> str:
    """A rate with its interval in brackets."""
    known = significant(rate, _digits(prediction, name))
    return f"{known}{of}/s{_band(prediction, name)}"


def _device_rows(prediction: ServicePrediction, told: Answered) -> Iterator[tuple[str, str]]:
    """What devices and the host do."""
    serving, busy = prediction.service.serving, share_known(told.busy)
    holds = f"{significant(told.batch, 2)} requests decode in it"
    if serving.dynamic is not None:
        holds = f"{significant(told.batch, 2)} samples in it"
    name = "an iteration" if serving.dynamic is None else "a batch"
    yield name, f"{holds}; devices compute {busy} of the time"
    if told.busy_of:
        busy = ", ".join(f"{name} {share_known(each)}" for name, each in told.busy_of.items())
        yield "replicas for", f"{busy} of the time busy"
        yield "keys and values", f"{quantity(told.transfer, SECOND, 2)} from one to the other"
    if links := told_of(told.links):
        yield "links", f"{links_text(links)} of the time busy"
    if serving.host_time:
        yield "host", f"threads {share_known(told.host_busy)} busy with requests before their batch"
    if serving.autoscaling is not None:
        yield "replicas", f"{significant(told.replicas, 2)} on average"
    if serving.dynamic is None:
        yield (
            "cache",
            f"{share_known(told.cache_mean)} used, {share_known(told.cache_peak)} at most",
        )


def memory_rows(prediction: ServicePrediction) -> Iterator[tuple[str, str]]:
    """What a device holds."""
    memory, at_once = prediction.memory, prediction.service.one_pass is not None
    for name, size in memory.items.items():
        if size or not at_once:
            yield "driver" if at_once and name == "graphs" else name, show(size, BYTE, 3)
    yield CAPACITY, show(memory.capacity, BYTE, 3)
    if not at_once:
        yield CACHED, f"{significant(memory.cache_tokens, 3)} tokens"


def _memory_lines(prediction: ServicePrediction) -> list[str]:
    """What a device holds, in a sentence below what it has."""
    rows = dict(memory_rows(prediction))
    capacity, tokens = rows.pop(CAPACITY), rows.pop(CACHED, None)
    held = ", ".join(f"{name} {size}" for name, size in rows.items())
    kept = "" if tokens is None else f"; a replica keeps {tokens}"
    return section(f"Memory of each device, {capacity}", wrapped(held + kept))


def cost_rows(prediction: ServicePrediction) -> Iterator[tuple[str, str]]:
    """What machines, tokens and requests cost."""
    cost = prediction.cost
    if cost.per_second is None:
        yield "machines", "no price known"
        return
    listed = listed_price(prediction.service)
    of_date = "" if listed is None else dated(listed)
    if prediction.service.owned is not None:
        of_date = " (owned)"
    yield "machines", f"{show(cost.per_second, USD_PER_SECOND)}{of_date}"
    told, serving = prediction.answered, prediction.service.serving
    if told is not None and serving.autoscaling is not None and prediction.service.owned is None:
        share = told.replicas / serving.replicas
        yield "on average", show(share * cost.per_second, USD_PER_SECOND, 3)
    if told is not None and prediction.service.load.is_bulk:
        yield from _work_rows(prediction, _ALL_COST, USD, told.requests / THOUSAND)
    yield from _work_rows(prediction, _COSTS, USD)


def _store(prediction: ServicePrediction) -> list[str]:
    """What the store of requests charges, in a sentence; nothing where there is none."""
    bill = prediction.cost.stores
    return [] if bill is None else wrapped(f"the store, of all of it: {store_called(bill)}")


def store_called(bill: StorageBill) -> str:
    """What a store charges for all requests, and what of it no source states a price for.

    Parts of less than half a per cent are left out.

    Examples
    --------
    >>> store_called(StorageBill(known=0.05, requests=0.04, egress=0.01, rent=0.00001))
    '$0.05 (requests $0.04, bytes that leave $0.01)'
    >>> store_called(StorageBill(total=None, rent=None))
    'rent not known'
    """
    parts = {"rent": bill.rent, "requests": bill.requests, "bytes that leave": bill.egress}
    least = HALF_PERCENT * bill.known
    worth = {name: usd for name, usd in parts.items() if usd is not None and usd > least}
    paid = [f"{name} {quantity(usd, USD, 2)}" for name, usd in worth.items()]
    missing = ", ".join(name for name, usd in parts.items() if usd is None)
    of = f" ({', '.join(paid)})" if paid else ""
    known = f"{quantity(bill.known, USD, 2)}{of}" if bill.known or not missing else ""
    return "; ".join(text for text in (known, f"{missing} not known" if missing else "") if text)


def _bill_rows(prediction: ServicePrediction) -> list[tuple[str, str, str]]:
    """Costs and energies side by side, by what they are of."""
    costs, energies = dict(cost_rows(prediction)), dict(energy_rows(prediction))
    return [(of, costs.get(of, ""), energies.get(of, "")) for of in {**costs, **energies}]


def energy_rows(prediction: ServicePrediction) -> Iterator[tuple[str, str]]:
    """What machines draw, and what tokens and requests take of it."""
    power, told = prediction.energy.power, prediction.answered
    if power is None:
        if prediction.fits and not is_known(prediction.service.group):
            yield "machines", "not known: the profile of the accelerator states no power"
        return
    yield from _work_rows(prediction, {"machines": "energy.power_w"}, WATT)
    if told is not None and prediction.service.load.is_bulk:
        yield from _work_rows(prediction, _ALL_ENERGY, KILOWATT_HOURS, told.requests / THOUSAND)
    yield from _work_rows(prediction, _ENERGIES, KILOWATT_HOURS)
    yield from _work_rows(prediction, _EMISSIONS, KILOGRAM)


def _work_rows(
    prediction: ServicePrediction, paths: Mapping[str, str], unit: Unit, times: float = 1.0
) -> Iterator[tuple[str, str]]:
    """So many times figures that are known, with their intervals in brackets."""
    values = service_figures(prediction)
    for called, path in paths.items():
        value = values.get(path)
        if value is not None:
            band = _quantity_band(prediction, path, unit, times)
            yield called, f"{quantity(times * value, unit, 2)}{band}"


def _quantity_band(prediction: ServicePrediction, name: str, unit: Unit, times: float) -> str:
    """The 80% interval of so many times a quantity in brackets."""
    ends = prediction.interval.get(name)
    if ends is None or ends["p10"] == ends["p90"]:
        return ""
    low, high = ends["p10"], ends["p90"]
    upper = "no end" if high is None else quantity(times * high, unit, 2)
    lower = quantity(times * (low or 0.0), unit, 2)
    symbol = lower.rpartition(" ")[2]
    if upper.endswith(f" {symbol}"):
        lower = lower.removesuffix(f" {symbol}")
    return "" if lower == upper else f" ({lower} to {upper})"


def _assumptions(prediction: ServicePrediction, *, full: bool) -> Iterator[str]:
    told = prediction.assumptions
    for one in told if full else told[:MOST_TOLD]:
        source = f" [{one.source.reference}, {one.source.date}]" if full else ""
        yield from wrapped(f"{one.what}: {one.value}{source}")
    if not full and len(told) > MOST_TOLD:
        yield f"plan simulate --full lists all {len(told)}"


def as_object(prediction: ServicePrediction) -> dict[str, Any]:
    """The prediction as plain dictionaries, lists, strings and numbers; SI units."""
    service = prediction.service
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": service.name,
        "mode": "serve",
        "seed": prediction.seed,
        "fits": prediction.fits,
        "keeps_limits": prediction.keeps_limits if service.slo.limits else None,
        "beyond_saturation": prediction.saturation is not None and prediction.saturation.is_passed,
        "engine": {
            "name": service.serving.rules.name,
            "version": service.serving.rules.version,
            "tensor": service.serving.tensor,
            "replicas": service.serving.replicas,
        },
    }
    for name, value in service_figures(prediction).items():
        _place(tree, name.split("."), value)
    tree["interval"] = {name: dict(band) for name, band in prediction.interval.items()}
    tree["assumptions"] = [assumption_object(one) for one in prediction.assumptions]
    tree["warnings"] = list(prediction.warnings)
    return tree


def _place(tree: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def as_json(
    prediction: ServicePrediction, actions: Sequence[Mapping[str, Any]] | None = None
) -> str:
    """The prediction, with what to do next if given, as JSON text without NaN or Infinity."""
    told = as_object(prediction) | ({} if actions is None else {"actions": list(actions)})
    return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)


def as_table(prediction: ServicePrediction) -> Table:
    """Every figure in SI units, a row each, with its interval."""
    rows = tuple(
        (name, value, *_ends(prediction.interval.get(name)))
        for name, value in service_figures(prediction).items()
    )
    return Table(head=("metric", "value", "p10", "p90"), rows=rows)


def _ends(band: Mapping[str, float | None] | None) -> tuple[Cell, Cell]:
    return (None, None) if band is None else (band["p10"], band["p90"])
