"""Which workers and prefetch to set, for reading and as JSON."""

from __future__ import annotations

from typing import Any, Final

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.labels import batch_called, limit_called
from simulator.report.numbers import quantity, rate_known, share_known, significant
from simulator.report.prediction.rows import head
from simulator.report.prediction.verdict import device_word, next_part
from simulator.report.text import WIDTH, columns, count, section, wrapped
from simulator.results.binding import FULL, Part
from simulator.results.prediction import Prediction
from simulator.schema.workload.train import Mode
from simulator.studies.advise import Advice, Setting
from simulator.units import BYTE, SECOND, show

SCHEMA: Final = 1
DIGITS: Final = 3
"""Significant digits that tell settings apart: how they differ is known better than each is."""


def as_text(found: Advice) -> str:
    """The report: the answer first, then the settings around it."""
    base = found.base.prediction
    lines = [] if base is None else head(base)
    lines = [line for text in lines for line in wrapped(text, width=WIDTH)]
    lines += ["", *(line for text in _answer(found) for line in wrapped(text, "", WIDTH))]
    lines += section("Settings around it (for each process)", _table(found))
    return "\n".join(lines)


def _answer(found: Advice) -> list[str]:
    return [_now(found.base), _fastest(found) if _passes_on(found.base) else _chosen(found)]


def _passes_on(setting: Setting) -> bool:
    """Whether batches are made for nobody who could wait for them: data are prepared."""
    made = setting.prediction
    return made is not None and made.scenario.job.mode is Mode.PREPARE


def _fastest(found: Advice) -> str:
    best = found.best
    if best is None or best.prediction is None:
        return f"No setting with up to {found.top} workers fits into RAM, or can be predicted."
    verb = "Keep" if best == found.base else "Set"
    return (
        f"{verb} {_called(best)}: the fewest that are as fast as any up to {found.top} "
        f"({_rate(best)}). {_limit(best.prediction)}"
    )


def _rate(setting: Setting) -> str:
    made = setting.prediction
    return "not possible" if made is None else f"{rate_known(made)} samples/s"


def _now(base: Setting) -> str:
    own = "no workers" if base.workers == 0 else _called(base)
    does = _rate(base) if _passes_on(base) else _waits(base)
    return f"Now: {own}; {does} and one machine needs {show(base.ram, BYTE, DIGITS)} of RAM."


def _called(setting: Setting) -> str:
    return f"input.workers = {setting.workers}, input.prefetch = {setting.prefetch}"


def _waits(setting: Setting) -> str:
    return f"{_who(setting.prediction)} for data {share_known(setting.stall)} of the time"


def _who(prediction: Prediction | None) -> str:
    """Who waits: the accelerators, or the program that trains without any."""
    if prediction is None or prediction.scenario.cluster.trainers.gpus_per_host == 0:
        return "the program waits"
    return f"the {device_word(prediction)}s wait"


def _chosen(found: Advice) -> str:
    allowed = f"{100.0 * found.within:.3g}%"
    chosen, best = found.chosen, found.best
    if chosen is not None:
        verb = "Keep" if chosen == found.base else "Set"
        return (
            f"{verb} {_called(chosen)}: the fewest with which {_who(chosen.prediction)} no more "
            f"than {allowed} ({share_known(chosen.stall)}). {_difference(found.base, chosen)}"
        )
    if best is None or best.prediction is None:
        return f"No setting with up to {found.top} workers fits into RAM, or can be predicted."
    return (
        f"No number of workers is enough for {allowed}; up to {found.top} were tried. As good as "
        f"any is {_called(best)}: {_waits(best)}. {_limit(best.prediction)}"
    )


def _limit(prediction: Prediction) -> str:
    timing, need = prediction.timing, prediction.cpu_need
    device = device_word(prediction)
    limits = limit_called(timing.bottleneck, prediction.scenario)
    if need is not None and need.short > 0.0:
        there = count(prediction.scenario.cluster.vcpus_per_gpu or 0.0)
        return (
            f"What limits then is the {limits}: each {device} needs {significant(need.per_gpu, 2)} "
            f"vCPUs to stay busy, and there are {there} for each."
        )
    if timing.bottleneck in set(Part):
        part = Part(timing.bottleneck)
        return f"What limits then is {next_part(part, prediction)}."
    usage = timing.usage.get(timing.bottleneck)
    share = 0.0 if usage is None else max(usage.mean, usage.busiest)
    said = f"What limits then is the {limits} ({share_known(share)} busy)"
    return f"{said}." if share >= FULL else f"{said}, though not full: things wait for one another."


def _difference(base: Setting, chosen: Setting) -> str:
    if chosen == base:
        return "No fewer are enough."
    ram = chosen.ram - base.ram
    more = "more" if ram >= 0.0 else "less"
    faster = base.step / chosen.step
    made = chosen.prediction
    batch = "step" if made is None else batch_called(made.scenario)
    after, before = (quantity(step, SECOND, DIGITS) for step in (chosen.step, base.step))
    time = f"The {batch} takes {after}"
    said = f"{time} in place of {before} (x{significant(1.0 / faster, 2)}), with"
    if after == before:
        said = f"{time} as now, and the machine needs"
    return f"{said} {show(abs(ram), BYTE, 3)} {more} RAM."


def _table(found: Advice) -> list[str]:
    rows: list[tuple[str, ...]] = [_head(found)]
    rows += [_row(found, setting) for setting in found.table]
    notes = [s.reason for s in found.table if s.reason]
    below = [line for text in dict.fromkeys(notes) for line in wrapped(f"not possible: {text}")]
    return [*columns(rows, ">>>>>>><"), *below] if found.table else below


def _head(found: Advice) -> tuple[str, ...]:
    made = found.base.prediction
    batch = "step" if made is None else batch_called(made.scenario)
    return ("workers", "prefetch", batch, "samples/s", "waits", "RAM needed", "fits", "")


def _row(found: Advice, setting: Setting) -> tuple[str, ...]:
    own = (str(setting.workers), str(setting.prefetch))
    if setting.prediction is None:
        return (*own, "-", "-", "-", "-", "-", "not possible")
    return (
        *own,
        quantity(setting.step, SECOND, DIGITS),
        significant(setting.prediction.timing.throughput, DIGITS),
        "-" if _passes_on(setting) else share_known(setting.stall),
        show(setting.ram, BYTE, DIGITS),
        setting.prediction.host_ram.verdict,
        _mark(found, setting),
    )


def _mark(found: Advice, setting: Setting) -> str:
    return {
        (found.base.workers, found.base.prefetch): "now",
        **({(found.chosen.workers, found.chosen.prefetch): "chosen"} if found.chosen else {}),
    }.get((setting.workers, setting.prefetch), "")


def as_table(found: Advice) -> Table:
    """A row for each setting, in SI units; waiting as a share of the time."""
    head = (
        *("input.workers", "input.prefetch", "step_time_s.mean", "throughput_samples_per_s"),
        *("data_stall_share", "host_ram_bytes.total", "fits.host", "mark", "reason"),
    )
    return Table(head=head, rows=tuple(_cells(found, setting) for setting in found.table))


def _cells(found: Advice, setting: Setting) -> tuple[Cell, ...]:
    own, after, mark = (
        (setting.workers, setting.prefetch),
        setting.prediction,
        _mark(found, setting),
    )
    if after is None:
        return (*own, None, None, None, None, None, mark, setting.reason)
    rates = (after.timing.step_time.mean, after.timing.throughput, setting.stall, setting.ram)
    return (*own, *rates, str(after.host_ram.verdict), mark, "")


def as_page(found: Advice) -> str:
    """The settings as Markdown, as the report shows them."""
    rows = tuple(_row(found, setting) for setting in found.table)
    return as_markdown(Table(head=_head(found), rows=rows))


def as_object(found: Advice) -> dict[str, Any]:
    """The same as plain dictionaries, in SI units; shares as fractions."""
    base = found.base.prediction
    return {
        "schema": SCHEMA,
        "scenario": None if base is None else base.scenario.name,
        "within": found.within,
        "most_workers_tried": found.top,
        "enough": found.chosen is not None,
        "now": _object(found.base),
        "chosen": None if found.chosen is None else _object(found.chosen),
        "best": None if found.best is None else _object(found.best),
        "settings": [_object(setting) for setting in found.table],
    }


def _object(setting: Setting) -> dict[str, Any]:
    after = setting.prediction
    known = {"input.workers": setting.workers, "input.prefetch": setting.prefetch}
    if after is None:
        return {**known, "possible": False, "reason": setting.reason}
    return {
        **known,
        "possible": True,
        "step_time_s.mean": after.timing.step_time.mean,
        "throughput_samples_per_s": after.timing.throughput,
        "data_stall_share": setting.stall,
        "host_ram_bytes.total": setting.ram,
        "fits.host": after.host_ram.verdict,
        "bottleneck": after.timing.bottleneck,
    }
