"""The answer on one screen: what was asked, what limits it, time, memory, cost, what to do next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.report import goodput
from simulator.report.labels import (
    batch_called,
    dated,
    one,
    parts_called,
    resource_called,
    uncertain,
)
from simulator.report.numbers import GUESSES, chance, digits_of, known, quantity, significant
from simulator.report.prediction.rows import parts, unpriced, ways_to_price
from simulator.report.prediction.setting import setting_rows
from simulator.report.prediction.verdict import device_word, verdict
from simulator.report.stores import in_all, in_short
from simulator.report.text import (
    BAR,
    INDENT,
    WIDTH,
    bar,
    labelled,
    printable,
    section,
    wrapped,
)
from simulator.results.cost import listed_price
from simulator.results.metrics import number_at
from simulator.results.ownership import missing
from simulator.results.prediction import Prediction
from simulator.schema.workload.train import Mode
from simulator.studies.sensitivity import DominantUncertainty, dominant_uncertainties
from simulator.units import (
    BYTE,
    FLOP_PER_SECOND,
    KILOGRAM,
    SECOND,
    USD,
    USD_PER_JOULE,
    USD_PER_SECOND,
    show,
)

LABEL: Final = 10
"""Columns of the names at the left."""
ASSUMPTIONS: Final = 3
"""How many of what the answer hangs on are named."""
LEAST: Final = 0.01
"""Share of a whole below which a part of it is not shown."""
LONGEST_TAIL: Final = 1.1
"""95th percentile over the median of a step from which on it is worth a word."""
FRACTION: Final = 0.025
"""How far apart a rate at P10 and at P90 must put the time of the run to be named, as a share."""
MOST_WARNINGS: Final = 4
_SAID_BEFORE: Final = (GUESSES, "GPU memory: the job ")
"""Warnings that the verdict or another line holds already."""
_LISTS: Final = re.compile(
    r" \((?:measured(?: like this)?: [^)]*|nothing in this job depends on \w+)\)"
)
_SHORT_LIST: Final = 60
"""Columns above which a list in a warning is left to the full report."""
_FITS: Final = {
    Verdict.YES: "fits",
    Verdict.NO: "does not fit",
    Verdict.UNCERTAIN: "may not fit",
}

Row = tuple[str, str]


def as_text(prediction: Prediction, next_steps: Sequence[str] = (), *, width: int = WIDTH) -> str:
    """The short report, at most `width` columns wide, without colours or a final line end.

    Parameters
    ----------
    prediction : Prediction
        With its intervals.
    next_steps : sequence of str
        What to do next, one text each; none: the section is left out.
    width : int
        Columns.
    """
    scenario = prediction.scenario
    title = f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name
    lines = [
        *wrapped(title, width=width),
        *labelled(setting_rows(scenario), LABEL, width),
        "",
        *wrapped(verdict(prediction), hang="", width=width),
        "",
        *_step_lines(prediction, width),
        *labelled(_result_rows(prediction), LABEL, width),
        *_outlook_lines(prediction, width),
        *section("The answer hangs on", _assumption_lines(prediction, width)),
        *next_section(next_steps, width),
        *section("Warnings", _warning_lines(prediction, width)),
    ]
    return "\n".join(lines)


def next_section(steps: Sequence[str], width: int = WIDTH) -> list[str]:
    """What to do next as a section; nothing without steps."""
    return section("Do next", _numbered(steps, width))


def _step_lines(prediction: Prediction, width: int) -> list[str]:
    """The mean step and its parts as bars; nothing where samples only pass through."""
    scenario, timing = prediction.scenario, prediction.timing
    if scenario.job.mode is Mode.PREPARE:
        return []
    mean, digits = timing.step_time.mean, digits_of(prediction, "step_time_s.mean")
    name, names = batch_called(scenario).capitalize(), parts_called(scenario)
    said = known(prediction, "step_time_s.mean")
    said = said.removesuffix(")") + " in 4 of 5 cases)" if said.endswith(")") else said
    lines = labelled([(name, f"{said}{_tail(prediction)}")], LABEL, width)
    shown = [(names[part], time) for part, time in parts(timing.split) if time >= LEAST * mean]
    wide = max((len(part) for part, _ in shown), default=0)
    bars = min(BAR, max(10, width - LABEL - wide - 22))
    before = 0.0
    for part, time in shown if len(shown) > 1 else ():
        drawn = bar(time / mean, before, bars)
        size = quantity(time, SECOND, digits)
        share = f"{time / mean:.0%}"
        lines.append(f"{'':<{LABEL}} {part:<{wide}}  {size:>8} {share:>4}  {drawn}".rstrip())
        before += time / mean
    return lines


def _tail(prediction: Prediction) -> str:
    """How long the slowest steps take, where chance makes some of them longer."""
    step = prediction.timing.step_time
    if prediction.timing.half_width <= 0.0 or step.p95 <= LONGEST_TAIL * step.p50:
        return ""
    name = batch_called(prediction.scenario)
    return f"; one {name} in 20 takes more than {quantity(step.p95, SECOND, 2)}"


def _result_rows(prediction: Prediction) -> list[Row]:
    """Speed, the run, what is busy, memory and money."""
    return [
        ("Speed", _speed(prediction)),
        ("Tokens", _tokens(prediction)),
        ("Run", _run(prediction)),
        ("Busy", _busy(prediction)),
        ("vCPUs", _vcpus(prediction)),
        ("RAM", _fit(prediction.host_ram)),
        ("GPU memory" if device_word(prediction) == "GPU" else "Memory", _fit(prediction.memory)),
        ("Cost", _cost(prediction)),
        ("Energy", _energy(prediction)),
    ]


def _outlook_lines(prediction: Prediction, width: int) -> list[str]:
    """The long run with its interruptions; nothing where the scenario says nothing of them."""
    found = prediction.outlook
    return [] if found is None else ["", *labelled(goodput.rows(found), LABEL, width)]


def _speed(prediction: Prediction) -> str:
    said = known(prediction, "throughput_samples_per_s")
    computing = prediction.timing.accelerator_utilization
    if computing is None:
        return said
    return f"{said}; {device_word(prediction)}s compute {computing:.0%} of the time"


def _tokens(prediction: Prediction) -> str:
    """Rates in the words of language models."""
    if number_at(prediction, "tokens_per_s") is None:
        return ""
    digits, device = digits_of(prediction, "tokens_per_s"), device_word(prediction)
    each, said = number_at(prediction, "tokens_per_s_per_gpu"), known(prediction, "tokens_per_s")
    if each is not None:
        said += f"; {significant(each, digits)} {one(device)}"
    mfu, rate = number_at(prediction, "mfu"), number_at(prediction, "flops_per_s_per_gpu")
    if mfu is not None and rate is not None:
        said += f"; MFU {100.0 * mfu:.{digits}g}% ({quantity(rate, FLOP_PER_SECOND, digits)})"
    if prediction.scenario.job.mode is Mode.TRAIN:
        long = number_at(prediction, "time_per_trillion_tokens_s") or 0.0
        said += f"; 1T tokens take {quantity(long, SECOND, digits)}"
    return said


def _run(prediction: Prediction) -> str:
    """How long everything takes."""
    timing, epochs = prediction.timing, _epochs(prediction)
    said = f"{known(prediction, 'total_time_s')} for {epochs}"
    digits = digits_of(prediction, "epoch_time_s")
    if timing.total_time > 1.5 * timing.epoch_time:
        said += f"; an epoch {quantity(timing.epoch_time, SECOND, digits)}"
    first = number_at(prediction, "first_step_s") or 0.0
    if first > 10.0 * timing.step_time.mean:
        said += f"; the first {batch_called(prediction.scenario)} ends after "
        said += quantity(first, SECOND, digits_of(prediction, "first_step_s"))
    for name, time in prediction.one_off.items():
        if time > LEAST * timing.total_time:
            said += f"; {name} {quantity(time, SECOND, 2)}"
    return said


def _epochs(prediction: Prediction) -> str:
    """What the run is long: epochs, or steps where it ends within one."""
    ratio = prediction.total_steps / max(1, prediction.steps_per_epoch)
    if prediction.scenario.job.mode is not Mode.TRAIN:
        return f"{prediction.scenario.job.dataset.samples * max(1.0, ratio):,.0f} samples"
    steps = f"{prediction.total_steps:,} steps"
    if ratio < 1.0:
        return steps
    return f"{ratio:.4g} epoch{'' if round(ratio, 2) == 1.0 else 's'} ({steps})"


def _busy(prediction: Prediction) -> str:
    """Resources that do something, the busiest first, each by the name people have for it."""
    used = prediction.timing.usage.items()
    shares = sorted(((max(u.mean, 0.0), name) for name, u in used), reverse=True)
    shown = [
        f"{resource_called(str(name), prediction.scenario)} {share:.0%}"
        for share, name in shares
        if share >= LEAST
    ]
    return ", ".join(shown)


def _vcpus(prediction: Prediction) -> str:
    """How many vCPUs are short; nothing where they are enough."""
    need = prediction.cpu_need
    if need is None or need.short <= 0.0:
        return ""
    there = prediction.scenario.cluster.vcpus_per_gpu or 0.0
    device = device_word(prediction)
    return (
        f"each {device} needs {significant(need.per_gpu, 2)} to stay busy and has "
        f"{significant(there, 3)}; a sample takes {show(need.per_sample, SECOND, 2)} of a busy one"
    )


def _fit(fit: MemoryFit | HostRam | None) -> str:
    if fit is None:
        return ""
    most = max(fit.items, key=lambda name: fit.items[name])
    item = f"{printable(most).replace('_', ' ')} {show(fit.items[most], BYTE, 2)}"
    where = " a machine" if isinstance(fit, HostRam) else ""
    if fit.known_verdict is None:
        return (
            f"{show(fit.total, BYTE, 3)} of {show(fit.capacity, BYTE, 3)} and activations, which "
            "the model does not state (model.activation_bytes_per_sample)"
        )
    sure = "" if isinstance(fit, HostRam) else _sureness(fit)
    return (
        f"{show(fit.total, BYTE, 3)} needed of {show(fit.capacity, BYTE, 3)}{where}: "
        f"{_FITS[fit.verdict]}{sure}; most for {item}"
    )


def _sureness(fit: MemoryFit) -> str:
    if fit.probability is None:
        return ""
    low, high = (show(end, BYTE, 2) for end in fit.band)
    return f" ({low} to {high} in 4 of 5 cases, {chance(fit.probability)} that it fits)"


def _cost(prediction: Prediction) -> str:
    cost = prediction.cost
    if cost.per_second is None:
        unknown = "; ".join(missing(prediction.scenario))
        scenario = prediction.scenario
        return (
            f"not known: {unknown}"
            if unknown
            else f"{unpriced(scenario)} ({ways_to_price(scenario)})"
        )
    digits = digits_of(prediction, "total_time_s")
    rate = significant(cost.samples_per_usd or 0.0, digits)
    return (
        f"{in_all(prediction, known(prediction, 'cost.usd_to_train'))} for the run at "
        f"{quantity(cost.per_second, USD_PER_SECOND, 4)}{_dated(prediction)}"
        f"{_electricity(prediction)}; "
        f"{rate} samples a dollar"
        f"{in_short(prediction)}"
    )


def _electricity(prediction: Prediction) -> str:
    """What the electricity of owned machines is in the bill of the run; rent has it in it."""
    paid = prediction.cost.electricity
    return "" if paid is None else f" and {show(paid, USD, 2)} of electricity"


def _energy(prediction: Prediction) -> str:
    """What the run draws, what that costs and emits; nothing where no electricity is told of."""
    plan, energy = prediction.scenario.energy, prediction.energy
    if plan is None:
        return ""
    if energy.of_building is None:
        return f"not known: {'; '.join(energy.missing)}" if energy.missing else ""
    said = f"{known(prediction, 'energy.kwh')} for the run"
    if energy.price is not None and plan.tariff is not None:
        price, rate = quantity(energy.price, USD, 2), show(plan.tariff, USD_PER_JOULE)
        said += f", {price} at {rate} ({plan.sources['tariff'].date})"
    if energy.emitted is not None:
        said += f", {quantity(energy.emitted, KILOGRAM, 2)} CO2e ({plan.sources['grid'].date})"
    return said


def _dated(prediction: Prediction) -> str:
    """When the price of the machines was read; nothing for a price that the user states."""
    listed = listed_price(prediction.scenario, prediction.scenario.cluster.trainers)
    return "" if listed is None else dated(listed)


def _assumption_lines(prediction: Prediction, width: int) -> list[str]:
    """What moves the run's time most, and how many figures are guesses."""
    found = [one for one in dominant_uncertainties(prediction) if one.width >= FRACTION][
        :ASSUMPTIONS
    ]
    lines = [line for one in found for line in wrapped(_hangs(one, prediction), width=width - 2)]
    guesses = sum(not one.source.verified for one in prediction.assumptions)
    whole = len(prediction.assumptions)
    rest = f"{guesses} of {whole} figures are guesses; plan simulate --full lists all"
    return [*lines, *wrapped(rest, width=width - 2)]


def _hangs(one: DominantUncertainty, prediction: Prediction) -> str:
    what = uncertain(one.component.rate, one.component.grade, prediction.scenario)
    if one.component.grade is None and one.component.name:
        what = f"{what} ({one.component.name})"
    return f"{what}: the run takes {_change(one.fast)} to {_change(one.slow)}"


def _change(share: float) -> str:
    """A change of a time in per cent; what rounds to none has no sign."""
    whole = round(100.0 * share)
    return f"{whole:+d}%" if whole else "0%"


def _numbered(steps: Sequence[str], width: int) -> list[str]:
    """Texts with numbers before them."""
    if len(steps) == 1:
        return wrapped(steps[0], width=width - 2)
    return [
        line
        for number, text in enumerate(steps, start=1)
        for line in wrapped(f"{number}. {text}", INDENT + " ", width - 2)
    ]


def _warning_lines(prediction: Prediction, width: int) -> list[str]:
    """Warnings but for the list of guesses, each in two lines at most."""
    said = [one for one in prediction.warnings if not one.startswith(_SAID_BEFORE)]
    lines = [
        line
        for text in said[:MOST_WARNINGS]
        for line in wrapped(_without_lists(text), width=width - 2)
    ]
    more = len(said) - MOST_WARNINGS
    return [*lines, *([f"{more} more: plan simulate --full"] if more > 0 else [])]


def _without_lists(text: str) -> str:
    """A warning without a long list of what was measured."""
    return _LISTS.sub(lambda found: found[0] if len(found[0]) < _SHORT_LIST else "", text)
