"""The rows of a report, as texts in pairs: what every face of it shows alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Final

from simulator.report import numbers
from simulator.report.document import Cell, Table
from simulator.report.labels import (
    batch_called,
    batches_called,
    bill_called,
    device_called,
    price_called,
)
from simulator.report.numbers import figure, metric_figure
from simulator.report.stores import in_all, store_rows
from simulator.report.text import count, percent
from simulator.results import ownership
from simulator.results.cost import is_block, machine_price, paid_time
from simulator.results.metrics import JOB_METRICS, Metric, number_at, select
from simulator.results.prediction import Prediction, StepSplit, Timing
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.naming import short_name
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.units import (
    BYTE,
    JOULE,
    KILOGRAM_PER_JOULE,
    PER_SECOND,
    SECOND,
    THOUSAND,
    USD,
    USD_PER_JOULE,
    USD_PER_SECOND,
    show,
)

Row = tuple[str, str]
"""A name and what stands beside it."""

DIGITS: Final = 3
"""Significant digits of the ends of an interval."""
NEGLIGIBLE: Final = 1e-5
"""Share of the whole below which a part of it is not shown."""


def hidden_exchange(timing: Timing) -> str:
    """How much communication takes no time of its own; empty where it is too little to show."""
    hidden = timing.communication.hidden
    if hidden <= NEGLIGIBLE * timing.step_time.mean:
        return ""
    return f"{show(hidden, SECOND, DIGITS)} of communication hides under compute"


def band(prediction: Prediction, name: str) -> str:
    """What to say after a metric: between which values it lies in four of five cases."""
    quantiles = prediction.interval.get(name)
    if quantiles is None:
        return ""
    low, high = (_end(quantiles[key], name) for key in ("p10", "p90"))
    number, _, unit = low.partition(" ")
    alike = unit and high.endswith(f" {unit}")
    return f", 80%: {number if alike else low} to {high}"


def _end(value: float, name: str) -> str:
    """One end of a metric's interval, with no more digits than it deserves."""
    unit = select(name)[0].unit
    return figure(value, unit) if unit in {None, PER_SECOND} else show(value, unit, DIGITS)


def head(prediction: Prediction) -> list[str]:
    """What is run, on which machines: a title, the machines that train, those that help."""
    scenario = prediction.scenario
    group, train = scenario.cluster.trainers, scenario.job.train
    title = f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name
    gpu, store = group.host.gpu, short_name(group.storage.name)
    devices = f" with {group.gpus_per_host} x {short_name(gpu.name)}" if gpu else ""
    batch = f"{count(train.batch_size)} samples"
    accumulated = f" x {train.accumulation} batches" if train.accumulation > 1 else ""
    computed = "" if scenario.job.mode is Mode.PREPARE else f" in {train.precision}"
    machine = (
        f"{group.count} x {short_name(group.host.name)}{devices}; reads from {store}; "
        f"a {batch_called(scenario)} is {scenario.ranks} x {batch}{accumulated}{computed}"
    )
    helpers = [
        f"{other.count} x {short_name(other.host.name)} as group '{other.name}'; reads from "
        f"{short_name(other.storage.name)}"
        for other in scenario.cluster.groups
        if other is not group
    ]
    return [title, machine, *helpers]


def parts(split: StepSplit) -> list[tuple[str, float]]:
    """The exposed parts of a step by name [s]."""
    return [(field.name, getattr(split, field.name)) for field in fields(split)]


def run_rows(prediction: Prediction) -> list[Row]:
    """Throughput, and the times of the whole run."""
    timing = prediction.timing
    bounds, known = prediction.bounds, partial(band, prediction)
    average = f"{show(bounds.lower, SECOND)} to {show(bounds.upper, SECOND)}"
    batch = batch_called(prediction.scenario)
    many = batches_called(prediction.scenario)
    steps, total = (f"{n:,} {many}" for n in (prediction.steps_per_epoch, prediction.total_steps))
    rows = [
        ("throughput", f"{count(timing.throughput)} samples/s{known('throughput_samples_per_s')}"),
        (
            f"first {batch}",
            f"{show(timing.first_step, SECOND)} after the start{known('first_step_s')}",
        ),
        ("epoch", f"{show(timing.epoch_time, SECOND)} ({steps}){known('epoch_time_s')}"),
        ("first epoch", f"{show(timing.first_epoch_time, SECOND)} (caches cold)"),
        ("total", f"{show(timing.total_time, SECOND)} ({total}){known('total_time_s')}"),
        ("bounds", f"{average} for total time / {many}, in closed form"),
    ]
    rows += [(name, f"{show(time, SECOND)}, once") for name, time in prediction.one_off.items()]
    if prediction.break_even_epochs is not None:
        rows.append(("break-even", _break_even(prediction.break_even_epochs)))
    if prediction.cache_hit_ratio > 0.0:
        room = show(prediction.page_cache_bytes, BYTE)
        answered = percent(prediction.cache_hit_ratio)
        rows.append(("page cache", f"answers {answered} of the reads, with room for {room}"))
    return rows


def token_rows(prediction: Prediction) -> list[Row]:
    """Figures in the words of language models; none for other jobs."""
    each = device_called(prediction.scenario)
    named = (
        ("tokens/s", "tokens_per_s"),
        (f"tokens/s a {each}", "tokens_per_s_per_gpu"),
        (f"FLOP/s a {each}", "flops_per_s_per_gpu"),
        ("MFU", "mfu"),
        ("HFU", "hfu"),
        ("1T tokens take", "time_per_trillion_tokens_s"),
    )
    if number_at(prediction, "tokens_per_s") is None:
        return []
    batch = count(number_at(prediction, "tokens_per_step") or 0.0)
    found = [("tokens a step", batch), *((n, _told(prediction, metric)) for n, metric in named)]
    return [(name, text) for name, text in found if text]


def _told(prediction: Prediction, metric: str) -> str:
    """A metric to the precision of its interval; shares in per cent; empty without a value."""
    value, unit = number_at(prediction, metric), select(metric)[0].unit
    if value is None:
        return ""
    digits = numbers.digits_of(prediction, metric)
    if unit is None:
        return f"{100.0 * value:.{digits}g}%"
    return numbers.known(prediction, metric)


def _break_even(epochs: float) -> str:
    if math.isinf(epochs):
        return "never: reading the data where it lies is as fast"
    return f"after {epochs:.3g} epochs copying the data first has paid for itself"


def cost_rows(prediction: Prediction) -> list[Row]:
    """What machines, a step and the whole run cost."""
    cost, spread = prediction.cost, partial(band, prediction)
    batch, whole = batch_called(prediction.scenario), bill_called(prediction.scenario)
    held = price_called(prediction.scenario)
    priced = (
        (
            held,
            None if cost.per_second is None else show(cost.per_second, USD_PER_SECOND),
        ),
        (batch, None if cost.per_step is None else show(cost.per_step, USD)),
        ("samples per $", None if cost.samples_per_usd is None else count(cost.samples_per_usd)),
        ("1,000 samples", _per_thousand(cost.samples_per_usd)),
        (whole, _whole_bill(prediction)),
    )
    uncertain = {whole: spread("cost.usd_to_train")}
    rows = [
        (name, f"{value}{uncertain.get(name, '')}") for name, value in priced if value is not None
    ]
    if cost.per_second is None:
        rows += _no_price(prediction)
    billed = float(paid_time(prediction.scenario, cost.time_to_train))
    whole_days = ", whole days of a capacity block" if is_block(prediction.scenario) else ""
    rows.append(("billed time", f"{show(billed, SECOND, DIGITS)}{whole_days}"))
    if cost.energy_per_step is not None:
        of_one = f"{show(cost.energy_per_step, JOULE, DIGITS)} a {batch}"
        energy = f"{of_one} (crude: all machines, at rest and at work)"
        rows.append(("energy", energy))
    return [*rows, *_electricity_rows(prediction), *store_rows(prediction)]


def _whole_bill(prediction: Prediction) -> str | None:
    """Machines and stores; the least that it can be where a store has charges that are unknown."""
    whole = prediction.in_all
    return None if whole is None else in_all(prediction, show(whole, USD))


def _electricity_rows(prediction: Prediction) -> list[Row]:
    """Energy of the run, what it costs and emits, where the scenario tells of electricity."""
    plan, energy = prediction.scenario.energy, prediction.energy
    if plan is None:
        return []
    rows = [("not known", figure) for figure in energy.missing]
    if energy.of_machines is not None and energy.of_building is not None:
        told = numbers.known(prediction, "energy.kwh")
        own = numbers.known(prediction, "energy.machines_kwh")
        text = f"{told}, {own} at the machines, PUE {plan.pue:g}"
        rows.append(("energy of the run", text))
    if energy.price is not None and plan.tariff is not None:
        told, rate = numbers.known(prediction, "energy.usd"), show(plan.tariff, USD_PER_JOULE)
        rows.append(("electricity", f"{told} at {rate}, {plan.sources['tariff'].date}"))
    if energy.emitted is not None and plan.grid is not None:
        told, rate = (
            numbers.known(prediction, "energy.kg_co2e"),
            show(plan.grid, KILOGRAM_PER_JOULE),
        )
        rows.append(("emissions", f"{told} CO2e at {rate}, {plan.sources['grid'].date}"))
    return rows


def _no_price(prediction: Prediction) -> list[Row]:
    """What is missing for a bill."""
    wanted = list(ownership.missing(prediction.scenario))
    if wanted:
        return [("not known", figure) for figure in wanted]
    return [("price", unpriced(prediction.scenario))]


def unpriced(scenario: Scenario) -> str:
    """The machines without a price for what is bought, with the prices that they do have."""
    named = dict.fromkeys(_but_prices(host) for host in _without_price(scenario))
    return f"no price for {', '.join(named)}"


def ways_to_price(scenario: Scenario) -> str:
    """What a user can state to get a bill."""
    bought = all(host.capex is not None for host in _without_price(scenario))
    owned = '; cost.purchase = "owned" bills what owning it costs' if bought else ""
    return f"cost.price states one{owned}"


def _without_price(scenario: Scenario) -> list[Host]:
    groups = scenario.cluster.groups
    return [group.host for group in groups if machine_price(scenario, group) is None]


def _but_prices(host: Host) -> str:
    kinds = tuple(dict.fromkeys(str(price.purchase) for price in host.prices))
    name = short_name(host.name)
    return f"{name} (it has {' and '.join(kinds)} prices)" if kinds else name


def _per_thousand(samples_per_usd: float | None) -> str | None:
    return show(THOUSAND / samples_per_usd, USD) if samples_per_usd else None


def _known(
    prediction: Prediction,
) -> Iterator[tuple[Metric, float | int | str, float | None, float | None]]:
    """Metrics that have one value, the value, and its P10 and P90 where there are any."""
    for one in JOB_METRICS:
        value = one.get(prediction)
        if value is not None and not isinstance(value, Mapping):
            ends = prediction.interval.get(one.name, {})
            yield one, value, ends.get("p10"), ends.get("p90")


def metric_page(prediction: Prediction) -> Table:
    """The same figures as people write them."""
    rows: list[tuple[Cell, ...]] = []
    for one, value, *ends in _known(prediction):
        shown = ("" if end is None else metric_figure(one.name, end) for end in ends)
        rows.append((one.name, metric_figure(one.name, value), *shown))
    return Table(head=("metric", "value", "P10", "P90"), rows=tuple(rows))


def metric_table(prediction: Prediction) -> Table:
    """Every metric that has one value: name, value in SI units, unit, P10 and P90."""
    rows: list[tuple[Cell, ...]] = []
    for one, value, low, high in _known(prediction):
        unit = "" if one.unit is None else one.unit.symbol
        rows.append((one.name, str(value) if isinstance(value, str) else value, unit, low, high))
    return Table(head=("metric", "value", "unit", "p10", "p90"), rows=tuple(rows))
