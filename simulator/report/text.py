"""The terminal report: verdict first, then every figure of ``--json`` for reading."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import partial
from typing import Final

from simulator.footprint import HostRam, MemoryFit, Verdict
from simulator.metrics import JOULE, select, training_log
from simulator.provenance import Assumption
from simulator.report.figures import figure
from simulator.report.layout import (
    WIDTH,
    bar,
    columns,
    count,
    percent,
    printable,
    section,
    wrapped,
)
from simulator.report.verdict import device_word, verdict
from simulator.results import Prediction, StepSplit, Timing
from simulator.units import BYTE, PER_SECOND, SECOND, THOUSAND, USD, USD_PER_SECOND, show

_FITS: Final = {
    Verdict.YES: "fits",
    Verdict.NO: "does not fit",
    Verdict.UNCERTAIN: "uncertain: within 5% of the capacity",
}

NEGLIGIBLE: Final = 1e-5
"""Share of a step below which a part of it is not shown."""


def as_text(prediction: Prediction) -> str:
    """The report of one prediction, `WIDTH` columns wide, without colours or a final line end."""
    lines = [
        *_head(prediction),
        *wrapped(verdict(prediction), hang="", width=WIDTH),
        *section(_step_title(prediction), split_lines(prediction.timing)),
        *section("Run", run_lines(prediction)),
        *section("Resources, over steady-state steps", _resources(prediction.timing)),
        *section("vCPUs", _vcpus(prediction)),
        *_host_ram(prediction.host_ram),
        *_device_memory(prediction),
        *section("Cost", _cost(prediction)),
        *section("Rests on", assumption_lines(prediction.assumptions)),
        *section("Warnings", [line for text in prediction.warnings for line in wrapped(text)]),
    ]
    return "\n".join(lines)


def log_text(prediction: Prediction, every: int) -> str:
    """What a training loop that reports every `every` steps prints, as far as it was simulated."""
    rows = [
        (f"step {done:,}", show(time, SECOND), f"{count(rate)} samples/s")
        for done, time, rate in training_log(prediction, every)
    ]
    if len(prediction.timing.step_times) < prediction.total_steps:
        rows.append(("later", "", f"{count(prediction.timing.throughput)} samples/s"))
    return "\n".join(columns(rows, "<>>"))


def _head(prediction: Prediction) -> list[str]:
    scenario = prediction.scenario
    group, train = scenario.cluster.trainers, scenario.job.train
    title = f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name
    devices = f" with {group.gpus_per_host} x {group.host.gpu.name}" if group.host.gpu else ""
    batch = f"{count(train.batch_size)} samples"
    accumulated = f" x {train.accumulation} batches" if train.accumulation > 1 else ""
    machine = (
        f"{group.count} x {group.host.name}{devices}; reads from {group.storage.name}; "
        f"a step is {scenario.ranks} x {batch}{accumulated} in {train.precision}"
    )
    helpers = [
        f"{other.count} x {other.host.name} as group '{other.name}'; reads from "
        f"{other.storage.name}"
        for other in scenario.cluster.groups
        if other is not group
    ]
    texts = [title, machine, *helpers]
    return [*(line for text in texts for line in wrapped(text, width=WIDTH)), ""]


def _step_title(prediction: Prediction) -> str:
    timing, step = prediction.timing, prediction.timing.step_time
    spread = ", ".join(
        f"{name} {show(value, SECOND)}"
        for name, value in (("p50", step.p50), ("p95", step.p95), ("p99", step.p99))
    )
    known = band(prediction, "step_time_s.mean")
    if not known and timing.half_width > NEGLIGIBLE * step.mean:
        known = f" +- {show(timing.half_width, SECOND)}"
    return f"Step {show(step.mean, SECOND)}{known} (over steps: {spread})"


DIGITS: Final = 3
"""Significant digits of the ends of an interval."""


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


def split_lines(timing: Timing) -> list[str]:
    """The mean step as a waterfall of its exposed parts, with their sum."""
    whole = timing.step_time.mean or 1.0
    rows: list[tuple[str, str, str, str]] = []
    before = 0.0
    for name, length in _parts(timing.split):
        share = length / whole
        if share > NEGLIGIBLE:
            drawn = bar(share, before)
            rows.append((name.replace("_", " "), show(length, SECOND), percent(share), drawn))
        before += share
    rows.append(("= step", show(timing.step_time.mean, SECOND), percent(before), ""))
    hidden = timing.communication.hidden
    note = [f"{show(hidden, SECOND)} of communication hides under compute"] if hidden > 0.0 else []
    return columns(rows, "<>><") + note


def _parts(split: StepSplit) -> list[tuple[str, float]]:
    return [(field.name, getattr(split, field.name)) for field in fields(split)]


def run_lines(prediction: Prediction) -> list[str]:
    """Throughput, and the times of the whole run."""
    timing = prediction.timing
    bounds, known = prediction.bounds, partial(band, prediction)
    average = f"{show(bounds.lower, SECOND)} to {show(bounds.upper, SECOND)}"
    steps, total = f"{prediction.steps_per_epoch:,} steps", f"{prediction.total_steps:,} steps"
    rows = [
        ("throughput", f"{count(timing.throughput)} samples/s{known('throughput_samples_per_s')}"),
        ("first step", f"{show(timing.first_step, SECOND)} after the start{known('first_step_s')}"),
        ("epoch", f"{show(timing.epoch_time, SECOND)} ({steps}){known('epoch_time_s')}"),
        ("first epoch", f"{show(timing.first_epoch_time, SECOND)} (caches cold)"),
        ("total", f"{show(timing.total_time, SECOND)} ({total}){known('total_time_s')}"),
        ("bounds", f"{average} for total time / steps, in closed form"),
    ]
    rows += [(name, f"{show(time, SECOND)}, once") for name, time in prediction.one_off.items()]
    if prediction.break_even_epochs is not None:
        rows.append(("break-even", _break_even(prediction.break_even_epochs)))
    if prediction.cache_hit_ratio > 0.0:
        room = show(prediction.page_cache_bytes, BYTE)
        answered = percent(prediction.cache_hit_ratio)
        rows.append(("page cache", f"answers {answered} of the reads, with room for {room}"))
    return columns(rows, "<<")


def _break_even(epochs: float) -> str:
    if math.isinf(epochs):
        return "never: reading the data where it lies is as fast"
    return f"after {epochs:.3g} epochs copying the data first has paid for itself"


def _resources(timing: Timing) -> list[str]:
    marks = {timing.next_bottleneck: "next", timing.bottleneck: "bottleneck"}
    busiest_first = sorted(timing.usage.items(), key=lambda entry: -entry[1].mean)
    rows = [
        (
            str(resource),
            percent(usage.mean),
            f"{usage.total:.4g} of {usage.units}",
            f"{bar(usage.mean):40}",
            marks.get(resource, ""),
        )
        for resource, usage in busiest_first
    ]
    return columns(rows, "<>><<")


def _vcpus(prediction: Prediction) -> list[str]:
    need = prediction.cpu_need
    if need is None:
        return []
    group = prediction.scenario.cluster.trainers
    devices = max(1, group.gpus_per_host)
    word = device_word(prediction)
    there = group.host.cpu.threads / devices
    rows = [(f"per {word}", f"{need.per_gpu:.3g} needed, {there:.3g} there")]
    wanted = need.per_gpu * devices * group.count
    if need.short > 0.0:
        share = f" ({percent(need.short / wanted)})"
        rows.append(("short", f"{need.short:.3g} of {wanted:.4g}{share}"))
    else:
        rows.append(("short", "none"))
    return columns(rows, "<<")


def item_lines(fit: MemoryFit | HostRam, *sums: tuple[str, str]) -> list[str]:
    """What memory is needed for, item by item, and rows below them."""
    rows = [
        (printable(name).replace("_", " "), show(size, BYTE))
        for name, size in fit.items.items()
        if size > 0.0
    ]
    return columns([*rows, *sums], "<>")


def _fit_title(what: str, fit: MemoryFit | HostRam) -> str:
    total, capacity = show(fit.total, BYTE), show(fit.capacity, BYTE)
    return f"{what}: {total} needed of {capacity}, {_FITS[fit.verdict]}"


def _host_ram(ram: HostRam) -> list[str]:
    rule = f"rule of thumb: {show(ram.rule_of_thumb, BYTE)} (GPU memory + system + application)"
    return section(_fit_title("Host RAM of one machine", ram), [*item_lines(ram), rule])


def _device_memory(prediction: Prediction) -> list[str]:
    if prediction.memory is None:
        return []
    title = _fit_title(f"Memory of one {device_word(prediction)}", prediction.memory)
    return section(title, item_lines(prediction.memory, *stage_rows(prediction.memory)))


def stage_rows(fit: MemoryFit) -> list[tuple[str, str]]:
    """What each stage of a pipeline needs in all; the items are those of the fullest."""
    return [(f"in all, {name} stage", show(size, BYTE)) for name, size in fit.stages.items()]


def _cost(prediction: Prediction) -> list[str]:
    cost, known = prediction.cost, partial(band, prediction)
    priced = (
        ("rent", None if cost.per_second is None else show(cost.per_second, USD_PER_SECOND)),
        ("step", None if cost.per_step is None else show(cost.per_step, USD)),
        ("samples per $", None if cost.samples_per_usd is None else count(cost.samples_per_usd)),
        ("1,000 samples", _per_thousand(cost.samples_per_usd)),
        ("to train", None if cost.to_train is None else show(cost.to_train, USD)),
    )
    uncertain = {"to train": known("cost.usd_to_train")}
    rows = [
        (name, f"{value}{uncertain.get(name, '')}") for name, value in priced if value is not None
    ]
    if cost.per_second is None:
        rows.append(("price", f"no price for {_unpriced(prediction)}"))
    billed = cost.time_to_train + prediction.scenario.cost.provisioning
    rows.append(("billed time", show(billed, SECOND)))
    if cost.energy_per_step is not None:
        energy = f"{show(cost.energy_per_step, JOULE)} a step (crude: power x utilization)"
        rows.append(("energy", energy))
    return columns(rows, "<<")


def _unpriced(prediction: Prediction) -> str:
    groups = prediction.scenario.cluster.groups
    without = [g.host.name for g in groups if g.price is None and g.host.price is None]
    return ", ".join(without) or prediction.scenario.cluster.trainers.host.name


def _per_thousand(samples_per_usd: float | None) -> str | None:
    return show(THOUSAND / samples_per_usd, USD) if samples_per_usd else None


def assumption_lines(assumptions: tuple[Assumption, ...]) -> list[str]:
    """Each assumption with its value and source; unverified ones first and marked."""
    ordered = sorted(assumptions, key=lambda assumption: assumption.source.verified)
    lines = []
    for assumption in ordered:
        source = assumption.source
        mark = "" if source.verified else "UNVERIFIED "
        text = f"{mark}{assumption.what}: {assumption.value} [{source.reference}, {source.date}]"
        lines += wrapped(text, hang="    ")
    return lines
