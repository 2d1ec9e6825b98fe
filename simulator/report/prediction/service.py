"""The report of ``plan simulate`` on a service: SLO, latencies, rates, memory and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from simulator.report.document import (
    Cell,
    Document,
    Row,
    Table,
    grid,
    notes,
    rows,
    section,
)
from simulator.report.labels import dated, link_called
from simulator.report.numbers import (
    HALF_PERCENT,
    INTERVAL,
    bracketed,
    digits_between,
    interval,
    quantity,
    share_known,
    significant,
)
from simulator.report.prediction.job import (
    SCHEMA,
    actions_object,
    actions_section,
    assumption_object,
    place,
)
from simulator.report.prediction.rows import machine_called
from simulator.results.cost import listed_price
from simulator.results.energy import is_known
from simulator.results.metrics import service_figures
from simulator.results.prediction import StorageBill
from simulator.results.serving import Answered, Latency, Saturation, ServicePrediction
from simulator.schema.machines import LinkKind, short_name
from simulator.schema.serving import (
    Autoscaling,
    ClosedLoop,
    Dynamic,
    LengthDistribution,
    Lengths,
    OpenLoop,
    RateCurve,
    Service,
    Serving,
    Trace,
)
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

if TYPE_CHECKING:
    from simulator.studies.actions import ServiceAction

LATENCIES: Final = {
    "first_token": "first token (TTFT)",
    "per_token": "per token (TPOT)",
    "end_to_end": "end to end",
    "wait": "queueing",
}
MAX_ASSUMPTIONS: Final = 3
"""Maximum number of assumptions in the short report."""
_LIMITS: Final = {
    "first_token": "first token",
    "per_token": "per token",
    "end_to_end": "end to end",
}
_NEARLY: Final = 0.99
MIN_WAITING_SHARE: Final = 0.05
"""Share of a closed loop's requests that wait, from which on the verdict mentions them."""
_COSTS: Final = {
    "1M output tokens": "cost.usd_per_million_output_tokens",
    "1M tokens": "cost.usd_per_million_tokens",
    "1,000 requests": "cost.usd_per_thousand_requests",
}
_EMISSIONS: Final = {"emissions of 1,000 requests": "energy.kg_co2e_per_thousand_requests"}
_ALL_COST: Final = {"all requests": "cost.usd_per_thousand_requests"}
_ALL_ENERGY: Final = {"all requests": "energy.kwh_per_thousand_requests"}
_ENERGIES: Final = {
    "1M output tokens": "energy.kwh_per_million_output_tokens",
    "1M tokens": "energy.kwh_per_million_tokens",
    "1,000 requests": "energy.kwh_per_thousand_requests",
}


def document(
    prediction: ServicePrediction,
    found: Sequence[ServiceAction] | None = None,
    *,
    full: bool = False,
) -> Document:
    """Return the prediction of a service as a document.

    Parameters
    ----------
    prediction : ServicePrediction
        The prediction with its intervals.
    found : sequence of ServiceAction, optional
        Recommended changes, best first; if None, the section is left out.
    full : bool
        Include all assumptions with their sources.
    """
    service = prediction.service
    return Document(
        title=f"{service.name}: {service.title}" if service.title else service.name,
        question=tuple(setting_rows(service)),
        verdict=(verdict(prediction),),
        sections=(
            *section("Latency", latency_table(prediction)),
            *section("Rates", rows(rate_rows(prediction))),
            *section(memory_title(prediction), rows(memory_rows(prediction))),
            *section("Cost and energy", _bill(prediction), _store(prediction)),
            *section(
                _assumptions_title(prediction, full=full),
                notes(_assumptions(prediction, full=full)),
            ),
            *actions_section(found, prediction),
            *section("Warnings", notes(prediction.warnings)),
        ),
        data=lambda: {**as_object(prediction), **actions_object(found)},
        table=lambda: as_table(prediction),
    )


def setting_rows(service: Service) -> list[tuple[str, str]]:
    """Return the settings of a service as rows: machines, model, engine, load, SLO."""
    group, serving = service.group, service.serving
    gpu = "" if group.host.gpu is None else short_name(group.host.gpu.name).upper()
    machine = machine_called(group.host, group.gpus_per_host)
    each = " each" if group.count > 1 else ""
    formats = f"weights {serving.weights}"
    if service.one_pass is None:
        formats += f", KV cache {serving.cache}"
    rows = [
        ("Machines", f"{group.count} x {machine}{each}"),
        ("Model", f"{service.model.name}, {formats}"),
        ("Engine", engine_called(serving, gpu)),
        ("Load", load_called(service)),
    ]
    if serving.prefill is not None:
        before = serving.prefill
        called = f"{before.replicas} replicas of {before.tensor} x {gpu}; the others decode"
        rows.append(("Prefill", called))
    if serving.autoscaling is not None:
        rows.append(("Scaling", scaling_called(serving.autoscaling)))
    return [*rows, ("SLO", limits_called(service))] if service.slo.limits else rows


def engine_called(serving: Serving, gpu: str) -> str:
    """Describe an engine with its settings; `gpu` is the name of its devices."""
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
        engine += f"{guessed.drafts} draft tokens, {guessed.accepted:.3g} tokens per iteration; "
    tokens, requests = f"{serving.max_batched_tokens:,}", f"{serving.max_sequences:,}"
    return f"{engine}up to {tokens} tokens and {requests} requests per iteration"


def batches_called(rules: Dynamic, most: int) -> str:
    """Describe the rules of dynamic batching; `most` is the maximum batch size."""
    if math.isinf(rules.delay):
        return f"batches of {most:,}, full ones only"
    preferred = f", {' or '.join(map(str, rules.preferred))} preferred" if rules.preferred else ""
    waits = f", {show(rules.delay, SECOND)} for others" if rules.delay else ""
    return f"batches of up to {most:,}{preferred}{waits}"


def scaling_called(rules: Autoscaling) -> str:
    """Describe the rules of autoscaling."""
    target, delay = f"{rules.target:g} requests in flight each", show(rules.delay, SECOND)
    return f"{rules.least} to {rules.most} replicas for {target}; start-up takes {delay}"


def load_called(service: Service) -> str:
    """Describe the load of a service."""
    load, ways = service.load, service.load.arrivals
    if isinstance(ways, Trace):
        return f"a trace of {len(ways.arrivals):,} requests"
    lengths = f"{_lengths(load.prompt, 'prompt')}, {_lengths(load.output, 'output')}"
    if service.one_pass is not None:
        lengths = (
            f"{load.prompt.tokens:,.0f} sample{'s' if load.prompt.tokens > 1.0 else ''} per request"
        )
    if isinstance(ways, ClosedLoop):
        think = f" that think {show(ways.think, SECOND)}" if ways.think else ""
        who = "clients" if load.users is None else "users"
        return f"{ways.concurrency:,} {who}{think}, one request each; {lengths}"
    users = "" if load.users is None else f" of {load.users:,} users"
    return f"{_arrivals(ways)}{users}{_read_from(service)}; {lengths}"


def _read_from(service: Service) -> str:
    job = service.reading
    if job is None:
        return ""
    size, store = show(float(job.job.dataset.bytes_per_sample), BYTE, 3), job.site.storage.name
    return f", each reads {size} from {short_name(store)}"


def _arrivals(ways: OpenLoop | RateCurve) -> str:
    if isinstance(ways, RateCurve):
        peak, mean = significant(ways.rate, 3), significant(ways.mean, 3)
        return f"{peak} requests/s at the peak, {mean} on average over {show(ways.period, SECOND)}"
    if math.isinf(ways.rate):
        return "all requests at once"
    rate = f"{significant(ways.rate, 3)} requests/s"
    if ways.sources is not None:
        return f"{rate} from {ways.sources:,} periodic sources"
    if math.isinf(ways.burstiness):
        return f"{rate}, evenly spaced"
    return rate if ways.burstiness == 1.0 else f"{rate} in bursts (shape {ways.burstiness:g})"


def _lengths(lengths: Lengths, what: str) -> str:
    most = f"{lengths.tokens:,.0f}"
    if lengths.spread is LengthDistribution.UNIFORM:
        return f"{what} {int(lengths.ratio * lengths.tokens):,} to {most} tokens (uniform)"
    if lengths.spread is LengthDistribution.CONSTANT:
        return f"{what} {most} tokens"
    return f"mean {what} {most} tokens ({lengths.spread})"


def limits_called(service: Service) -> str:
    """Describe the SLO of a service."""
    limits = [f"{_LIMITS[name]} {show(time, SECOND)}" for name, time in service.slo.limits.items()]
    share = f"{significant(PERCENT * service.slo.share, 3)}%"
    return f"{', '.join(limits)} for {share} of requests"


def verdict(prediction: ServicePrediction) -> str:
    """Describe whether a service fits, keeps up and meets its SLO, and its capacity."""
    saturation, service = prediction.saturation, prediction.service
    if saturation is None:
        return "Does not fit: the model exceeds the memory of its devices."
    most, digits = saturation.request_rate, _digits(prediction, "saturation.requests_per_s")
    capacity = f"{significant(most, digits)} requests/s"
    if prediction.answered is None:
        drift = significant(saturation.drift or 0.0, digits)
        return (
            f"Overloaded: capacity {capacity}{within_slo(saturation)}; the queue grows by {drift} "
            "requests/s and latencies are unbounded."
        )
    room = ""
    if saturation.headroom is not None:
        between = _band(prediction, "saturation.requests_per_s", named=True)
        more = significant(saturation.headroom, digits)
        room = f" Capacity {capacity}{between}, {more}x your load{within_slo(saturation)}."
    waits = _waiting_clients(service, prediction.answered)
    if not service.slo.limits:
        return f"{waits or 'Keeps up with its load.'}{room}"
    room += f" {waits}" if waits else ""
    share = kept_share(prediction.answered.attainment, service.slo.share)
    if prediction.keeps_limits:
        return f"Meets the SLO: {share} of requests are within all limits.{room}"
    missed = _most_missed(prediction.answered, service.slo.share)
    return f"Misses the SLO: only {share} of requests are within all limits{missed}.{room}"


def _waiting_clients(service: Service, answered: Answered) -> str:
    """Describe how many clients of a closed loop run and wait; empty if next to none wait."""
    together = answered.running + answered.waiting
    if not isinstance(service.load.arrivals, ClosedLoop) or (
        answered.waiting < MIN_WAITING_SHARE * together
    ):
        return ""
    running, waiting = (significant(n, 2) for n in (answered.running, answered.waiting))
    time = quantity(answered.wait.mean, SECOND, 2)
    return (
        f"Not all clients are served at once: on average {running} requests run and {waiting} "
        f"wait; a request waits {time} before it starts."
    )


def within_slo(saturation: Saturation) -> str:
    """Describe the highest rate within the SLO, after the capacity; empty if it is not known."""
    rate = saturation.within_slo
    return "" if rate is None else f"; {significant(rate, 2)} requests/s within the SLO"


def _most_missed(answered: Answered, wanted: float) -> str:
    """Describe the limit that most requests miss; empty if there is only one limit."""
    if len(answered.within) == 1:
        return ""
    name = min(answered.within, key=lambda each: answered.within[each])
    return f" ({_LIMITS[name]}: {kept_share(answered.within[name], wanted)})"


def kept_share(share: float, wanted: float) -> str:
    """Format a share of requests in whole percent; in tenths if more than 99% are `wanted`.

    Examples
    --------
    >>> kept_share(0.9982, 0.95), kept_share(0.9982, 0.999), kept_share(0.978, 0.95)
    ('over 99%', '99.8%', '98%')
    """
    if wanted > _NEARLY and share < 1.0:
        return f"{math.floor(10.0 * PERCENT * share) / 10.0:g}%"
    return f"over {_NEARLY:.0%}" if 1.0 - HALF_PERCENT <= share < 1.0 else share_known(share)


def _band(prediction: ServicePrediction, name: str, *, named: bool = False) -> str:
    return _quantity_band(prediction, name, None, named=named)


def latency_table(prediction: ServicePrediction) -> Table | None:
    """Return the quantiles of each latency; None beyond saturation."""
    answered = prediction.answered
    if answered is None:
        return None
    lines: list[tuple[str, ...]] = []
    quantiles = _quantiles(prediction.service)
    left_out = ("first_token", "per_token") if prediction.service.one_pass is not None else ()
    for name, label in LATENCIES.items():
        if name not in left_out:
            latency: Latency = getattr(answered, name)
            path = f"{name}_s.mean"
            digits = _digits(prediction, path)
            cells = [quantity(getattr(latency, each), SECOND, digits) for each in quantiles]
            ends = prediction.interval.get(path)
            between = ""
            if ends is not None:
                between = interval(ends["p10"] or 0.0, ends["p90"], SECOND, 2)
            lines.append((label, *cells, between))
    heads = ("", *quantiles.values(), f"{INTERVAL} of the mean")
    return grid(heads, lines, f"<{'>' * len(quantiles)}<")


def _quantiles(service: Service) -> dict[str, str]:
    """Return the columns of the latency table, with that at the share of the SLO in its place."""
    share = service.slo.share
    known = {"mean": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99}
    heads = {name: name for name in known}
    if service.slo.limits and share not in known.values():
        known, heads = known | {"at_slo": share}, heads | {"at_slo": slo_quantile(service)}
    return {name: heads[name] for name in sorted(heads, key=lambda each: known[each])}


def slo_quantile(service: Service) -> str:
    """Return the name of the quantile that the SLO limits: ``p95`` for 95% of the requests."""
    share = service.slo.share
    return "max" if share >= 1.0 else f"p{significant(PERCENT * share, 3)}"


def latencies_of(service: Service) -> dict[str, str]:
    """Return the latencies in tables of choices: names such as ``first_token`` by column head.

    They are quantiles at the share of requests that the SLO limits.
    """
    called = slo_quantile(service)
    if service.one_pass is not None:
        return {f"latency {called}": "end_to_end"}
    return {f"TTFT {called}": "first_token", f"TPOT {called}": "per_token"}


def _digits(prediction: ServicePrediction, name: str) -> int:
    ends = prediction.interval.get(name)
    low, high = (None, None) if ends is None else (ends["p10"], ends["p90"])
    return 2 if low is None or high is None else digits_between(low, high)


def rate_rows(prediction: ServicePrediction) -> Iterator[Row]:
    """Yield rows on rates, requests in the system, and utilization."""
    answered, at_once = prediction.answered, prediction.service.one_pass is not None
    if answered is not None:
        kept = f"{significant(answered.goodput, 2)}/s within the SLO"
        yield "requests", f"{_rate(prediction, 'requests_per_s', answered.request_rate)}, {kept}"
        if not at_once:
            rate = answered.output_rate
            yield "output tokens", _rate(prediction, "output_tokens_per_s", rate)
        if prediction.service.load.is_bulk:
            time = quantity(answered.duration, SECOND, _digits(prediction, "duration_s"))
            yield "all done", f"after {time}"
        running, waiting = (significant(n, 2) for n in (answered.running, answered.waiting))
        yield "in the system", f"{running} running, {waiting} waiting"
        yield from _device_rows(prediction, answered)
    found = prediction.saturation
    if found is not None:
        name = "requests_per_s" if at_once else "output_tokens_per_s"
        rate = found.request_rate if at_once else found.output_rate
        label = " requests" if at_once else " output tokens"
        yield "at saturation", _rate(prediction, f"saturation.{name}", rate, label)


def _rate(prediction: ServicePrediction, name: str, rate: PerSecond, of: str = "") -> str:
    shown = significant(rate, _digits(prediction, name))
    return f"{shown}{of}/s{_band(prediction, name)}"


def _device_rows(prediction: ServicePrediction, answered: Answered) -> Iterator[Row]:
    serving, busy = prediction.service.serving, share_known(answered.busy)
    batch = significant(answered.batch, 2)
    if serving.dynamic is None:
        yield "iteration", f"{batch} requests decode; devices compute {busy} of the time"
    else:
        yield "batch", f"{batch} samples; devices compute {busy} of the time"
    if answered.busy_of:
        shares = (f"{name} {share_known(each)}" for name, each in answered.busy_of.items())
        yield "replicas busy", ", ".join(shares)
        yield "KV transfer", f"{quantity(answered.transfer, SECOND, 2)} from prefill to decode"
    if links := shown_links(answered.links):
        yield "links busy", links_text(links)
    if serving.host_time:
        yield "host threads", f"{share_known(answered.host_busy)} busy with preprocessing"
    if serving.autoscaling is not None:
        yield "replicas", f"{significant(answered.replicas, 2)} on average"
    if serving.dynamic is None:
        mean, peak = share_known(answered.cache_mean), share_known(answered.cache_peak)
        yield "KV cache", f"{mean} reserved on average, {peak} at peak"


def memory_title(prediction: ServicePrediction) -> str:
    """Return the title of the section on memory, with the capacity of a device."""
    return f"Memory per device, {show(prediction.memory.capacity, BYTE, 3)}"


def memory_rows(prediction: ServicePrediction) -> Iterator[Row]:
    """Yield a row on the memory of a device, with the tokens in the KV cache of a replica."""
    memory, at_once = prediction.memory, prediction.service.one_pass is not None
    names = {"graphs": "driver"} if at_once else {"cache": "KV cache"}
    items = [
        f"{names.get(name, name)} {show(size, BYTE, 3)}"
        for name, size in memory.items.items()
        if size or not at_once
    ]
    held = "" if at_once else f" ({significant(memory.cache_tokens, 3)} tokens)"
    yield "used", f"{', '.join(items)}{held}"


def cost_rows(prediction: ServicePrediction) -> Iterator[Row]:
    """Yield rows on the cost of machines, tokens and requests."""
    cost = prediction.cost
    if cost.per_second is None:
        yield "machines", "price unknown"
        return
    listed = listed_price(prediction.service, prediction.service.group)
    of_date = "" if listed is None else dated(listed)
    if prediction.service.owned is not None:
        of_date = " (owned)"
    yield "machines", f"{show(cost.per_second, USD_PER_SECOND)}{of_date}"
    answered, serving = prediction.answered, prediction.service.serving
    scales = serving.autoscaling is not None and prediction.service.owned is None
    if answered is not None and scales:
        share = answered.replicas / serving.replicas
        yield "on average", show(share * cost.per_second, USD_PER_SECOND, 3)
    if answered is not None and prediction.service.load.is_bulk:
        yield from _work_rows(prediction, _ALL_COST, USD, answered.requests / THOUSAND)
    yield from _work_rows(prediction, _COSTS, USD)


def _store(prediction: ServicePrediction) -> Table | None:
    bill = prediction.cost.stores
    return grid(
        (), [] if bill is None else [(f"storage, all requests: {store_called(bill)}",)], "<"
    )


def store_called(bill: StorageBill) -> str:
    """Describe the charges of a store for all requests, and the charges of unknown price.

    Parts of less than half a per cent are left out.

    Examples
    --------
    >>> store_called(StorageBill(known=0.05, requests=0.04, egress=0.01, rent=0.00001))
    '$0.05 (requests $0.04, egress $0.01)'
    >>> store_called(StorageBill(total=None, rent=None))
    'rent unknown'
    """
    parts = {"rent": bill.rent, "requests": bill.requests, "egress": bill.egress}
    least = HALF_PERCENT * bill.known
    worth = {name: usd for name, usd in parts.items() if usd is not None and usd > least}
    paid = [f"{name} {quantity(usd, USD, 2)}" for name, usd in worth.items()]
    missing = ", ".join(name for name, usd in parts.items() if usd is None)
    of = f" ({', '.join(paid)})" if paid else ""
    known = f"{quantity(bill.known, USD, 2)}{of}" if bill.known or not missing else ""
    return "; ".join(text for text in (known, f"{missing} unknown" if missing else "") if text)


def _bill(prediction: ServicePrediction) -> Table | None:
    """Return a table of costs and energies, with one row for each unit of work."""
    costs, energies = dict(cost_rows(prediction)), dict(energy_rows(prediction))
    lines = [(of, costs.get(of, ""), energies.get(of, "")) for of in {**costs, **energies}]
    return grid(("", "cost", "energy"), lines, "<<<")


def energy_rows(prediction: ServicePrediction) -> Iterator[Row]:
    """Yield rows on the power of the machines, and the energy of tokens and requests."""
    power, answered = prediction.energy.power, prediction.answered
    if power is None:
        if prediction.fits and not is_known(prediction.service.group):
            yield "machines", "power unknown: the accelerator's profile states none"
        return
    yield from _work_rows(prediction, {"machines": "energy.power_w"}, WATT)
    if answered is not None and prediction.service.load.is_bulk:
        every = answered.requests / THOUSAND
        yield from _work_rows(prediction, _ALL_ENERGY, KILOWATT_HOURS, every)
    yield from _work_rows(prediction, _ENERGIES, KILOWATT_HOURS)
    yield from _work_rows(prediction, _EMISSIONS, KILOGRAM)


def _work_rows(
    prediction: ServicePrediction, paths: Mapping[str, str], unit: Unit, times: float = 1.0
) -> Iterator[Row]:
    """Yield rows on the metrics `paths` that are known, multiplied by `times`, with intervals."""
    values = service_figures(prediction)
    for label, path in paths.items():
        value = values.get(path)
        if value is not None:
            between = _quantity_band(prediction, path, unit, times)
            yield label, f"{quantity(times * value, unit, 2)}{between}"


def _quantity_band(
    prediction: ServicePrediction,
    name: str,
    unit: Unit | None,
    times: float = 1.0,
    *,
    named: bool = False,
) -> str:
    """Return the 80% interval of a metric, multiplied by `times`, in parentheses."""
    ends = prediction.interval.get(name)
    if ends is None or ends["p10"] == ends["p90"]:
        return ""
    low, high = ends["p10"] or 0.0, ends["p90"]
    upper = None if high is None else times * high
    return bracketed(interval(times * low, upper, unit, 2), named=named)


def _assumptions_title(prediction: ServicePrediction, *, full: bool) -> str:
    count = len(prediction.assumptions)
    if full or count <= MAX_ASSUMPTIONS:
        return "Largest uncertainties"
    return f"Largest uncertainties (plan simulate --full lists all {count} assumptions)"


def _assumptions(prediction: ServicePrediction, *, full: bool) -> Iterator[str]:
    every = prediction.assumptions
    for assumption in every if full else every[:MAX_ASSUMPTIONS]:
        source = assumption.source
        cited = f" [{source.reference}, {source.date}]" if full else ""
        yield f"{assumption.what}: {assumption.value}{cited}"


def shown_links(shares: Mapping[str, float]) -> dict[str, float]:
    """Return the links to show: without a network that carries almost no data, as in most chats.

    Examples
    --------
    >>> shown_links({"nvlink": 0.001, "network": 0.0001})
    {'nvlink': 0.001}
    """
    few = LinkKind.NETWORK if shares.get(LinkKind.NETWORK, 0.0) < HALF_PERCENT else None
    return {name: share for name, share in shares.items() if name != few}


def links_text(shares: Mapping[str, float]) -> str:
    """Describe links with the share of the time in which they carry data.

    Links below half a percent are left out, except the busiest.

    Examples
    --------
    >>> links_text({"nvlink_of_prompts": 0.09, "nvlink_of_answers": 0.01, "network": 0.5})
    'between accelerators for prompts 9%, for answers 1%, network 50%'
    >>> links_text({"storage": 0.002, "network": 0.001})
    'store under 1%'
    """
    found, before = list[str](), ""
    least = min(HALF_PERCENT, max(shares.values()))
    for name, share in shares.items():
        if share < least:
            continue
        kind, called = name.partition("_of_")[0], link_called(name)
        shown = called.removeprefix(f"{link_called(kind)} ") if kind == before else called
        found.append(f"{shown} {share_known(share)}")
        before = kind
    return ", ".join(found)


def as_object(prediction: ServicePrediction) -> dict[str, Any]:
    """Return the object of ``--json``: metrics by their dotted paths, nested, in SI units."""
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
        place(tree, name.split("."), value)
    tree["interval"] = {name: dict(band) for name, band in prediction.interval.items()}
    tree["assumptions"] = [assumption_object(one) for one in prediction.assumptions]
    tree["warnings"] = list(prediction.warnings)
    return tree


def as_table(prediction: ServicePrediction) -> Table:
    """Return a row for each metric in SI units, with its interval."""
    rows = tuple(
        (name, value, *_ends(prediction.interval.get(name)))
        for name, value in service_figures(prediction).items()
    )
    return Table(head=("metric", "value", "p10", "p90"), rows=rows)


def _ends(band: Mapping[str, float | None] | None) -> tuple[Cell, Cell]:
    return (None, None) if band is None else (band["p10"], band["p90"])
