"""Rows on the run, its tokens and its cost, as terminal reports and pages share them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Final

from simulator.report import numbers
from simulator.report.document import Cell, Row, Table
from simulator.report.labels import (
    batch_called,
    batches_called,
    bill_called,
    device_called,
    price_called,
)
from simulator.report.numbers import bracketed, interval
from simulator.report.text import count, percent
from simulator.results.cost import PARTS, is_block, machine_price, paid_time, priced
from simulator.results.energy import missing as missing_of_owned
from simulator.results.metrics import JOB_METRICS, Metric, number_at, select
from simulator.results.prediction import Prediction, StepSplit, Timing
from simulator.schema.machines import Host, short_name
from simulator.schema.scenario import Scenario
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

DIGITS: Final = 3
"""Significant digits of the ends of an interval."""
NEGLIGIBLE: Final = 1e-5
"""Share of the whole below which a part of it is not shown."""


def hidden_exchange(timing: Timing) -> str:
    """Return the communication that overlaps with compute; empty if negligible."""
    hidden = timing.hidden_communication
    if hidden <= NEGLIGIBLE * timing.step_time.mean:
        return ""
    return f"{show(hidden, SECOND, DIGITS)} of communication overlaps with compute"


def band(prediction: Prediction, name: str) -> str:
    """Return the 80% interval of a metric in brackets; empty without one."""
    ends = prediction.interval.get(name)
    if ends is None:
        return ""
    unit = select(name)[0].unit
    return bracketed(
        interval(ends["p10"], ends["p90"], None if unit is PER_SECOND else unit, DIGITS)
    )


def parts(split: StepSplit) -> list[tuple[str, float]]:
    """Return the exposed parts of a step by name [s]."""
    return [(field.name, getattr(split, field.name)) for field in fields(split)]


def run_rows(prediction: Prediction) -> list[Row]:
    """Return the throughput and the times of the whole run."""
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
        ("bounds", f"{average} per {batch}, total time / {many}, in closed form"),
    ]
    rows += [(name, f"{show(time, SECOND)}, once") for name, time in prediction.one_off.items()]
    if prediction.break_even_epochs is not None:
        rows.append(("break-even", _break_even(prediction.break_even_epochs)))
    if prediction.cache_hit_ratio > 0.0:
        room = show(prediction.page_cache_bytes, BYTE)
        answered = percent(prediction.cache_hit_ratio)
        rows.append(("page cache", f"{answered} hit ratio, {room} of room"))
    return rows


def token_rows(prediction: Prediction) -> list[Row]:
    """Return metrics of language models; none for other jobs."""
    each = device_called(prediction.scenario)
    named = (
        ("tokens/s", "tokens_per_s"),
        (f"tokens/s per {each}", "tokens_per_s_per_gpu"),
        (f"FLOP/s per {each}", "flops_per_s_per_gpu"),
        ("MFU", "mfu"),
        ("HFU", "hfu"),
        ("1T tokens take", "time_per_trillion_tokens_s"),
    )
    if number_at(prediction, "tokens_per_s") is None:
        return []
    batch = count(number_at(prediction, "tokens_per_step") or 0.0)
    found = [("tokens per step", batch), *((n, _figure(prediction, metric)) for n, metric in named)]
    return [(name, text) for name, text in found if text]


def _figure(prediction: Prediction, metric: str) -> str:
    value, unit = number_at(prediction, metric), select(metric)[0].unit
    if value is None:
        return ""
    digits = numbers.digits_of(prediction, metric)
    if unit is None:
        return f"{100.0 * value:.{digits}g}%"
    return numbers.known(prediction, metric)


def _break_even(epochs: float) -> str:
    if math.isinf(epochs):
        return "never: copying the data first saves no time"
    return f"copying the data first pays off after {epochs:.3g} epochs"


def cost_rows(prediction: Prediction) -> list[Row]:
    """Return the cost of machines, of a step and of the whole run."""
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
        (whole, _bill(prediction)),
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
        each = show(cost.energy_per_step, JOULE, DIGITS)
        energy = f"{each} per {batch} (rough: idle and active power of all machines)"
        rows.append(("energy", energy))
    return [*rows, *_electricity_rows(prediction), *store_rows(prediction)]


def _bill(prediction: Prediction) -> str | None:
    whole = prediction.in_all
    return None if whole is None else bill_in_all(prediction, show(whole, USD))


def _electricity_rows(prediction: Prediction) -> list[Row]:
    """Return energy, electricity and emissions of the run; nothing without [energy]."""
    plan, energy = prediction.scenario.energy, prediction.energy
    if plan is None:
        return []
    rows = [("unknown", figure) for figure in energy.missing]
    if energy.of_machines is not None and energy.of_building is not None:
        whole = numbers.known(prediction, "energy.kwh")
        machines = numbers.known(prediction, "energy.machines_kwh")
        text = f"{whole}, {machines} at the machines, PUE {plan.pue:g}"
        rows.append(("energy of the run", text))
    if energy.price is not None and plan.tariff is not None:
        paid, rate = numbers.known(prediction, "energy.usd"), show(plan.tariff, USD_PER_JOULE)
        rows.append(("electricity", f"{paid} at {rate}, {plan.sources['tariff'].date}"))
    if energy.emitted is not None and plan.grid is not None:
        emitted = numbers.known(prediction, "energy.kg_co2e")
        rate = show(plan.grid, KILOGRAM_PER_JOULE)
        rows.append(("emissions", f"{emitted} CO2e at {rate}, {plan.sources['grid'].date}"))
    return rows


def _no_price(prediction: Prediction) -> list[Row]:
    wanted = list(missing_of_owned(prediction.scenario))
    if wanted:
        return [("unknown", figure) for figure in wanted]
    return [("price", unpriced(prediction.scenario))]


def unpriced(scenario: Scenario) -> str:
    """Return the machines without a price for this purchase, with the prices that they have."""
    named = dict.fromkeys(_but_prices(host) for host in _without_price(scenario))
    return f"no price for {', '.join(named)}"


def ways_to_price(scenario: Scenario) -> str:
    """Return the keys that would give a bill."""
    bought = all(host.capex is not None for host in _without_price(scenario))
    owned = ', or cost.purchase = "owned"' if bought else ""
    return f"set cost.price{owned}"


def _without_price(scenario: Scenario) -> list[Host]:
    groups = scenario.cluster.groups
    return [group.host for group in groups if machine_price(scenario, group) is None]


def _but_prices(host: Host) -> str:
    kinds = tuple(dict.fromkeys(str(price.purchase) for price in host.prices))
    name = short_name(host.name)
    return f"{name} (only {' and '.join(kinds)} prices)" if kinds else name


def _per_thousand(samples_per_usd: float | None) -> str | None:
    return show(THOUSAND / samples_per_usd, USD) if samples_per_usd else None


def _known(
    prediction: Prediction,
) -> Iterator[tuple[Metric, float | int | str, float | None, float | None]]:
    """Yield metrics with a single value, the value, and its P10 and P90 or None."""
    for one in JOB_METRICS:
        value = one.get(prediction)
        if value is not None and not isinstance(value, Mapping):
            ends = prediction.interval.get(one.name, {})
            yield one, value, ends.get("p10"), ends.get("p90")


def metric_table(prediction: Prediction) -> Table:
    """Return every metric with a single value: name, SI value, unit, P10 and P90."""
    rows: list[tuple[Cell, ...]] = []
    for one, value, low, high in _known(prediction):
        unit = "" if one.unit is None else one.unit.symbol
        rows.append((one.name, str(value) if isinstance(value, str) else value, unit, low, high))
    return Table(head=("metric", "value", "unit", "p10", "p90"), rows=tuple(rows))


def store_rows(prediction: Prediction) -> Iterator[Row]:
    """Yield the cost of storage, its prices, and unknown charges; nothing without stores."""
    bill = prediction.storage
    if not bill.terms and not bill.missing:
        return
    parts = ", ".join(f"{name} {cost}" for name, cost in _parts(prediction))
    if bill.total is None:
        yield "storage", f"total unknown{f'; {parts}' if parts else ''}"
    else:
        yield (
            "storage",
            f"{numbers.known(prediction, 'cost.storage.usd')}{f': {parts}' if parts else ''}",
        )
    yield from (("prices of", text) for text in priced(prediction.scenario))
    yield from (("unknown", text) for text in bill.missing)
    yield from (("note", text) for text in bill.notes)
    if prediction.cost.for_machines is not None and bill.known:
        yield "machines", numbers.known(prediction, "cost.usd_for_machines")


def bill_in_all(prediction: Prediction, whole: str) -> str:
    """Return the whole bill as text; 'at least' where charges of stores are unknown."""
    return f"at least {whole}" if whole and prediction.storage.missing else whole


def _parts(prediction: Prediction) -> Iterator[Row]:
    for name in PARTS:
        cost = getattr(prediction.storage, name)
        if cost:
            yield name, numbers.known(prediction, f"cost.storage.{name}_usd")


def store_share(prediction: Prediction) -> str:
    """Return the share of storage in the bill, as the end of a sentence; empty if none."""
    bill = prediction.storage
    if bill.missing:
        return "; plus storage, whose price is partly unknown"
    if not bill.total:
        return ""
    leaving = (
        f" ({numbers.known(prediction, 'cost.storage.egress_usd')} egress)" if bill.egress else ""
    )
    return f"; {numbers.known(prediction, 'cost.storage.usd')} of it for storage{leaving}"
