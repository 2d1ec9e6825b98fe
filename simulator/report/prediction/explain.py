"""The explanation of a metric: equations, their inputs, and the source of each input.

It has three levels: the demands of each stage on each resource (with equation, inputs and sources),
the step as the sum of its exposed parts, and bounds of the whole run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Final

from simulator.physics.footprint import HostRam, MemoryFit
from simulator.physics.operators import hardware_utilization, model_utilization, rate_per_device
from simulator.pipeline.checkpoints import checkpoint_stages
from simulator.pipeline.loads import alone, pressures, slowest_unit
from simulator.pipeline.program import LINES
from simulator.pipeline.stages.base import Demand, Path, Resource
from simulator.pipeline.topology import Location, Topology, build
from simulator.reading.settings import setting_names
from simulator.records import dataclass
from simulator.report.document import (
    Code,
    Document,
    Rows,
    Section,
    Table,
    notes,
    section,
)
from simulator.report.labels import batch_called, batches_called
from simulator.report.numbers import chance, metric_figure
from simulator.report.prediction.job import (
    SCHEMA,
    assumption_object,
    assumption_texts,
    item_table,
    step_bars,
)
from simulator.report.prediction.origins import Origin, find, origins, resting
from simulator.report.prediction.rows import parts, run_rows
from simulator.report.prediction.verdict import verdict
from simulator.report.text import WIDTH, bar, columns, count, percent, wrapped
from simulator.results.cost import listed_price, paid_time, priced
from simulator.results.energy import draws
from simulator.results.metrics import Metric, select
from simulator.results.prediction import Prediction
from simulator.schema.machines import short_name
from simulator.terms import SAME_UNIT, Term, plain, units_of
from simulator.units import (
    BYTE,
    BYTE_PER_SECOND,
    FLOP,
    FLOP_PER_SECOND,
    JOULE,
    KILOGRAM,
    KILOGRAM_PER_JOULE,
    PER_SECOND,
    SECOND,
    USD,
    USD_PER_BYTE,
    USD_PER_BYTE_SECOND,
    USD_PER_JOULE,
    USD_PER_SECOND,
    WATT,
    Unit,
    show,
)

TINY_SHARE: Final = 1e-6
"""Share of a step below which a line of its ledger is not shown."""
MONEY: Final = {
    "per_second": USD_PER_SECOND,
    "per_step": USD,
    "for_machines": USD,
    "samples_per_usd": None,
    "energy_per_step": JOULE,
    "electricity": USD,
}
"""Units of cost metrics; None for a count per dollar."""
_POWERED: Final = {"of_machines": "J", "of_building": "J", "emitted": "kg", "price": "$"}
"""Units of energy metrics."""
CORE_SECOND: Final = Unit("core-s", "CPU work")
_WHOLE_RUN: Final = ("first_step", "epoch", "total")
_INNER: Final = WIDTH - 4
"""Width of text inside a stage of a section [columns]."""
_SYMBOLS: Final = {
    u.symbol: u
    for u in (
        BYTE,
        BYTE_PER_SECOND,
        SECOND,
        FLOP,
        FLOP_PER_SECOND,
        USD,
        USD_PER_SECOND,
        USD_PER_BYTE,
        USD_PER_BYTE_SECOND,
        USD_PER_JOULE,
        PER_SECOND,
        WATT,
        JOULE,
        KILOGRAM,
        KILOGRAM_PER_JOULE,
        CORE_SECOND,
    )
}
"""Units by symbol, as in brackets after the name of an input."""
_UNIT_OF: Final = {Resource.CPU: CORE_SECOND, Resource.GPU: SECOND}


def document(prediction: Prediction, path: str | None = None) -> Document:
    """Return the explanation of a metric, a group of metrics, or the step time as a document.

    Raises
    ------
    UnknownName
        If `path` is not a metric.
    """
    metrics = select("step_time_s" if path is None else path)
    called = batch_called(prediction.scenario)
    chapters = dict.fromkeys(_chapter(metric.name) for metric in metrics)
    return Document(
        title=f"{prediction.scenario.name}: where {path or f'the {called} time'} comes from",
        sections=(
            *_section("Figures", _figures(prediction, metrics)),
            *(part for chapter in chapters for part in chapter(prediction, metrics)),
            *section("Assumptions", notes(assumption_texts(resting(prediction, metrics)))),
        ),
        data=lambda: _object(prediction, path),
        table=lambda: _table(prediction, path),
    )


def _section(title: str, lines: Sequence[str]) -> tuple[Section, ...]:
    """Return lines that are already laid out as a section."""
    return section(title, Code(lines=tuple(lines)))


def _figures(prediction: Prediction, metrics: tuple[Metric, ...]) -> list[str]:
    rows = [(m.name, metric_figure(m.name, m.get(prediction)), m.doc) for m in metrics]
    lines = columns([row[:2] for row in rows], "<<")
    if all(len(line) + len(row[2]) < WIDTH - 4 for line, row in zip(lines, rows, strict=True)):
        return columns(rows, "<<<")
    return [part for line in lines for part in wrapped(line)]


Chapter = Callable[[Prediction, tuple[Metric, ...]], tuple[Section, ...]]


def _chapter(name: str) -> Chapter:
    return next(chapter for start, chapter in _CHAPTERS.items() if name.startswith(start))


def _time(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:
    called = batch_called(prediction.scenario)
    whole_run = any(metric.name.startswith(_WHOLE_RUN) for metric in metrics)
    return (
        *section("The run", Rows(rows=tuple(run_rows(prediction) if whole_run else ()))),
        *section(f"The mean {called}, as its exposed parts", step_bars(prediction)),
        *_section(f"The mean {called}, slot by slot", _ledger(prediction)),
        *_demands(prediction, None),
        *_checkpoint(prediction),
        *_bound(prediction, ()),
    )


def _checkpoints(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:  # noqa: ARG001 - one signature
    called = batch_called(prediction.scenario)
    none = _section("Checkpoints", ["none are written (train.checkpoint_every_steps)"])
    return (
        *(_checkpoint(prediction) or none),
        *section(f"The mean {called}, as its exposed parts", step_bars(prediction)),
    )


def _checkpoint(prediction: Prediction) -> tuple[Section, ...]:
    """Return a section on the demands of a checkpoint, and its share of a step; empty if none."""
    scenario = prediction.scenario
    written = prediction.timing.checkpoints
    stages = checkpoint_stages(scenario) if written else ()
    if not any(stage.demands for stage in stages):
        return ()
    topology, known = build(scenario), origins(scenario)
    taken = prediction.timing.split.checkpoint * prediction.total_steps / written
    lines = [
        f"  {line}"
        for stage in stages
        for demand in stage.demands
        for line in _demand(demand, topology, Location(rank=0), known)
    ]
    share = show(taken * written / prediction.total_steps, SECOND)
    total = f"{count(written)} in {count(prediction.total_steps)} steps"
    lines += wrapped(
        f"{show(taken, SECOND)} each, {total}: {share} of a step, while training waits"
    )
    return _section("Demands of a checkpoint, all machines writing at once", lines)


def _ledger(prediction: Prediction) -> list[str]:
    """Return the entries of the step's ledger, each with its part of the step."""
    rows = [
        (name, show(seconds, SECOND), f"in {LINES[name]}")
        for name, seconds in prediction.timing.ledger.items()
        if seconds > TINY_SHARE * prediction.timing.step_time.mean
    ]
    return columns(rows, "<><")


def _utilization(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:
    names = {metric.name.split(".")[1] for metric in metrics}
    return _demands(prediction, frozenset(r for r in Resource if str(r) in names))


def _cpu(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:  # noqa: ARG001 - one signature
    group = prediction.scenario.cluster.trainers
    pool = group.host.cpu
    facts = [
        ("vCPUs of one machine", count(pool.threads)),
        ("physical cores", count(pool.cores)),
        ("worth of a second thread", f"{pool.smt_worth:.3g} of a core"),
        ("accelerators in use", count(group.gpus_per_host)),
    ]
    return (
        *_demands(prediction, frozenset({Resource.CPU, Resource.GPU})),
        *_section("vCPUs", columns(facts, "<>")),
    )


def _memory(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:
    wanted = {metric.name.split(".")[0].removesuffix("_bytes") for metric in metrics}
    sections: list[Section] = []
    known = origins(prediction.scenario)
    for key, title, fit in (
        ("host_ram", "Host RAM per machine", prediction.host_ram),
        ("gpu_memory", "Memory per accelerator", prediction.memory),
    ):
        if fit is None or wanted.isdisjoint({key, "fits"}):
            continue
        sums = (("= needed", show(fit.total, BYTE)), ("capacity", show(fit.capacity, BYTE)))
        sections += section(title, item_table(fit, *sums, *_sureness(fit)))
        sections += _section(f"{title}: equations", _equations(fit.terms, BYTE.symbol, known))
        origin = origin_texts(find(known, "ram memory", fit.capacity))
        sections += _section(
            f"{title}: origin", [part for text in origin for part in wrapped(text)]
        )
    return tuple(sections)


def _sureness(fit: MemoryFit | HostRam) -> tuple[tuple[str, str], ...]:
    """Return rows with the interval of the needed memory and the probability that it fits."""
    if not isinstance(fit, MemoryFit) or fit.probability is None:
        return ()
    low, high = (show(end, BYTE) for end in fit.band)
    return (("80% interval", f"{low} to {high}"), ("fits with", chance(fit.probability)))


def _energy(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:  # noqa: ARG001 - one signature
    """Return sections on the power of each part of the machines: idle, busy, and mean."""
    found, called = draws(prediction.scenario, prediction.timing), batch_called(prediction.scenario)
    if found is None:
        gpu = prediction.scenario.cluster.trainers.host.gpu
        name = "an accelerator" if gpu is None else gpu.name
        return _section(
            f"Energy of a {called}", [f"unknown: the profile of {name} states no power"]
        )
    head = ("", "at rest", "at work", "busy", "mean")
    rows = [
        (d.part, show(d.idle, WATT), show(d.full, WATT), percent(d.busy), show(d.mean, WATT))
        for d in found
    ]
    total = show(sum(d.mean for d in found), WATT)
    rows += [("= all machines", "", "", "", total)]
    step = show(prediction.timing.step_time.mean, SECOND)
    sources = dict.fromkeys(
        f"{draw.part}: {draw.source.reference}, {draw.source.date}"
        + ("" if draw.source.verified else ", UNVERIFIED")
        for draw in found
    )
    return (
        *_section("Power of all machines", columns([head, *rows], "<>>>>")),
        *_section(f"Energy of a {called}", [f"{total} x mean {called} {step}"]),
        *_section("Energy of the run", _run_energy(prediction)),
        *_section("Power from", [line for text in sources for line in wrapped(text)]),
    )


def _run_energy(prediction: Prediction) -> list[str]:
    """Return the equations of the run's energy, and lines for unknown values."""
    energy, known = prediction.energy, origins(prediction.scenario)
    made = [
        line
        for name, one in energy.terms.items()
        for line in _equations({name: one}, _POWERED[name], known)
    ]
    return [*made, *(line for text in energy.missing for line in wrapped(f"unknown: {text}"))]


def _cost(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:  # noqa: ARG001 - one signature
    cost = prediction.cost
    group = prediction.scenario.cluster.trainers
    if cost.per_second is None:
        return _section("Price", [f"the profile of {short_name(group.host.name)} states no price"])
    price = listed_price(prediction.scenario, group)
    stated = (
        "stated by the scenario"
        if price is None
        else f"{price.region}; {price.source.reference}, {price.source.date}"
    )
    rows = [
        ("rent of all machines", show(cost.per_second, USD_PER_SECOND)),
        (
            f"mean {batch_called(prediction.scenario)}",
            show(prediction.timing.step_time.mean, SECOND),
        ),
        ("billed time", show(float(paid_time(prediction.scenario, cost.time_to_train)), SECOND)),
        ("machines", count(group.count)),
    ]
    known = origins(prediction.scenario)
    made = [
        line
        for name, one in cost.terms.items()
        for line in _equations({name: one}, _symbol(name), known)
    ]
    return (
        *_section("Price", columns(rows, "<>")),
        *_section("Price from", wrapped(stated)),
        *_section("Equations", made),
    )


def _symbol(name: str) -> str:
    unit = MONEY[name]
    return "1/$" if unit is None else unit.symbol


def _whole_bill(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:
    """Return sections on the total cost of machines and storage."""
    machines, stores = prediction.cost.for_machines, prediction.storage
    if machines is None or prediction.in_all is None:
        return _cost(prediction, metrics)
    least = "at least " if stores.missing else ""
    rows = [
        ("machines", show(machines, USD)),
        ("+ storage", f"{least}{show(stores.known, USD)}"),
        ("total", f"{least}{show(prediction.in_all, USD)}"),
    ]
    return (
        *_section("The whole bill", columns(rows, "<>")),
        *_cost(prediction, metrics),
        *_stores(prediction, metrics),
    )


def _stores(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:  # noqa: ARG001 - one signature
    bill = prediction.storage
    if not bill.terms and not bill.missing:
        return _section("Storage", ["all data are on drives that are billed with their machines"])
    texts = [*(f"unknown: {text}" for text in bill.missing), *bill.notes]
    prices = [line for text in priced(prediction.scenario) for line in wrapped(text)]
    return (
        *_section("Prices of storage", prices),
        *_section("Storage", _equations(bill.terms, "$", origins(prediction.scenario))),
        *_section("Notes", [line for text in texts for line in wrapped(text)]),
    )


def _equations(terms: Mapping[str, Term], unit: str, known: tuple[Origin, ...]) -> list[str]:
    """Format each term with its name, value and equation; terms of zero are omitted."""
    lines: list[str] = []
    for name, one in terms.items():
        if (value := float(one.value)) != 0.0:
            lines += [f"{name} = {_shown(unit, value)}", *term_lines(one, known, unit, 2)]
    return lines


_COUNTED: Final = {
    "mfu": model_utilization,
    "hfu": hardware_utilization,
    "flops_per_s_per_gpu": rate_per_device,
}
"""Functions that return the equation of metrics that count FLOPs."""


def _arithmetic(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:
    """Return a section with the equations that count FLOPs, each with its inputs."""
    scenario, rate = prediction.scenario, prediction.timing.throughput
    known = origins(scenario)
    lines: list[str] = []
    for metric in metrics:
        one = _COUNTED[metric.name](scenario, rate)
        if one is not None:
            unit = "" if metric.unit is None else metric.unit.symbol
            lines += _equations({metric.name: one}, unit, known)
    return _section("Equations", lines)


def _bound(prediction: Prediction, metrics: tuple[Metric, ...]) -> tuple[Section, ...]:  # noqa: ARG001 - one signature
    timing, bounds = prediction.timing, prediction.bounds
    called = batch_called(prediction.scenario)
    rows = [
        ("at least", show(bounds.lower, SECOND), "the busiest unit's work / its capacity"),
        (
            "simulated",
            show(timing.total_time / max(1, prediction.total_steps), SECOND),
            f"total time / {batches_called(prediction.scenario)}, start and end included",
        ),
        ("at most", show(bounds.upper, SECOND), "all work of all ranks one after another"),
    ]
    return (
        *_section(f"The {called} with each resource alone", _imposed(prediction)),
        *_section(f"Bounds of the whole run, per {called}", columns(rows, "<><")),
        *section("Verdict", notes([verdict(prediction)])),
    )


def _imposed(prediction: Prediction) -> list[str]:
    scenario, usage = prediction.scenario, prediction.timing.usage
    imposed = pressures(scenario, build(scenario), prediction.demands)
    longest = max(imposed.values(), default=0.0) or 1.0
    rows = [
        (
            str(resource),
            show(seconds, SECOND),
            f"{percent(usage[resource].mean)} busy" if resource in usage else "",
            bar(seconds / longest),
        )
        for resource, seconds in imposed.items()
    ]
    return columns(rows, "<>><")


_CHAPTERS: Final[dict[str, Chapter]] = {
    **dict.fromkeys(_COUNTED, _arithmetic),
    "utilization.": _utilization,
    "vcpus": _cpu,
    "host_ram": _memory,
    "gpu_memory": _memory,
    "fits": _memory,
    "cost.energy": _energy,
    "energy": _energy,
    "cost.storage": _stores,
    "cost.usd_to_train": _whole_bill,
    "cost.usd_with_storage": _whole_bill,
    "cost": _cost,
    "bound_s": _bound,
    "step_split_s.checkpoint": _checkpoints,
    "": _time,
}
"""First chapter whose key the metric's name starts with."""


def _demands(prediction: Prediction, only: frozenset[Resource] | None) -> tuple[Section, ...]:
    topology = build(prediction.scenario)
    known = origins(prediction.scenario)
    lines: list[str] = []
    for stage in prediction.demands:
        place = Location(rank=0, site=topology.sites_of(stage.group)[0])
        wanted = [d for d in stage.demands if asks(d) and _is_of(d, only, topology, place)]
        where = f" of group '{stage.group}'" if stage.group else ""
        lines += [f"{stage.stage} (by the {stage.actor}{where})"] if wanted else []
        for demand in wanted:
            lines += [f"  {line}" for line in _demand(demand, topology, place, known)]
    return _section("Demands of one batch of one rank", lines)


def _is_of(
    demand: Demand, only: frozenset[Resource] | None, topology: Topology, place: Location
) -> bool:
    """Return True if a demand is on one of these resources; a collective uses all of its links."""
    if only is None or demand.resource in only:
        return True
    exchanged = topology.way(demand, place) if demand.path is Path.EXCHANGE else ()
    return any(
        float(use) > 0.0 and topology.units[unit].resource in only for unit, use in exchanged
    )


def _way(
    demand: Demand, topology: Topology, place: Location, known: tuple[Origin, ...]
) -> list[str]:
    """Return a line with the slowest unit on the route of a demand, on an idle machine."""
    slowest = slowest_unit(topology, demand, place) if float(demand.amount) > 0.0 else None
    if slowest is None or not math.isfinite(float(slowest[1])):
        return []
    unit, rate = slowest
    label = "rate peak achievable bandwidth cap limit operations"
    origin = find(known, label, float(topology.units[unit].capacity))
    return [f"slowest unit = {unit}, {show(float(rate), BYTE_PER_SECOND)}{_from(origin)}"]


def asks(demand: Demand) -> bool:
    """Return True if a demand has an amount or a latency."""
    return float(demand.amount) > 0.0 or float(demand.latency) > 0.0


def _demand(
    demand: Demand, topology: Topology, place: Location, known: tuple[Origin, ...]
) -> list[str]:
    amount = show(float(demand.amount), unit_of(demand))
    parts = [f"{demand.resource}: {amount}", *_limits(demand)]
    if demand.resource is not Resource.GPU:
        parts.append(f"{show(float(alone(topology, demand, place)), SECOND)} on an idle machine")
    lines = wrapped(", ".join(parts), width=_INNER)
    way = [
        part
        for row in _way(demand, topology, place, known)
        for part in wrapped(f"    {row}", " " * 8, _INNER)
    ]
    unit = SECOND if float(demand.amount) == 0.0 else unit_of(demand)
    made = [] if demand.term is None else term_lines(demand.term, known, unit.symbol, 2)
    if demand.delay is not None and float(demand.latency) > 0.0:
        made += [f"  latency = {show(float(demand.latency), SECOND)}"]
        made += term_lines(demand.delay, known, SECOND.symbol, 4)
    return [*lines, *made, *way]


def term_lines(term: Term, known: tuple[Origin, ...], unit: str, indent: int = 0) -> list[str]:
    """Return an equation and its inputs as lines, nested equations indented below them.

    `unit` is the symbol of the unit of the term's value.
    """
    stated = term.is_arithmetic and len(term.inputs) == 1
    equation = wrapped(f"{' ' * indent}= {term.name}", " " * (indent + 2), _INNER)
    lines = [] if stated else equation
    for name, given in term.inputs.items():
        symbol, lead = symbol_of(term, name, unit), " " * (indent + 2)
        label = f"{name} [{symbol}]"
        value = plain(given)
        if isinstance(value, str | tuple):
            said = value if isinstance(value, str) else ", ".join(f"{one:.6g}" for one in value)
            lines += wrapped(f"{lead}{name} = {said}", lead + " " * 4, _INNER)
            continue
        lines += wrapped(f"{lead}{_input(label, float(value), known)}", lead + " " * 4, _INNER)
        if isinstance(given, Term):
            lines += term_lines(given, known, symbol, indent + 4)
    return lines


def symbol_of(term: Term, parameter: str, unit: str) -> str:
    """Return the symbol of the unit of a term's input; empty for a number.

    The formula sheet states it; operands of a sum have the `unit` of the term's value, and so has
    the first factor of a product.
    """
    if term.is_arithmetic:
        first = parameter == next(iter(term.inputs))
        return unit if first or term.equation in SAME_UNIT else ""
    found = units_of(term.equation).get(parameter)
    return "" if found is None else found.symbol


def unit_of(demand: Demand) -> Unit:
    """Return the unit of a demand's amount."""
    return _UNIT_OF.get(demand.resource, BYTE)


def _limits(demand: Demand) -> list[str]:
    """Describe the limits of a demand other than its amount."""
    parts = []
    if float(demand.operations) > 0.0:
        parts.append(f"{count(float(demand.operations))} operations")
    if float(demand.latency) > 0.0:
        parts.append(f"{show(float(demand.latency), SECOND)} of latency")
    if demand.ceiling is not None and math.isfinite(demand.ceiling):
        parts.append(f"at most {show(float(demand.ceiling), BYTE_PER_SECOND)}")
    if float(demand.outward) > 0.0:
        parts.append(f"{percent(float(demand.outward))} of it out of the machine")
    if demand.sharers is not None and float(demand.sharers) > 1.0:
        parts.append(f"{count(float(demand.sharers))} machines at once")
    if demand.threads > 1.0:
        parts.append(f"{demand.threads:.3g} threads")
    return parts


def _shown(symbol: str, value: float) -> str:
    unit = _SYMBOLS.get(symbol)
    return f"{value:.6g}" if unit is None else show(value, unit)


def _input(label: str, value: float, known: tuple[Origin, ...]) -> str:
    name, unit, origin = input_of(label, value, known)
    shown = f"{value:.6g}" if unit is None else show(value, unit)
    return f"{name} = {shown}{_from(origin)}"


def input_of(
    label: str, value: float, known: tuple[Origin, ...]
) -> tuple[str, Unit | None, Origin | None]:
    """Return the name, unit and origin of an input of an equation.

    `label` is its name with the unit in brackets.
    """
    name, _, rest = label.partition(" [")
    origin = find(known, label, value)
    unit = _SYMBOLS.get(rest.removesuffix("]"), None if origin is None else origin.unit)
    return name, unit, origin


def origin_texts(origin: Origin | None) -> list[str]:
    """Return the key or profile that a value comes from, with its source; empty if unknown."""
    if origin is None:
        return []
    if origin.source is None:
        key = origin.path.removeprefix("jobs.").replace("dataset.", "data.")
        return [f"{key} of the scenario"] if key in _keys() else []
    mark = "" if origin.source.verified else ", UNVERIFIED"
    source = f"{origin.source.reference}, {origin.source.date}{mark}"
    return [f"{origin.owner} {origin.name} [{source}]"]


@cache
def _keys() -> frozenset[str]:
    return frozenset(setting_names())


def _from(origin: Origin | None) -> str:
    texts = origin_texts(origin)
    return f"   from {'; '.join(texts)}" if texts else ""


_MEMORY: Final = ("host_ram", "gpu_memory", "fits")
_BILLED_APART: Final = ("cost.storage", "cost.energy")
_COMPUTE: Final = frozenset({Resource.CPU, Resource.GPU})


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRow:
    """One value of an explanation: its owner (`of`), its unit, and its equation or source."""

    kind: str
    of: str
    name: str
    value: float | str | None
    unit: Unit | None = None
    source: str = ""


def terms(prediction: Prediction, path: str | None = None) -> tuple[TermRow, ...]:
    """Return the values of an explanation one by one; raises `UnknownName` as `document` does."""
    metrics = select("step_time_s" if path is None else path)
    return (*_figure_terms(prediction, metrics), *_terms_behind(prediction, metrics))


def _table(prediction: Prediction, path: str | None) -> Table:
    """Return a row for each value of an explanation, in SI units."""
    rows = tuple(
        (term.kind, term.of, term.name, term.value, _unit_symbol(term.unit), term.source)
        for term in terms(prediction, path)
    )
    return Table(head=("kind", "of", "name", "value", "unit", "from"), rows=rows)


def _object(prediction: Prediction, path: str | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "scenario": prediction.scenario.name,
        "metric": path or "step_time_s",
        "terms": [_term_object(term) for term in terms(prediction, path)],
        "assumptions": [
            assumption_object(one) for one in resting(prediction, select(path or "step_time_s"))
        ],
    }


def _term_object(term: TermRow) -> dict[str, object]:
    endless = isinstance(term.value, float) and not math.isfinite(term.value)
    value = None if endless else term.value
    return {**asdict(term), "unit": _unit_symbol(term.unit), "value": value}


def _unit_symbol(unit: Unit | None) -> str:
    return "" if unit is None else unit.symbol


def _figure_terms(prediction: Prediction, metrics: tuple[Metric, ...]) -> Iterator[TermRow]:
    for metric in metrics:
        value = metric.get(prediction)
        if not isinstance(value, Mapping):
            text = str(value) if isinstance(value, str) else value
            yield TermRow(
                kind="figure",
                of="",
                name=metric.name,
                value=text,
                unit=metric.unit,
                source=metric.doc,
            )


def _terms_behind(prediction: Prediction, metrics: tuple[Metric, ...]) -> Iterator[TermRow]:
    """Yield the values behind metrics: items of memory and cost, or demands and parts of a step."""
    starts = {metric.name.partition(".")[0].removesuffix("_bytes") for metric in metrics}
    if not starts.isdisjoint(_MEMORY):
        yield from _item_terms(prediction, starts)
    elif starts == {"utilization"}:
        asked = {metric.name.split(".")[1] for metric in metrics}
        yield from _demand_terms(prediction, frozenset(r for r in Resource if str(r) in asked))
    elif any(start.startswith("vcpus") for start in starts):
        yield from _demand_terms(prediction, _COMPUTE)
    elif "cost" in starts:
        apart = all(metric.name.startswith(_BILLED_APART) for metric in metrics)
        yield from () if apart else _bill_terms(prediction)
    else:
        for name, seconds in parts(prediction.timing.split):
            yield TermRow(kind="part", of="step", name=name, value=seconds, unit=SECOND)
        yield from _demand_terms(prediction, frozenset(Resource))


def _item_terms(prediction: Prediction, starts: set[str]) -> Iterator[TermRow]:
    known = origins(prediction.scenario)
    for key, fit in (("host_ram", prediction.host_ram), ("gpu_memory", prediction.memory)):
        if fit is None or starts.isdisjoint({key, "fits"}):
            continue
        for name, size in fit.items.items():
            made = fit.terms.get(name)
            source = "" if made is None else made.name
            yield TermRow(
                kind="item", of=key, name=name, value=float(size), unit=BYTE, source=source
            )
            if made is not None:
                yield from _input_terms(made, f"{key}: {name}", known, BYTE.symbol)


def _bill_terms(prediction: Prediction) -> Iterator[TermRow]:
    known = origins(prediction.scenario)
    for name, made in prediction.cost.terms.items():
        unit = MONEY[name]
        yield TermRow(
            kind="item", of="cost", name=name, value=float(made.value), unit=unit, source=made.name
        )
        yield from _input_terms(made, f"cost: {name}", known, _unit_symbol(unit))


def _demand_terms(prediction: Prediction, only: frozenset[Resource]) -> Iterator[TermRow]:
    known = origins(prediction.scenario)
    for stage in prediction.demands:
        owner = f"{stage.stage} (group '{stage.group}')" if stage.group else stage.stage
        for demand in stage.demands:
            if asks(demand) and demand.resource in only:
                yield from _demand_term(demand, owner, known)


def _demand_term(demand: Demand, owner: str, known: tuple[Origin, ...]) -> Iterator[TermRow]:
    resource, passes = str(demand.resource), float(demand.amount) == 0.0
    yield TermRow(
        kind="demand",
        of=owner,
        name=resource,
        value=float(demand.latency if passes else demand.amount),
        unit=SECOND if passes else unit_of(demand),
        source="as stated" if demand.term is None else demand.term.name,
    )
    if demand.term is not None:
        unit = SECOND if passes else unit_of(demand)
        yield from _input_terms(demand.term, f"{owner}: {resource}", known, unit.symbol)
    if demand.delay is not None:
        value, of = float(demand.latency), f"{owner}: {resource} latency"
        source = demand.delay.name
        yield TermRow(
            kind="latency", of=owner, name=resource, value=value, unit=SECOND, source=source
        )
        yield from _input_terms(demand.delay, of, known, SECOND.symbol)


def _input_terms(term: Term, of: str, known: tuple[Origin, ...], own: str) -> Iterator[TermRow]:
    """Yield the inputs of an equation; after a nested value, the inputs of its equation.

    `of` is what the term belongs to, `own` the symbol of the unit of its value.
    """
    for parameter, given in term.inputs.items():
        value = plain(given)
        if isinstance(value, str | tuple):
            text = str(value) if isinstance(value, str) else " ".join(map(repr, value))
            yield TermRow(kind="input", of=of, name=parameter, value=text)
            continue
        symbol = symbol_of(term, parameter, own)
        label = f"{parameter} [{symbol}]"
        name, unit, origin = input_of(label, float(value), known)
        said = "; ".join(origin_texts(origin))
        if isinstance(given, Term):
            said = given.name
        yield TermRow(kind="input", of=of, name=name, value=float(value), unit=unit, source=said)
        if isinstance(given, Term):
            yield from _input_terms(given, f"{of}: {parameter}", known, symbol)
