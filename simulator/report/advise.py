"""The report of ``plan advise input``: recommended workers and prefetch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from simulator.report.document import Actions, Document, Table, grid, notes, section
from simulator.report.labels import batch_called, limit_called
from simulator.report.numbers import quantity, rate_known, share_known, significant
from simulator.report.prediction.rows import setting_rows
from simulator.report.prediction.verdict import (
    device_word,
    launch_known,
    launch_time,
    next_part,
)
from simulator.report.text import count
from simulator.results.binding import FULL, Part
from simulator.results.prediction import Prediction
from simulator.schema.training import Mode
from simulator.studies.advise import Advice, Setting
from simulator.units import BYTE, SECOND, show

SCHEMA: Final = 1
DIGITS: Final = 3
"""Significant digits of settings, more than their accuracy, to show their differences."""


def document(found: Advice, next_steps: Sequence[str] = ()) -> Document:
    """Return the advice as a document: the recommendation, nearby settings, other changes.

    `next_steps` are the texts of other changes, best first.
    """
    base = found.base.prediction
    scenario = None if base is None else base.scenario
    title = "" if scenario is None else f"{scenario.name}: {scenario.title}"
    batch = "step" if scenario is None else batch_called(scenario)
    impossible = dict.fromkeys(s.reason for s in found.table if s.reason)
    return Document(
        title=title.removesuffix(": "),
        question=() if scenario is None else tuple(setting_rows(scenario)),
        verdict=tuple(_answer(found)),
        sections=(
            *section(
                "Nearby settings (per GPU process)",
                grid(
                    (
                        "workers",
                        "prefetch",
                        batch,
                        "samples/s",
                        "waiting",
                        "RAM needed",
                        "fits",
                        "",
                    ),
                    [_row(found, s) for s in found.table],
                    ">>>>>>><",
                ),
                notes(f"not possible: {reason}" for reason in impossible),
            ),
            *section("Do next", Actions(texts=tuple(next_steps))),
        ),
        data=lambda: _object(found),
        table=lambda: _table(found),
    )


def _answer(found: Advice) -> Iterator[str]:
    yield _now(found.base)
    yield _fastest(found) if _only_prepares(found.base) else _chosen(found)


def _only_prepares(setting: Setting) -> bool:
    """Return True if the job prepares data, so that no device waits for batches."""
    after = setting.prediction
    return after is not None and after.scenario.job.mode is Mode.PREPARE


def _none_fits(found: Advice) -> str:
    return f"No setting with up to {found.top} workers fits into RAM or can be predicted."


def _fastest(found: Advice) -> str:
    best = found.best
    if best is None or best.prediction is None:
        return _none_fits(found)
    verb = "Keep" if best == found.base else "Set"
    return (
        f"{verb} {_called(best)}: the smallest number that is as fast as any up to {found.top} "
        f"({_rate(best)}). {_limit(best.prediction)}"
    )


def _rate(setting: Setting) -> str:
    after = setting.prediction
    return "not possible" if after is None else f"{rate_known(after)} samples/s"


def _now(base: Setting) -> str:
    own = "no workers" if base.workers == 0 else _called(base)
    does = _rate(base) if _only_prepares(base) else _waits(base)
    said = f"Now: {own}; {does}; {show(base.ram, BYTE, DIGITS)} of RAM needed per machine."
    return f"{said}{_inline(base)}"


def _inline(base: Setting) -> str:
    """Describe the thread that loads batches and launches kernels without workers; else empty."""
    prediction = base.prediction
    if prediction is None or launch_time(prediction) == 0.0:
        return ""
    train = prediction.scenario.job.train
    if train.sync_every_step and train.accumulation == 1:
        return ""
    return f" One thread loads batches and launches kernels ({launch_known(prediction)}) in turn."


def _called(setting: Setting) -> str:
    return f"input.workers = {setting.workers}, input.prefetch = {setting.prefetch}"


def _waits(setting: Setting) -> str:
    return f"{_who(setting.prediction)} {share_known(setting.stall)} of the time for data"


def _who(prediction: Prediction | None) -> str:
    if prediction is None or prediction.scenario.cluster.trainers.gpus_per_host == 0:
        return "the program waits"
    return f"the {device_word(prediction)}s wait"


def _chosen(found: Advice) -> str:
    allowed = f"{100.0 * found.within:.3g}%"
    chosen, best = found.chosen, found.best
    if chosen is not None:
        verb = "Keep" if chosen == found.base else "Set"
        return (
            f"{verb} {_called(chosen)}: the smallest number with under {allowed} waiting "
            f"({share_known(chosen.stall)}). {_difference(found.base, chosen)}"
        )
    if best is None or best.prediction is None:
        return _none_fits(found)
    return (
        f"More workers do not help: with up to {found.top} per process, {_who(best.prediction)} "
        f"more than {allowed} of the time for data. {_called(best)} is as good as more: "
        f"{_waits(best)}. {_limit(best.prediction)}"
    )


def _limit(prediction: Prediction) -> str:
    timing, need = prediction.timing, prediction.cpu_need
    device = device_word(prediction)
    limits = limit_called(timing.bottleneck, prediction.scenario)
    if need is not None and need.short > 0.0:
        there = count(prediction.scenario.cluster.vcpus_per_gpu or 0.0)
        return (
            f"The limit is then {limits}: each {device} needs {significant(need.per_gpu, 2)} "
            f"vCPUs to stay busy and has {there}."
        )
    if timing.bottleneck in set(Part):
        return f"The limit is then {next_part(Part(timing.bottleneck), prediction)}."
    usage = timing.usage.get(timing.bottleneck)
    share = 0.0 if usage is None else max(usage.mean, usage.busiest)
    said = f"The limit is then {limits} ({share_known(share)} busy)"
    return f"{said}." if share >= FULL else f"{said}, though not full: work is serialized."


def _difference(base: Setting, chosen: Setting) -> str:
    if chosen == base:
        return "Fewer are not enough."
    ram = chosen.ram - base.ram
    more = f"{show(abs(ram), BYTE, 3)} {'more' if ram >= 0.0 else 'less'} RAM"
    batch = "step" if chosen.prediction is None else batch_called(chosen.prediction.scenario)
    after, before = (quantity(step, SECOND, DIGITS) for step in (chosen.step, base.step))
    if after == before:
        return f"Same {batch} time ({after}), {more}."
    ratio = significant(chosen.step / base.step, 2)
    return f"{batch.capitalize()} time {after} instead of {before} (x{ratio}), {more}."


def _row(found: Advice, setting: Setting) -> tuple[str, ...]:
    own = (str(setting.workers), str(setting.prefetch))
    if setting.prediction is None:
        return (*own, "-", "-", "-", "-", "-", "not possible")
    return (
        *own,
        quantity(setting.step, SECOND, DIGITS),
        significant(setting.prediction.timing.throughput, DIGITS),
        "-" if _only_prepares(setting) else share_known(setting.stall),
        show(setting.ram, BYTE, DIGITS),
        setting.prediction.host_ram.verdict,
        _mark(found, setting),
    )


def _mark(found: Advice, setting: Setting) -> str:
    return {
        (found.base.workers, found.base.prefetch): "now",
        **({(found.chosen.workers, found.chosen.prefetch): "chosen"} if found.chosen else {}),
    }.get((setting.workers, setting.prefetch), "")


def _table(found: Advice) -> Table:
    """Return a row for each setting, in SI units; data stalls as a share of the time."""
    head = (
        *("input.workers", "input.prefetch", "step_time_s.mean", "throughput_samples_per_s"),
        *("data_stall_share", "host_ram_bytes.total", "fits.host", "mark", "reason"),
    )
    every = (
        {"reason": "", **_setting_object(setting), "mark": _mark(found, setting)}
        for setting in found.table
    )
    return Table(head=head, rows=tuple(tuple(map(each.get, head)) for each in every))


def _object(found: Advice) -> dict[str, Any]:
    base = found.base.prediction
    return {
        "schema": SCHEMA,
        "scenario": None if base is None else base.scenario.name,
        "within": found.within,
        "most_workers_tried": found.top,
        "enough": found.chosen is not None,
        "now": _setting_object(found.base),
        "chosen": None if found.chosen is None else _setting_object(found.chosen),
        "best": None if found.best is None else _setting_object(found.best),
        "settings": [_setting_object(setting) for setting in found.table],
    }


def _setting_object(setting: Setting) -> dict[str, Any]:
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
        "fits.host": str(after.host_ram.verdict),
        "bottleneck": after.timing.bottleneck,
    }
