"""The terms behind a number as one table: figures, demands, the inputs of each, parts, items."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from simulator import terms as recorded
from simulator.pipeline.stages.base import Demand, Resource
from simulator.report.format.table import Table, as_markdown
from simulator.report.numbers import figure
from simulator.report.prediction.explain import (
    MONEY,
    asks,
    input_of,
    origin_texts,
    symbol_of,
    unit_of,
)
from simulator.report.prediction.json import assumption_object
from simulator.report.prediction.origins import Origin, origins, resting
from simulator.report.prediction.rows import parts
from simulator.results.metrics import Metric, select
from simulator.results.prediction import Prediction
from simulator.units import BYTE, SECOND, Unit

SCHEMA: Final = 1
_MEMORY: Final = ("host_ram", "gpu_memory", "fits")
_BILLED_APART: Final = ("cost.storage", "cost.energy")
_COMPUTE: Final = frozenset({Resource.CPU, Resource.GPU})


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A number on the way to another: what it belongs to, its unit, and where it comes from."""

    kind: str
    of: str
    name: str
    value: float | str | None
    unit: Unit | None = None
    source: str = ""


def terms(prediction: Prediction, path: str | None = None) -> tuple[Term, ...]:
    """What `as_explanation` shows, number by number; raises as it does."""
    metrics = select("step_time_s" if path is None else path)
    return (*_figures(prediction, metrics), *_behind(prediction, metrics))


def as_table(prediction: Prediction, path: str | None = None) -> Table:
    """Every term in SI units."""
    rows = tuple(
        (term.kind, term.of, term.name, term.value, _symbol(term.unit), term.source)
        for term in terms(prediction, path)
    )
    return Table(head=("kind", "of", "name", "value", "unit", "from"), rows=rows)


def as_page(prediction: Prediction, path: str | None = None) -> str:
    """Every term as people write it, as Markdown."""
    rows = tuple(
        (term.kind, term.of, term.name, figure(term.value, term.unit), term.source)
        for term in terms(prediction, path)
    )
    return as_markdown(Table(head=("kind", "of", "name", "value", "from"), rows=rows))


def as_json(prediction: Prediction, path: str | None = None) -> str:
    """Every term, and what the prediction rests on, as one JSON object."""
    tree = {
        "schema": SCHEMA,
        "scenario": prediction.scenario.name,
        "metric": path or "step_time_s",
        "terms": [_object(term) for term in terms(prediction, path)],
        "assumptions": [
            assumption_object(one) for one in resting(prediction, select(path or "step_time_s"))
        ],
    }
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)


def _object(term: Term) -> dict[str, object]:
    endless = isinstance(term.value, float) and not math.isfinite(term.value)
    value = None if endless else term.value
    return {**asdict(term), "unit": _symbol(term.unit), "value": value}


def _symbol(unit: Unit | None) -> str:
    return "" if unit is None else unit.symbol


def _figures(prediction: Prediction, metrics: tuple[Metric, ...]) -> Iterator[Term]:
    for metric in metrics:
        value = metric.get(prediction)
        if not isinstance(value, Mapping):
            told = str(value) if isinstance(value, str) else value
            yield Term(
                kind="figure",
                of="",
                name=metric.name,
                value=told,
                unit=metric.unit,
                source=metric.doc,
            )


def _behind(prediction: Prediction, metrics: tuple[Metric, ...]) -> Iterator[Term]:
    """Memory and the bill are made of items, times of demands and parts."""
    starts = {metric.name.partition(".")[0].removesuffix("_bytes") for metric in metrics}
    if not starts.isdisjoint(_MEMORY):
        yield from _items(prediction, starts)
    elif starts == {"utilization"}:
        asked = {metric.name.split(".")[1] for metric in metrics}
        yield from _demands(prediction, frozenset(r for r in Resource if str(r) in asked))
    elif any(start.startswith("vcpus") for start in starts):
        yield from _demands(prediction, _COMPUTE)
    elif "cost" in starts:
        apart = all(metric.name.startswith(_BILLED_APART) for metric in metrics)
        yield from () if apart else _bill(prediction)
    else:
        for name, seconds in parts(prediction.timing.split):
            yield Term(kind="part", of="step", name=name, value=seconds, unit=SECOND)
        yield from _demands(prediction, frozenset(Resource))


def _items(prediction: Prediction, starts: set[str]) -> Iterator[Term]:
    known = origins(prediction.scenario)
    for key, fit in (("host_ram", prediction.host_ram), ("gpu_memory", prediction.memory)):
        if fit is None or starts.isdisjoint({key, "fits"}):
            continue
        for name, size in fit.items.items():
            made = fit.terms.get(name)
            source = "" if made is None else made.name
            yield Term(kind="item", of=key, name=name, value=float(size), unit=BYTE, source=source)
            if made is not None:
                yield from _inputs(made, f"{key}: {name}", known, BYTE.symbol)


def _bill(prediction: Prediction) -> Iterator[Term]:
    known = origins(prediction.scenario)
    for name, made in prediction.cost.terms.items():
        unit = MONEY[name]
        yield Term(
            kind="item", of="cost", name=name, value=float(made.value), unit=unit, source=made.name
        )
        yield from _inputs(made, f"cost: {name}", known, _symbol(unit))


def _demands(prediction: Prediction, only: frozenset[Resource]) -> Iterator[Term]:
    known = origins(prediction.scenario)
    for stage in prediction.demands:
        owner = f"{stage.stage} (group '{stage.group}')" if stage.group else stage.stage
        for demand in stage.demands:
            if asks(demand) and demand.resource in only:
                yield from _demand(demand, owner, known)


def _demand(demand: Demand, owner: str, known: tuple[Origin, ...]) -> Iterator[Term]:
    resource, passes = str(demand.resource), float(demand.amount) == 0.0
    yield Term(
        kind="demand",
        of=owner,
        name=resource,
        value=float(demand.latency if passes else demand.amount),
        unit=SECOND if passes else unit_of(demand),
        source="as stated" if demand.term is None else demand.term.name,
    )
    if demand.term is not None:
        unit = SECOND if passes else unit_of(demand)
        yield from _inputs(demand.term, f"{owner}: {resource}", known, unit.symbol)
    if demand.delay is not None:
        value, of = float(demand.latency), f"{owner}: {resource} latency"
        source = demand.delay.name
        yield Term(kind="latency", of=owner, name=resource, value=value, unit=SECOND, source=source)
        yield from _inputs(demand.delay, of, known, SECOND.symbol)


def _inputs(term: recorded.Term, of: str, known: tuple[Origin, ...], own: str) -> Iterator[Term]:
    """What an equation was given; after a value that another equation gave, what that was given.

    `own` is the unit of the term's value.
    """
    for parameter, given in term.inputs.items():
        value = recorded.plain(given)
        if isinstance(value, str | tuple):
            text = str(value) if isinstance(value, str) else " ".join(map(repr, value))
            yield Term(kind="input", of=of, name=parameter, value=text)
            continue
        symbol = symbol_of(term, parameter, own)
        label = f"{parameter} [{symbol}]"
        name, unit, origin = input_of(label, float(value), known)
        said = "; ".join(origin_texts(origin))
        if isinstance(given, recorded.Term):
            said = given.name
        yield Term(kind="input", of=of, name=name, value=float(value), unit=unit, source=said)
        if isinstance(given, recorded.Term):
            yield from _inputs(given, f"{of}: {parameter}", known, symbol)
