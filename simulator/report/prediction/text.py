"""The terminal report: verdict first, then every figure of ``--json`` for reading."""

from __future__ import annotations

from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.report import goodput
from simulator.report.labels import batch_called, batches_called
from simulator.report.numbers import chance
from simulator.report.prediction.rows import (
    NEGLIGIBLE,
    band,
    cost_rows,
    head,
    hidden_exchange,
    parts,
    run_rows,
)
from simulator.report.prediction.verdict import device_word, marks, verdict
from simulator.report.text import (
    WIDTH,
    bar,
    columns,
    count,
    percent,
    printable,
    section,
    wrapped,
)
from simulator.results.binding import PARTS
from simulator.results.metrics import training_log
from simulator.results.prediction import Prediction, Timing
from simulator.uncertainty.provenance import Assumption
from simulator.units import BYTE, SECOND, show

_FITS: Final = {
    Verdict.YES: "fits",
    Verdict.NO: "does not fit",
    Verdict.UNCERTAIN: "uncertain: within 5% of the capacity",
}


def as_text(prediction: Prediction) -> str:
    """The report of one prediction, `WIDTH` columns wide, without colours or a final line end."""
    batches = batches_called(prediction.scenario)
    lines = [
        *(line for text in head(prediction) for line in wrapped(text, width=WIDTH)),
        "",
        *wrapped(verdict(prediction), hang="", width=WIDTH),
        *section(
            _step_title(prediction),
            split_lines(prediction.timing, batch_called(prediction.scenario)),
        ),
        *section("Run", columns(run_rows(prediction), "<<")),
        *section(f"Resources, over steady-state {batches}", _resources(prediction)),
        *section("vCPUs", _vcpus(prediction)),
        *_host_ram(prediction.host_ram),
        *_device_memory(prediction),
        *section("Cost", columns(cost_rows(prediction), "<<")),
        *_outlook_lines(prediction),
        *section("Rests on", assumption_lines(prediction.assumptions)),
        *section("Warnings", [line for text in prediction.warnings for line in wrapped(text)]),
    ]
    return "\n".join(lines)


def _outlook_lines(prediction: Prediction) -> list[str]:
    """The run with its interruptions, as `plan goodput` has it."""
    found = prediction.outlook
    if found is None:
        return []
    notes = [line for note in goodput.notes(found) for line in wrapped(note)]
    lines = [line for name, text in goodput.rows(found) for line in wrapped(f"{name}: {text}")]
    return section("Long run, with interruptions", [*lines, *notes])


def log_text(prediction: Prediction, every: int) -> str:
    """What a training loop that reports every `every` steps prints, as far as it was simulated."""
    rows = [
        (f"step {done:,}", show(time, SECOND), f"{count(rate)} samples/s")
        for done, time, rate in training_log(prediction, every)
    ]
    if len(prediction.timing.step_times) < prediction.total_steps:
        rows.append(("later", "", f"{count(prediction.timing.throughput)} samples/s"))
    return "\n".join(columns(rows, "<>>"))


def _step_title(prediction: Prediction) -> str:
    timing, step = prediction.timing, prediction.timing.step_time
    spread = ", ".join(
        f"{name} {show(value, SECOND)}"
        for name, value in (("p50", step.p50), ("p95", step.p95), ("p99", step.p99))
    )
    known = band(prediction, "step_time_s.mean")
    if not known and timing.half_width > NEGLIGIBLE * step.mean:
        known = f" +- {show(timing.half_width, SECOND)}"
    bursts = "they come in bursts; " if step.p50 <= NEGLIGIBLE * step.mean else ""
    called, many = batch_called(prediction.scenario), batches_called(prediction.scenario)
    title = f"{called.capitalize()} {show(step.mean, SECOND)}{known}"
    return f"{title} ({bursts}over {many}: {spread})"


def split_lines(timing: Timing, called: str = "step") -> list[str]:
    """The mean step as a waterfall of its exposed parts, with their sum; `called` so."""
    whole = timing.step_time.mean or 1.0
    marked = _marks(timing)
    rows: list[tuple[str, ...]] = []
    before = 0.0
    for name, length in parts(timing.split):
        share = length / whole
        if share > NEGLIGIBLE:
            drawn = f"{bar(share, before):40}"
            mark = marked.get(PARTS[name], "") if name in PARTS else ""
            part = _part_called(name, timing, called)
            rows.append((part, show(length, SECOND), percent(share), drawn, mark))
        before += share
    rows.append((f"= {called}", show(timing.step_time.mean, SECOND), percent(before), "", ""))
    note = hidden_exchange(timing)
    return columns(rows, "<>><<") + ([note] if note else [])


def _part_called(name: str, timing: Timing, called: str) -> str:
    """A part of a step in words; what is no step stalls nobody."""
    if name != "data_stall" or called == "step":
        return name.replace("_", " ")
    return "making it" if timing.accelerator_utilization is None else "waiting for data"


def _marks(timing: Timing) -> dict[str | None, str]:
    """What binds, and what would bind next, in words."""
    return {timing.next_bottleneck: "next", timing.bottleneck: "bottleneck"}


def _resources(prediction: Prediction) -> list[str]:
    timing = prediction.timing
    marked = marks(prediction)
    busiest_first = sorted(timing.usage.items(), key=lambda entry: -entry[1].mean)
    rows = [
        (
            str(resource),
            percent(usage.mean),
            f"{usage.total:.4g} of {usage.units}",
            f"{bar(usage.mean):40}",
            marked.get(resource, ""),
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
    there = prediction.scenario.cluster.vcpus_per_gpu or 0.0
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
    if isinstance(fit, MemoryFit) and fit.probability is not None:
        low, high = (show(end, BYTE, 3) for end in fit.band)
        known = f"80%: {low} to {high}, fits with {chance(fit.probability)}"
        return f"{what}: {total} needed of {capacity} ({known})"
    if fit.known_verdict is None:
        return f"{what}: {total} needed of {capacity}, and what activations take (not stated)"
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
