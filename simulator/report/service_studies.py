"""Studies of services: machines (recommend, size), variants (sweep), changes (whatif), iterations.

Each function returns the document of one verb.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import BatchPass, ForwardPass, Iteration
from simulator.report.document import (
    Cell,
    Code,
    Document,
    Section,
    Table,
    grid,
    notes,
    section,
)
from simulator.report.numbers import quantity, significant
from simulator.report.prediction.job import SCHEMA
from simulator.report.prediction.service import (
    kept_share,
    latencies_of,
    limits_called,
    load_called,
)
from simulator.report.text import percent
from simulator.results.energy import service_energy
from simulator.results.metrics import applies, part_figures, service_figures
from simulator.results.serving import ServicePrediction
from simulator.schema.goal import Plain
from simulator.schema.machines import short_name
from simulator.schema.serving import Service
from simulator.schema.software import ServingFigures
from simulator.studies.service_sizing import Choice, Need, Refused, Sized, Variant, Worth, cost_at
from simulator.units import BYTE, HOUR, SECOND, USD, USD_PER_SECOND, WATT, show

MAX_ROWS: Final = 10
"""Choices, candidates and reasons that are listed."""
FIGURES: Final = (
    "first_token_s.p50",
    "first_token_s.p99",
    "per_token_s.p50",
    "per_token_s.p99",
    "end_to_end_s.p99",
    "output_tokens_per_s",
    "slo.attainment",
    "saturation.headroom",
    "cost.usd_per_million_output_tokens",
)
"""Figures of variants that a table shows: of services that write tokens."""


OF_BATCHES: Final = (
    "end_to_end_s.p50",
    "end_to_end_s.p99",
    "requests_per_s",
    "slo.attainment",
    "saturation.headroom",
    "utilization.accelerator",
    "cost.usd_per_thousand_requests",
)
"""Those of models that answer in one pass."""


def sized(found: Sized, typed: str = "") -> Document:
    """Return the cheapest machines for a service.

    Parameters
    ----------
    found : Sized
        The answer.
    typed : str
        The service with its settings as they were typed after the verb.
    """
    service = found.service
    return Document(
        title=f"{service.name}: {load_called(service)}; {_wanted(service)}",
        verdict=(_sized_verdict(found),),
        sections=(
            *section("Choices, cheapest first", _choices(found)),
            *section("More expensive", notes(_more_expensive(found))),
            *section("Rejected", notes(_rejected(found.refused))),
            *section("Try it", _trial(found, typed)),
        ),
        data=lambda: _sized_object(found),
        table=lambda: sized_table(found),
    )


def _sized_object(found: Sized) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "scenario": found.service.name,
        "choices": [_choice_object(choice) for choice in found.choices],
        "dearer": [
            {"settings": dict(one.settings), **_at_least(found.service, one.least)}
            for one in found.dearer
        ],
        "refused": [
            {"settings": dict(one.settings), "reason": one.reason} for one in found.refused
        ],
    }


def sized_table(found: Sized) -> Table:
    """Return a row for each choice, in SI units."""
    objects = [_choice_object(choice) for choice in found.choices]
    head = tuple(name for name in _CHOICE_HEAD if name != "settings")
    return Table(head=head, rows=tuple(tuple(one[name] for name in head) for one in objects))


_CHOICE_HEAD: Final = (
    *("settings", "machine", "machines", "tensor", "replicas", "weights", "usd_per_hour"),
    *("usd_per_million_output_tokens", "machines_in_9_of_10_cases", "attainment"),
    *("first_token_p99_s", "per_token_p99_s", "headroom", "highest_requests_per_s"),
    *("power_w", "kwh_per_million_output_tokens", "kwh_per_thousand_requests"),
    *("usd_per_thousand_requests", "usd_in_all", "duration_s"),
)


def _wanted(service: Service) -> str:
    """Return the SLO in words; of a bulk job its deadline."""
    if service.deadline is None:
        return limits_called(service)
    others = f"; {limits_called(service)}" if service.slo.limits else ""
    return f"all requests within {show(service.deadline, SECOND)}{others}"


def _at_least(service: Service, paid: float) -> dict[str, float]:
    if service.load.is_bulk:
        return {"usd_in_all_at_least": paid}
    return {"usd_per_hour_at_least": _hourly(paid)}


def _hourly(price: float) -> float:
    return price * HOUR


def _choice_object(choice: Choice) -> dict[str, Any]:
    serving, told = choice.service.serving, choice.answered
    energy = service_energy(choice.service, told, None)
    values = part_figures(cost=cost_at(choice), energy=energy)
    values = {name: each for name, each in values.items() if applies(choice.service, name)}
    row = (
        dict(choice.settings),
        choice.service.group.host.name,
        choice.machines,
        serving.tensor,
        serving.replicas,
        str(serving.weights),
        _hourly(choice.price),
        values.get("cost.usd_per_million_output_tokens"),
        choice.sure,
        told.attainment,
        told.first_token.p99,
        told.per_token.p99,
        choice.headroom,
        choice.highest,
        values.get("energy.power_w"),
        values.get("energy.kwh_per_million_output_tokens"),
        values.get("energy.kwh_per_thousand_requests"),
        values.get("cost.usd_per_thousand_requests"),
        choice.total,
        told.duration if choice.service.load.is_bulk else None,
    )
    return dict(zip(_CHOICE_HEAD, row, strict=True))


def _sized_verdict(found: Sized) -> str:
    if not found.choices:
        return "No candidate meets the SLO; the reasons are below."
    best = found.choices[0]
    sure = ""
    if best.sure is None:
        what = "finishes in time" if best.total is not None else "meets the SLO"
        sure = f" With 90% confidence, no number of them {what}."
    elif best.sure > best.machines:
        sure = f" Take {best.sure} for 90% confidence."
    price = show(best.price, USD_PER_SECOND)
    if best.total is not None:
        time = quantity(best.answered.duration, SECOND, 2)
        total = quantity(best.total, USD, 2)
        return f"Cheapest: {_called(best)}, {total} in total at {price}, done after {time}.{sure}"
    most = ""
    if best.highest is not None:
        most = f" It meets the SLO up to {significant(best.highest, 2)} requests/s."
    return f"Cheapest: {_called(best)} for {price}.{most}{sure}"


def _called(choice: Choice) -> str:
    serving, group = choice.service.serving, choice.service.group
    lies = f", {serving.tensor} accelerators each" if serving.tensor > 1 else ""
    replicas = f"{serving.replicas} replica{'s' if serving.replicas > 1 else ''}"
    if serving.prefill is not None:
        replicas += f", {serving.prefill.replicas} for prefill"
    owned = "" if choice.service.owned is None else "owned, "
    machines = f"{choice.machines} x {short_name(group.host.name)}"
    return f"{machines} ({owned}{replicas}{lies}, weights {serving.weights})"


def _choices(found: Sized) -> Table | None:
    latencies = latencies_of(found.service)
    if found.service.load.is_bulk:
        head: tuple[str, ...] = ("machines", "per hour", "total", "power", "90% sure", "done after")
        rows = [_bulk_row(choice) for choice in found.choices[:MAX_ROWS]]
    else:
        of = "1M out" if found.service.one_pass is None else "1,000 req"
        head = ("machines", "per hour", of, "power", "90% sure", *latencies, "within SLO")
        rows = [_choice_row(choice, latencies.values()) for choice in found.choices[:MAX_ROWS]]
    return grid((*head, "headroom"), rows, "<" + ">" * len(head))


def _bulk_row(choice: Choice) -> tuple[str, ...]:
    told = choice.answered
    power = service_energy(choice.service, told, None).power
    return (
        _called(choice),
        show(choice.price, USD_PER_SECOND, 3),
        quantity(choice.paid, USD, 2),
        "" if power is None else quantity(power, WATT, 2),
        "none" if choice.sure is None else str(choice.sure),
        quantity(told.duration, SECOND, 2),
        f"{significant(choice.headroom, 2)}x",
    )


def _choice_row(choice: Choice, latencies: Collection[str]) -> tuple[str, ...]:
    told, cost = choice.answered, cost_at(choice)
    at_once = choice.service.one_pass is not None
    paid = cost.per_thousand_requests if at_once else cost.per_million_output_tokens
    power = service_energy(choice.service, told, None).power
    return (
        _called(choice),
        show(choice.price, USD_PER_SECOND, 3),
        "" if paid is None else quantity(paid, USD, 2),
        "" if power is None else quantity(power, WATT, 2),
        "none" if choice.sure is None else str(choice.sure),
        *(quantity(getattr(told, name).p99, SECOND, 2) for name in latencies),
        kept_share(told.attainment, choice.service.slo.share),
        f"{significant(choice.headroom, 2)}x",
    )


def _more_expensive(found: Sized) -> Iterator[str]:
    unit = USD if found.service.load.is_bulk else USD_PER_SECOND
    for one in found.dearer[:MAX_ROWS]:
        yield f"{_settings(one.settings)}: at least {show(one.least, unit)}"
    if len(found.dearer) > MAX_ROWS:
        yield f"{len(found.dearer) - MAX_ROWS} others"


def _rejected(refused: Sequence[Refused]) -> Iterator[str]:
    """Yield reasons, each with the candidates that it rejects."""
    reasons: dict[str, list[str]] = {}
    for one in refused:
        reasons.setdefault(one.reason, []).append(_settings(one.settings))
    for reason, those in islice(reasons.items(), MAX_ROWS):
        more = f" and {len(those) - 1} others" if len(those) > 1 else ""
        yield f"{those[0]}{more}: {reason}"
    if len(reasons) > MAX_ROWS:
        yield f"{len(reasons) - MAX_ROWS} other reasons"


def _settings(settings: Mapping[str, Plain]) -> str:
    return " ".join(
        f"{key.partition('.')[2]}={value}" for key, value in settings.items() if key not in _FIXED
    )


_FIXED: Final = frozenset({"hardware.count", "serving.replicas"})


def _trial(found: Sized, typed: str) -> Code:
    if not found.choices:
        return Code(lines=())
    options = " ".join(f"--set {k}={v}" for k, v in found.choices[0].settings.items())
    return Code(lines=(f"plan simulate {typed or found.service.name} {options}",))


NEEDS_HEAD: Final = (
    *("requests_per_s", "machines", "machines_in_9_of_10_cases", "usd_per_hour", "headroom"),
    *("highest_requests_per_s",),
    *("first_token_p99_s", "per_token_p99_s", "attainment", "reason"),
)


def needed(service: Service, found: Sequence[Need], typed: str = "") -> Document:
    """Return how many machines a service needs, at its rate and at higher ones.

    Parameters
    ----------
    service : Service
        As the file has it.
    found : sequence of Need
        One of each rate; the service's own first.
    typed : str
        The service as it was typed after the verb.
    """
    refused = [one for one in found[1:] if one.reason and not found[0].reason]
    latencies = latencies_of(service)
    head = ("requests/s", "machines", "90% sure", "per hour", *latencies, "headroom")
    rows = [_need_row(one, latencies.values()) for one in found]
    count = found[0].machines
    trial = f"plan simulate {typed or service.name} --set hardware.count={count}"
    return Document(
        title=f"{service.name}: {load_called(service)}; {limits_called(service)}",
        verdict=(_need_verdict(service, found[0]),),
        sections=(
            *section("Machines by rate", grid(head, rows, ">" * len(head))),
            *section(
                "Rejected",
                notes(f"{significant(one.rate, 3)} requests/s: {one.reason}" for one in refused),
            ),
            *section("Try it", Code(lines=() if count is None else (trial,))),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "rates": [dict(zip(NEEDS_HEAD, _need_cells(one), strict=True)) for one in found],
        },
        table=lambda: Table(head=NEEDS_HEAD, rows=tuple(map(_need_cells, found))),
    )


def _need_verdict(service: Service, need: Need) -> str:
    machine = short_name(service.group.host.name)
    if need.machines is None:
        return f"No number of {machine} meets the SLO: {need.reason}."
    if need.sure is None:
        sure = "; no number does with 90% confidence"
    elif need.sure > need.machines:
        sure = f"; {need.sure} for 90% confidence"
    else:
        sure = ", also with 90% confidence"
    most = "" if need.highest is None else f" up to {significant(need.highest, 2)} requests/s"
    return f"{need.machines} x {machine} meets the SLO{most}{sure}."


def _need_cells(need: Need) -> tuple[float | int | str | None, ...]:
    told = need.answered
    return (
        need.rate,
        need.machines,
        need.sure,
        None if need.price is None else need.price * HOUR,
        need.headroom,
        need.highest,
        None if told is None else told.first_token.p99,
        None if told is None else told.per_token.p99,
        None if told is None else told.attainment,
        need.reason or None,
    )


def _need_row(need: Need, latencies: Collection[str]) -> tuple[str, ...]:
    told = need.answered
    if told is None:
        return (significant(need.rate, 3), "none", "", "", *[""] * len(latencies), "")
    return (
        significant(need.rate, 3),
        str(need.machines),
        "none" if need.sure is None else str(need.sure),
        "" if need.price is None else show(need.price, USD_PER_SECOND, 3),
        *(quantity(getattr(told, name).p99, SECOND, 2) for name in latencies),
        f"{significant(need.headroom or 0.0, 2)}x",
    )


def swept(found: Sequence[Variant]) -> Document:
    """Return variants of a service: the figures that matter, a row each."""
    mistakes = (f"{_settings(one.settings)}: {one.mistake}" for one in found if one.mistake)
    names = dict.fromkeys(name for variant in found for name in variant.figures)
    return Document(
        sections=(
            *section("", _variant_table(found, _names(found), rounded=True)),
            *section("Rejected", notes(mistakes)),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "variants": [
                {"settings": dict(v.settings), **dict(v.figures), "mistake": v.mistake or None}
                for v in found
            ],
        },
        table=lambda: _variant_table(found, tuple(names), rounded=False),
    )


def _names(found: Sequence[Variant]) -> tuple[str, ...]:
    """The figures that a table shows."""
    of_tokens = any("cost.usd_per_million_tokens" in one.figures for one in found)
    return FIGURES if of_tokens else OF_BATCHES


def _variant_table(found: Sequence[Variant], names: Sequence[str], *, rounded: bool) -> Table:
    keys = dict.fromkeys(key for variant in found for key in variant.settings)
    rows = []
    for variant in found:
        given: list[Cell] = [_plain(variant.settings.get(key)) for key in keys]
        values = [variant.figures.get(name) for name in names]
        figures = [_rounded(value) if rounded else value for value in values]
        rows.append((*given, *figures))
    return Table(head=(*keys, *names), rows=tuple(rows))


def _plain(value: Plain | None) -> Cell:
    return str(value) if isinstance(value, bool) else value


def _rounded(value: float | None) -> Cell:
    return None if value is None else float(f"{value:.3g}")


def changed(base: ServicePrediction, worths: Sequence[Worth], metric: str) -> Document:
    """Return what changes do to a metric of a service, the smallest value first."""
    own = service_figures(base).get(metric)
    said = "none beyond saturation" if own is None else significant(own, 3)
    ratios: list[tuple[str, float | None, float | None]] = []
    for worth in worths:
        value = service_figures(worth.prediction).get(metric)
        ratio = value / own if value is not None and own else None
        ratios.append((worth.name, value, ratio))
    ratios.sort(key=lambda row: (row[2] is None, row[2] or 0.0))
    rows = [(name, _rounded(value), _rounded(ratio)) for name, value, ratio in ratios]
    table = Table(head=("change", metric, "ratio"), rows=tuple(rows))
    return Document(
        title=f"{base.service.name}: {metric} is {said}",
        sections=section("", table),
        data=lambda: {
            "schema": SCHEMA,
            "metric": metric,
            "base": own,
            "changes": [{"change": row[0], "value": row[1], "ratio": row[2]} for row in rows],
        },
        table=lambda: table,
    )


def explained(prediction: ServicePrediction, work: ForwardPass) -> Document:
    """Return what an iteration is made of, and what bounds a request."""
    service, figures = prediction.service, _figures(prediction.service)
    found = iterations(prediction)
    return Document(
        title=f"{service.name}: time of an iteration on a replica",
        sections=(
            *(part for label, each in found.items() for part in _iteration(label, each, work)),
            *section("Requests", notes(_request(prediction))),
            *section("KV cache", notes(_cache(prediction, work))),
            *section("Assumptions", notes(_sources(figures))),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "iterations": [
                {"holds": label, "seconds": work.seconds(each), "parts": parts(work, each)}
                for label, each in found.items()
            ],
            "figures": {
                name: {"value": getattr(figures, name), "source": source.reference}
                for name, source in figures.sources.items()
            },
        },
        table=lambda: Table(
            head=("iteration", "part", "seconds"),
            rows=tuple(
                (label, name, time)
                for label, each in found.items()
                for name, time in parts(work, each).items()
            ),
        ),
    )


def iterations(prediction: ServicePrediction) -> dict[str, Iteration]:
    """Return typical iterations by what they hold: decoding alone, and with a prompt."""
    load, answered = prediction.service.load, prediction.answered
    decoding = 1 if answered is None else max(1, round(answered.batch))
    prompt, output = max(1, round(load.prompt.mean)), max(1, round(load.output.mean))
    context = decoding * (prompt + 0.5 * output)
    answers = Iteration(decoding=decoding, context_tokens=context)
    both = Iteration(
        prefill_tokens=prompt,
        prefill_pairs=float(causal_pairs(prompt, 0)),
        first_tokens=1,
        decoding=decoding,
        context_tokens=context,
    )
    return {
        f"{decoding:,} requests decode": answers,
        f"the same with a prompt of {prompt:,} tokens": both,
    }


def parts(work: ForwardPass, each: Iteration) -> dict[str, float]:
    """Return the times of the parts of an iteration, which add up to it [s].

    Each part is the difference that it makes: an iteration with it less one without.
    """
    empty = work.seconds(Iteration())
    tokens = work.seconds(Iteration(prefill_tokens=each.prefill_tokens + each.decoding))
    sampled = work.seconds(Iteration(first_tokens=each.first_tokens + each.decoding))
    scores = work.seconds(Iteration(prefill_pairs=each.prefill_pairs))
    cache = work.seconds(Iteration(context_tokens=each.context_tokens))
    return {
        "launches and the engine": empty,
        "weights and products of the layers": tokens - empty,
        "attention of prompts": scores - empty,
        "reading keys and values": cache - empty,
        "scores of tokens, and sampling": sampled - empty,
    }


def _figures(service: Service) -> ServingFigures:
    if service.figures is None:
        msg = "a service that writes tokens has figures of its engine"
        raise TypeError(msg)
    return service.figures


_PARTS: Final = {
    "launches and the engine": "launches and engine",
    "weights and products of the layers": "weights and GEMMs of the layers",
    "attention of prompts": "attention of prefill",
    "reading keys and values": "reading the KV cache",
    "scores of tokens, and sampling": "logits and sampling",
}
"""Labels of the parts of an iteration, by their names in ``--json``."""


def _iteration(label: str, each: Iteration, work: ForwardPass) -> tuple[Section, ...]:
    whole = work.seconds(each)
    rows = [
        (_PARTS[name], show(time, SECOND), percent(time / whole))
        for name, time in parts(work, each).items()
        if time > 0.0
    ]
    return section(f"{label}: {show(whole, SECOND)}", grid(("part", "time", "share"), rows, "<>>"))


def _request(prediction: ServicePrediction) -> Iterator[str]:
    service, answered = prediction.service, prediction.answered
    serving, load = service.serving, service.load
    overhead = serving.request_overhead + serving.prompt_overhead * load.prompt.mean
    before, lag = show(overhead, SECOND), significant(serving.reply_lag, 2)
    yield f"Network and tokenization take {before} on average before the scheduler has a request."
    yield f"A token reaches the client {lag} iterations after it was computed."
    if answered is None:
        return
    batch, wait = significant(answered.batch, 3), show(answered.wait.mean, SECOND)
    yield f"The mean wait until the first iteration is {wait}, network and tokenization included."
    yield f"On average {batch} requests decode in an iteration, and each token takes one iteration."


def _cache(prediction: ServicePrediction, work: ForwardPass) -> Iterator[str]:
    memory = prediction.memory
    serving, load = prediction.service.serving, prediction.service.load
    size = show(work.kv_bytes_per_token, BYTE)
    yield f"{size} per token and device: {memory.cache_tokens:,} tokens per replica."
    within = memory.cache_tokens / (load.prompt.mean + load.output.mean)
    yield (
        f"That holds {significant(within, 3)} mean requests; the engine runs at most "
        f"{serving.max_sequences:,}."
    )


def _sources(figures: ServingFigures) -> Iterator[str]:
    """Yield each source once, with the figures that it gives."""
    by_source: dict[str, list[str]] = {}
    for name, source in figures.sources.items():
        cited = f"{source.reference}, {source.date}"
        by_source.setdefault(cited, []).append(f"{name} {getattr(figures, name):.3g}")
    for cited, names in by_source.items():
        yield f"{', '.join(names)}: {cited}"


BATCH_HEAD: Final = ("samples", "seconds", "samples_per_s")


def explained_batches(prediction: ServicePrediction, work: BatchPass) -> Document:
    """Return the time of batches of a model that answers in one pass."""
    service = prediction.service
    cells = tuple(_batches(service.serving.max_batched_tokens, work))
    rows = [(f"{n:,}", show(time, SECOND), significant(rate, 3)) for n, time, rate in cells]
    return Document(
        title=f"{service.name}: time of a batch of {service.model.name} on a device",
        sections=(
            *section("", grid(("samples", "time", "samples/s"), rows, ">>>")),
            *section("Requests", notes(_batch_request(prediction))),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "batches": [dict(zip(BATCH_HEAD, row, strict=True)) for row in cells],
        },
        table=lambda: Table(head=BATCH_HEAD, rows=cells),
    )


def _batches(most: int, work: BatchPass) -> Iterator[tuple[int, float, float]]:
    """Yield batches by powers of two, and the largest."""
    size = 1
    while True:
        time = work.seconds(Iteration(prefill_tokens=size))
        yield size, time, size / time
        if size == most:
            return
        size = min(most, 2 * size)


def _batch_request(prediction: ServicePrediction) -> Iterator[str]:
    serving, answered = prediction.service.serving, prediction.answered
    if serving.host_time:
        time, threads = show(serving.host_time, SECOND), serving.host_threads
        yield f"Preprocessing takes {time} on one of {threads:g} host threads."
    if answered is not None:
        wait, batch = show(answered.wait.mean, SECOND), significant(answered.batch, 3)
        yield f"The mean wait for a batch is {wait}; batches hold {batch} samples on average."
