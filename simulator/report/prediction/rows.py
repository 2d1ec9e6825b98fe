"""Rows on a job shared by terminal reports and pages: settings, run, tokens and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
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
from simulator.report.numbers import bracketed, interval, significant
from simulator.report.text import count, percent
from simulator.results.cost import PARTS, is_block, machine_price, paid_time, priced
from simulator.results.energy import missing as missing_of_owned
from simulator.results.metrics import JOB_METRICS, number_at, select
from simulator.results.prediction import Prediction, StepSplit, Timing
from simulator.schema.data_loading import CachePolicy, Layout, LoaderKind, Placement, Preparation
from simulator.schema.machines import Group, Host, short_name
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Recompute, Sharding
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
    """Describe the communication that overlaps with compute; empty if negligible."""
    hidden = timing.hidden_communication
    if hidden <= NEGLIGIBLE * timing.step_time.mean:
        return ""
    return f"{show(hidden, SECOND, DIGITS)} of communication overlaps with compute"


def band(prediction: Prediction, name: str) -> str:
    """Return the 80% interval of a metric in parentheses; empty if it has none."""
    ends = prediction.interval.get(name)
    if ends is None:
        return ""
    unit = select(name)[0].unit
    return bracketed(
        interval(ends["p10"], ends["p90"], None if unit is PER_SECOND else unit, DIGITS)
    )


def parts(split: StepSplit) -> list[tuple[str, float]]:
    """Return name and time of the exposed parts of a step [s]."""
    return [(field.name, getattr(split, field.name)) for field in fields(split)]


def run_rows(prediction: Prediction, *, full: bool = True) -> list[Row]:
    """Return rows on throughput and times of the run; with `full` to all digits and with bounds."""
    timing, bounds = prediction.timing, prediction.bounds
    batch, many = batch_called(prediction.scenario), batches_called(prediction.scenario)

    def shown(name: str, more: str) -> str:
        return (
            f"{_value(prediction, name, full=full)}{more}{band(prediction, name) if full else ''}"
        )

    def counted(steps: int) -> str:
        return f" ({steps:,} {many})" if full else f", {steps:,} {many}"

    rows = [
        ("throughput", shown("throughput_samples_per_s", "")),
        (f"first {batch}", shown("first_step_s", " after the start")),
        ("epoch", shown("epoch_time_s", counted(prediction.steps_per_epoch))),
    ]
    if full:
        rows.append(("first epoch", f"{show(timing.first_epoch_time, SECOND)} (caches cold)"))
    rows.append(("total", shown("total_time_s", counted(prediction.total_steps))))
    if full:
        average = f"{show(bounds.lower, SECOND)} to {show(bounds.upper, SECOND)}"
        rows.append(("bounds", f"{average} per {batch}, total time / {many}, in closed form"))
    rows += [(name, f"{show(time, SECOND)}, once") for name, time in prediction.one_off.items()]
    if prediction.break_even_epochs is not None:
        rows.append(("break-even", _break_even(prediction.break_even_epochs)))
    if prediction.cache_hit_ratio > 0.0:
        room = show(prediction.page_cache_bytes, BYTE)
        answered = percent(prediction.cache_hit_ratio)
        rows.append(("page cache", f"{answered} hit ratio, {room} of room"))
    return rows


def _value(prediction: Prediction, name: str, *, full: bool) -> str:
    """Format a metric: with `full` to all digits, else with its interval and matching digits."""
    if not full:
        return numbers.known(prediction, name)
    return numbers.figure(number_at(prediction, name), select(name)[0].unit)


def token_rows(prediction: Prediction) -> list[Row]:
    """Return rows on the metrics of a language model; empty for other jobs."""
    each = device_called(prediction.scenario)
    if number_at(prediction, "tokens_per_s") is None:
        return []

    def share(name: str) -> str:
        value = number_at(prediction, name)
        return "" if value is None else f"{100.0 * value:.{numbers.digits_of(prediction, name)}g}%"

    rows = [
        ("tokens per step", count(number_at(prediction, "tokens_per_step") or 0.0)),
        ("tokens/s", numbers.known(prediction, "tokens_per_s")),
        (f"tokens/s per {each}", numbers.known(prediction, "tokens_per_s_per_gpu")),
        (f"FLOP/s per {each}", numbers.known(prediction, "flops_per_s_per_gpu")),
        ("MFU", share("mfu")),
        ("HFU", share("hfu")),
        ("1T tokens take", numbers.known(prediction, "time_per_trillion_tokens_s")),
    ]
    return [(name, text) for name, text in rows if text]


def _break_even(epochs: float) -> str:
    if math.isinf(epochs):
        return "never: copying the data first saves no time"
    return f"copying the data first pays off after {epochs:.3g} epochs"


def cost_rows(prediction: Prediction, *, full: bool = True) -> list[Row]:
    """Return rows on the cost of machines and run; with `full` also per step, to all digits."""
    cost, scenario = prediction.cost, prediction.scenario
    batch, bill = batch_called(scenario), prediction.in_all
    rows: list[Row] = []
    if cost.per_second is not None:
        rows.append((price_called(scenario), show(cost.per_second, USD_PER_SECOND)))
    if full and cost.per_step is not None:
        rows.append((batch, show(cost.per_step, USD)))
    if cost.samples_per_usd is not None:
        name = "cost.samples_per_usd"
        each = count(cost.samples_per_usd) if full else numbers.known(prediction, name)
        rows.append(("samples per $", each))
    if full and cost.samples_per_usd:
        rows.append(("1,000 samples", show(THOUSAND / cost.samples_per_usd, USD)))
    if bill is not None:
        whole = bill_in_all(prediction, _value(prediction, "cost.usd_to_train", full=full))
        between = band(prediction, "cost.usd_to_train") if full else ""
        rows.append((bill_called(scenario), f"{whole}{between}"))
    if cost.per_second is None:
        unknown = [("unknown", figure) for figure in missing_of_owned(scenario)]
        rows += unknown or [("price", unpriced(scenario))]
    billed = float(paid_time(scenario, cost.time_to_train))
    whole_days = ", whole days of a capacity block" if is_block(scenario) else ""
    rows.append(("billed time", f"{show(billed, SECOND, DIGITS)}{whole_days}"))
    if cost.energy_per_step is not None:
        each = show(cost.energy_per_step, JOULE, DIGITS)
        rows.append(
            ("energy", f"{each} per {batch} (rough: idle and active power of all machines)")
        )
    return [*rows, *_electricity_rows(prediction), *store_rows(prediction)]


def _electricity_rows(prediction: Prediction) -> list[Row]:
    """Return rows on energy, electricity and emissions of the run; empty without ``[energy]``."""
    plan, energy = prediction.scenario.energy, prediction.energy
    if plan is None:
        return []
    rows = [("unknown", figure) for figure in energy.missing]
    if energy.of_machines is not None and energy.of_building is not None:
        whole = numbers.known(prediction, "energy.kwh")
        machines = numbers.known(prediction, "energy.machines_kwh")
        text = f"{whole}, {machines} at the machines, PUE {plan.pue:g}"
        rows.append(("energy of the run", text))
    if energy.price is not None and plan.price is not None:
        paid, rate = numbers.known(prediction, "energy.usd"), show(plan.price, USD_PER_JOULE)
        rows.append(("electricity", f"{paid} at {rate}, {plan.figures['tariff'].date}"))
    if energy.emitted is not None and plan.emissions is not None:
        emitted = numbers.known(prediction, "energy.kg_co2e")
        rate = show(plan.emissions, KILOGRAM_PER_JOULE)
        rows.append(("emissions", f"{emitted} CO2e at {rate}, {plan.figures['grid'].date}"))
    return rows


def unpriced(scenario: Scenario) -> str:
    """Describe the machines without a price for this purchase, and the prices that they have."""
    named = list[str]()
    for host in _without_price(scenario):
        kinds = tuple(dict.fromkeys(str(price.purchase) for price in host.prices))
        only = f" (only {' and '.join(kinds)} prices)" if kinds else ""
        named.append(f"{short_name(host.name)}{only}")
    return f"no price for {', '.join(dict.fromkeys(named))}"


def ways_to_price(scenario: Scenario) -> str:
    """Describe the keys to set so that the cost is known."""
    bought = all(host.capex is not None for host in _without_price(scenario))
    owned = ', or cost.purchase = "owned"' if bought else ""
    return f"set cost.price{owned}"


def _without_price(scenario: Scenario) -> list[Host]:
    groups = scenario.cluster.groups
    return [group.host for group in groups if machine_price(scenario, group) is None]


def metric_table(prediction: Prediction) -> Table:
    """Return every metric with a single value: name, value in SI units, unit, P10 and P90."""
    rows: list[tuple[Cell, ...]] = []
    for metric in JOB_METRICS:
        value = metric.get(prediction)
        if value is not None and not isinstance(value, Mapping):
            unit = "" if metric.unit is None else metric.unit.symbol
            ends = prediction.interval.get(metric.name, {})
            shown = str(value) if isinstance(value, str) else value
            rows.append((metric.name, shown, unit, ends.get("p10"), ends.get("p90")))
    return Table(head=("metric", "value", "unit", "p10", "p90"), rows=tuple(rows))


def store_rows(prediction: Prediction) -> Iterator[Row]:
    """Yield rows on the cost of storage, its prices, and unknown charges; none without stores."""
    bill = prediction.storage
    if not bill.terms and not bill.missing:
        return
    parts = ", ".join(
        f"{name} {numbers.known(prediction, f'cost.storage.{name}_usd')}"
        for name in PARTS
        if getattr(bill, name)
    )
    if bill.total is None:
        yield "storage", f"total unknown{f'; {parts}' if parts else ''}"
    else:
        total = numbers.known(prediction, "cost.storage.usd")
        yield "storage", f"{total}{f': {parts}' if parts else ''}"
    yield from (("prices of", text) for text in priced(prediction.scenario))
    yield from (("unknown", text) for text in bill.missing)
    yield from (("note", text) for text in bill.notes)
    if prediction.cost.for_machines is not None and bill.known:
        yield "machines", numbers.known(prediction, "cost.usd_for_machines")


def bill_in_all(prediction: Prediction, whole: str) -> str:
    """Return the text of the total cost; with 'at least' if charges of stores are unknown."""
    return f"at least {whole}" if whole and prediction.storage.missing else whole


def store_share(prediction: Prediction) -> str:
    """Describe the cost of storage as the end of a sentence; empty if it is zero."""
    bill = prediction.storage
    if bill.missing:
        return "; plus storage, whose price is partly unknown"
    if not bill.total:
        return ""
    leaving = (
        f" ({numbers.known(prediction, 'cost.storage.egress_usd')} egress)" if bill.egress else ""
    )
    return f"; {numbers.known(prediction, 'cost.storage.usd')} of it for storage{leaving}"


_DEGREES: Final = ("tensor", "pipeline", "context", "expert")
_PLACED: Final = {
    Placement.STAGE: ", copied to local drives first",
    Placement.PRELOAD: ", loaded into RAM first",
}
_THREADS: Final = {LoaderKind.TF_DATA: "threads", LoaderKind.DALI: "threads"}


def setting_rows(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the settings of a job as rows of label and text."""
    trainers = scenario.cluster.trainers
    others = [group for group in scenario.cluster.groups if group is not trainers]
    return [
        ("Machine", _machine(trainers)),
        *((f"+ {group.name}"[:10], _machine(group)) for group in others),
        ("Data", _data(scenario)),
        ("Input", _loader(scenario)),
        (_MODES[scenario.job.mode], _model(scenario)),
    ]


_MODES: Final = {
    Mode.TRAIN: "Model",
    Mode.INFER: "Model",
    Mode.ROLLOUT: "Model",
    Mode.PREPARE: "Work",
}


def _machine(group: Group) -> str:
    each = " each" if group.count > 1 else ""
    return f"{group.count} x {machine_called(group.host, group.gpus_per_host)}{each}"


def machine_called(host: Host, devices: int) -> str:
    """Describe a machine with `devices` GPUs, such as ``m7i.16xlarge: 64 vCPUs, 275 GB RAM``."""
    parts = []
    if host.gpu is not None and devices:
        parts.append(f"{devices} x {short_name(host.gpu.name).upper()}")
    parts += [f"{significant(host.cpu.threads, 4)} vCPUs", f"{show(host.ram, BYTE, 3)} RAM"]
    return f"{short_name(host.name)}: {', '.join(parts)}"


def _data(scenario: Scenario) -> str:
    data, group = scenario.job.dataset, scenario.cluster.trainers
    size = show(scenario.job.stored_bytes, BYTE, 3)
    store = short_name((group.origin or group.storage).name)
    said = f"{data.samples:,.0f} samples of {size}"
    if data.cache is CachePolicy.PRELOADED:
        return f"{said}, held in RAM"
    order = f", {data.access.value} access" if data.layout is not Layout.TOKENS else ""
    said += f", stored as {data.layout.value} on {store}{order}"
    return said + _PLACED.get(data.placement, "")


def _loader(scenario: Scenario) -> str:
    job = scenario.job
    pipeline, remote = job.input, job.remote
    each, processes = pipeline.workers, scenario.ranks_per_host
    word = (
        "actors"
        if pipeline.loader is LoaderKind.ACTORS
        else _THREADS.get(pipeline.loader, "workers")
    )
    word = word.removesuffix("s") if each == 1 else word
    if pipeline.loader is LoaderKind.ACTORS:
        said = f"{each} {word}"
    elif each == 0:
        said = "no workers: the main process loads batches"
    elif processes > 1:
        said = f"{each} {word} per process, {each * processes} per machine"
    else:
        said = f"{each} {word}"
    if remote is not None:
        own = "" if each == 0 else f"{said}, and "
        said = f"{own}{remote.workers} on each machine of '{remote.name}'"
    if each:
        said += f", prefetch {pipeline.prefetch}"
    if pipeline.per_sample > 0.0:
        said += f"; {show(pipeline.per_sample, SECOND, 3)} of CPU time per sample"
    where = {
        Preparation.DEVICE: f", plus work on the {device_called(scenario)}",
        Preparation.BEFOREHAND: ", once before training",
    }
    return said + where.get(pipeline.where, "")


def _model(scenario: Scenario) -> str:
    job, train = scenario.job, scenario.job.train
    if job.mode is Mode.PREPARE:
        return f"prepares samples in batches of {train.batch_size:,.0f} and writes them"
    name = "measured step times" if job.model is None else job.model.name
    device = device_called(scenario) if scenario.cluster.trainers.gpus_per_host else "process"
    spread = job.parallelism.devices > 1
    if scenario.ranks > 1 or train.accumulation > 1:
        unit = "replica" if spread else device
        micro = f" x {train.accumulation}" if train.accumulation > 1 else ""
        whole = train.batch_size * train.accumulation * scenario.ranks
        batch = f"batch {train.batch_size:,.0f}{micro} per {unit}, {whole:,.0f} in all"
    else:
        batch = f"batch {train.batch_size:,.0f}"
    copies = f", {job.copies} such jobs in parallel" if job.copies > 1 else ""
    return f"{name} in {train.precision}, {batch}{_spread(scenario)}{copies}"


def _spread(scenario: Scenario) -> str:
    degrees, train = scenario.job.parallelism, scenario.job.train
    ways = [f"{name} {n}" for name in _DEGREES if (n := getattr(degrees, name)) > 1]
    said = f"; {' x '.join(ways)}" if ways else ""
    if degrees.sharding is not Sharding.NONE:
        said += f"; {degrees.sharding.value} sharded"
    if train.recompute is not Recompute.NONE:
        said += f"; {train.recompute.value} recomputation"
    if train.head_only:
        said += "; only the head is trained"
    if train.adapters is not None:
        stored = train.frozen_precision
        said += f"; LoRA rank {train.adapters.rank:,.0f}"
        said += "" if stored is None else f" on weights in {stored}"
    return said
