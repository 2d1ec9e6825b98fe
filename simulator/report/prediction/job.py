"""The report of ``plan simulate`` on a job: one screen, or all details (``--full``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from simulator.equations.cpu import pool_capacity
from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.pipeline.stages.input import core_scale
from simulator.predict import DominantUncertainty, dominant_uncertainties
from simulator.report.document import (
    Actions,
    Bar,
    Bars,
    Document,
    Row,
    Rows,
    Section,
    Table,
    grid,
    notes,
    rows,
    section,
)
from simulator.report.labels import batch_called, batches_called, dated, resource_called, uncertain
from simulator.report.numbers import (
    GUESSES,
    INTERVAL,
    chance,
    digits_of,
    interval,
    known,
    quantity,
    significant,
)
from simulator.report.prediction.rows import (
    NEGLIGIBLE,
    bill_in_all,
    cost_rows,
    hidden_exchange,
    metric_table,
    parts,
    run_rows,
    setting_rows,
    store_share,
    unpriced,
    ways_to_price,
)
from simulator.report.prediction.verdict import device_word, marks, part_labels, verdict
from simulator.report.text import count, percent, printable
from simulator.results.binding import PARTS
from simulator.results.cost import listed_price
from simulator.results.energy import missing
from simulator.results.metrics import JOB_METRICS, Value, number_at, training_log
from simulator.results.prediction import Prediction
from simulator.schema.data_loading import CostBasis, Transport
from simulator.schema.provenance import Assumption
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
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
from simulator.version import __version__

if TYPE_CHECKING:
    from simulator.calibration.observed import Explained
    from simulator.results.serving import ServicePrediction
    from simulator.studies.actions import Action, ServiceAction

SCHEMA: Final = 1
"""Version of the names in ``--json``: keys may be added, never renamed without a new one."""
MAX_UNCERTAINTIES: Final = 3
"""Uncertain inputs that the short report names."""
MIN_SHARE: Final = 0.01
"""Share below which the short report leaves out a part."""
LONG_TAIL: Final = 1.1
"""95th percentile over the median of a step from which on the short report names it."""
MIN_EFFECT: Final = 0.025
"""Effect of an uncertain input on the run time, P90 less P10, from which on it is named."""
MAX_WARNINGS: Final = 4
"""Warnings of the short report."""
MAX_LIST: Final = 60
"""Columns of a list in a warning, above which the short report leaves it out."""
_REPEATED: Final = (GUESSES, "GPU memory: the job ")
"""Starts of warnings that repeat the verdict or another line."""
_LISTS: Final = re.compile(
    r" \((?:measured(?: like this)?: [^)]*|nothing in this job depends on \w+)\)"
)
_FITS: Final = {
    Verdict.YES: "fits",
    Verdict.NO: "does not fit",
    Verdict.UNCERTAIN: "may not fit",
}


def document(
    prediction: Prediction,
    found: Sequence[Action] | None = None,
    *,
    full: bool = False,
    observed: Explained | None = None,
    every: int | None = None,
) -> Document:
    """Return the prediction of a job as a document; see `report.prediction.document`."""
    scenario = prediction.scenario
    steps = actions_section(found, prediction)
    body = _full(prediction, steps) if full else _short(prediction, steps)
    log = () if every is None else section("", training_log_table(prediction, every))
    if observed is None:
        seen, preface = {}, log
    else:
        from simulator.report.prediction import observed as report

        preface = (*report.sections(observed), *log)
        seen = {"observed": report.as_object(observed)}
    return Document(
        title=f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name,
        question=tuple(setting_rows(scenario)),
        verdict=(verdict(prediction),),
        sections=body,
        preface=preface,
        data=lambda: {**as_object(prediction), **seen, **actions_object(found)},
        table=lambda: metric_table(prediction),
    )


def actions_section(
    found: Sequence[Action] | Sequence[ServiceAction] | None, base: Prediction | ServicePrediction
) -> tuple[Section, ...]:
    """Return a section with recommended actions, best first; empty if `found` is None."""
    if found is None:
        return ()
    from simulator.report.prediction.actions import action_texts

    return section("Do next", Actions(texts=tuple(action_texts(found, base))))


def actions_object(found: Sequence[Action] | Sequence[ServiceAction] | None) -> dict[str, Any]:
    """Return the actions as an entry of the ``--json`` object; empty if `found` is None."""
    if found is None:
        return {}
    from simulator.report.prediction.actions import action_objects

    return {"actions": action_objects(found)}


def _short(prediction: Prediction, steps: tuple[Section, ...]) -> tuple[Section, ...]:
    return (
        *section("", *_step(prediction), rows(_result_rows(prediction))),
        *_long_run(prediction, "", full=False),
        *section("Largest uncertainties", notes(_uncertainties(prediction))),
        *steps,
        *section("Warnings", notes(_short_warnings(prediction))),
    )


def _long_run(prediction: Prediction, title: str, *, full: bool) -> tuple[Section, ...]:
    outlook = prediction.outlook
    if outlook is None:
        return ()
    from simulator.report import goodput

    remarks = notes(goodput.notes_of(outlook)) if full else None
    return tuple(section(title, rows(goodput.rows(outlook)), remarks))


def _full(prediction: Prediction, steps: tuple[Section, ...]) -> tuple[Section, ...]:
    many = batches_called(prediction.scenario)
    memory = prediction.memory
    return (
        *section(_step_title(prediction), step_bars(prediction), _hidden(prediction)),
        *section("Run", rows(run_rows(prediction))),
        *section(f"Resources, over steady-state {many}", _resources(prediction)),
        *section("vCPUs", rows(_cpu_need(prediction))),
        *_memory("Host RAM per machine", prediction.host_ram),
        *(() if memory is None else _memory(f"Memory per {device_word(prediction)}", memory)),
        *section("Cost", rows(cost_rows(prediction))),
        *_long_run(prediction, "Long run, with interruptions", full=True),
        *section("Assumptions", notes(assumption_texts(prediction.assumptions))),
        *section("Warnings", notes(prediction.warnings)),
        *steps,
    )


def _step(prediction: Prediction) -> tuple[Rows, Bars] | tuple[()]:
    """Return the mean step and its parts; empty for a job that only prepares data."""
    scenario, timing = prediction.scenario, prediction.timing
    if scenario.job.mode is Mode.PREPARE:
        return ()
    mean, digits = timing.step_time.mean, digits_of(prediction, "step_time_s.mean")
    text = f"{known(prediction, 'step_time_s.mean', named=True)}{_tail(prediction)}"
    labels, bars, before = part_labels(prediction), list[Bar](), 0.0
    for part, time in parts(timing.split):
        if time >= MIN_SHARE * mean and mean:
            share = time / mean
            size = quantity(time, SECOND, digits)
            bars.append(
                Bar(
                    label=labels[part],
                    value=size,
                    share=f"{share:.0%}",
                    start=before,
                    length=share,
                )
            )
            before += share
    step = Rows(rows=((batch_called(scenario).capitalize(), text),))
    return step, Bars(bars=tuple(bars) if len(bars) > 1 else ())


def _tail(prediction: Prediction) -> str:
    step = prediction.timing.step_time
    if prediction.timing.half_width <= 0.0 or step.p95 <= LONG_TAIL * step.p50:
        return ""
    name = batch_called(prediction.scenario)
    return f"; one {name} in 20 takes more than {quantity(step.p95, SECOND, 2)}"


def _result_rows(prediction: Prediction) -> list[Row]:
    memory = "GPU memory" if device_word(prediction) == "GPU" else "Memory"
    return [
        ("Speed", _speed(prediction)),
        ("Tokens", _tokens(prediction)),
        ("Run", _run(prediction)),
        ("Busy", _busy(prediction)),
        ("vCPUs", _vcpus(prediction)),
        ("RAM", _fit(prediction.host_ram)),
        (SHARED_MEMORY, _shared_memory(prediction)),
        (memory, _fit(prediction.memory)),
        ("Cost", _cost(prediction)),
        ("Energy", _energy(prediction)),
    ]


def _speed(prediction: Prediction) -> str:
    first = prediction.scenario.job.mode is Mode.PREPARE
    text = known(prediction, "throughput_samples_per_s", named=first)
    computing = prediction.timing.accelerator_utilization
    if computing is None:
        return text
    return f"{text}; {device_word(prediction)}s compute {computing:.0%} of the time"


def _tokens(prediction: Prediction) -> str:
    """Describe the token rates of a language model; empty for other jobs."""
    if number_at(prediction, "tokens_per_s") is None:
        return ""
    digits, device = digits_of(prediction, "tokens_per_s"), device_word(prediction)
    each, text = number_at(prediction, "tokens_per_s_per_gpu"), known(prediction, "tokens_per_s")
    if each is not None:
        text += f"; {significant(each, digits)} per {device}"
    mfu, rate = number_at(prediction, "mfu"), number_at(prediction, "flops_per_s_per_gpu")
    if mfu is not None and rate is not None:
        text += f"; MFU {100.0 * mfu:.{digits}g}% ({quantity(rate, FLOP_PER_SECOND, digits)})"
    if prediction.scenario.job.mode is Mode.TRAIN:
        long = number_at(prediction, "time_per_trillion_tokens_s") or 0.0
        text += f"; 1T tokens take {quantity(long, SECOND, digits)}"
    return text


def _run(prediction: Prediction) -> str:
    timing, epochs = prediction.timing, _epochs(prediction)
    text = f"{known(prediction, 'total_time_s')} for {epochs}"
    digits = digits_of(prediction, "epoch_time_s")
    if timing.total_time > 1.5 * timing.epoch_time:
        text += f"; {quantity(timing.epoch_time, SECOND, digits)} per epoch"
    if timing.first_step > 10.0 * timing.step_time.mean:
        after = quantity(timing.first_step, SECOND, digits_of(prediction, "first_step_s"))
        text += f"; first {batch_called(prediction.scenario)} after {after}"
    for name, time in prediction.one_off.items():
        if time > MIN_SHARE * timing.total_time:
            text += f"; {name} {quantity(time, SECOND, 2)}"
    return text


def _epochs(prediction: Prediction) -> str:
    """Describe the length of the run: epochs, or steps if it is shorter than an epoch."""
    ratio = prediction.total_steps / max(1, prediction.steps_per_epoch)
    if prediction.scenario.job.mode is not Mode.TRAIN:
        return f"{prediction.scenario.job.dataset.samples * max(1.0, ratio):,.0f} samples"
    steps = f"{prediction.total_steps:,} steps"
    if ratio < 1.0:
        return steps
    return f"{ratio:.4g} epoch{'' if round(ratio, 2) == 1.0 else 's'} ({steps})"


def _busy(prediction: Prediction) -> str:
    used = prediction.timing.usage.items()
    shares = sorted(((max(u.mean, 0.0), name) for name, u in used), reverse=True)
    return ", ".join(
        f"{resource_called(str(name), prediction.scenario)} {share:.0%}"
        for share, name in shares
        if share >= MIN_SHARE
    )


def _vcpus(prediction: Prediction) -> str:
    """Describe the shortage of vCPUs; empty if there is none."""
    need = prediction.cpu_need
    if need is None or need.short <= 0.0:
        return ""
    there = prediction.scenario.cluster.vcpus_per_gpu or 0.0
    idle = prediction.scenario.job.input.per_sample
    each = (
        f"each {device_word(prediction)} needs {significant(need.per_gpu, 2)} to stay busy and has "
        f"{significant(there, 3)}"
    )
    if not idle:
        return each
    if prediction.scenario.job.input.cost_basis is CostBasis.VCPU:
        return f"{each}: a sample takes {show(idle, SECOND, 2)} of a vCPU while all are busy"
    busy = show(need.per_sample, SECOND, 2)
    reasons = ", ".join(_slower(prediction.scenario))
    why = f" ({reasons})" if reasons else ""
    return (
        f"{each}: a sample's {show(idle, SECOND, 2)} on an idle core (input.cost_basis) are "
        f"{busy} of a vCPU while all are busy{why}"
    )


ALIKE: Final = 0.01
"""Difference of speeds up to which it is not mentioned."""


def _slower(scenario: Scenario) -> Iterator[str]:
    """Yield why a vCPU of a full machine takes longer for a sample than an idle core."""
    pool = scenario.cluster.trainers.host.cpu
    together = pool_capacity(pool.threads, pool.cores, pool.threads, pool.smt_worth)
    shared, crowded = pool.threads / together, together / float(pool.capacity)
    scale = float(np.mean(core_scale(scenario)))
    if abs(scale - 1.0) > ALIKE:
        yield f"a vCPU here is x{significant(1.0 / scale, 2)} as fast as where it was measured"
    if shared > 1.0 + ALIKE:
        yield f"vCPUs share cores: x{significant(float(shared), 2)}"
    if crowded > 1.0 + ALIKE:
        yield f"busy cores slow each other: x{significant(float(crowded), 2)}"


SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a label


def _shared_memory(prediction: Prediction) -> str:
    """Describe the shared memory of batches in flight; empty unless they decide about RAM.

    They do as the largest item, or beyond what a machine allows: half of its RAM, Linux's default
    of a tmpfs (tmpfs(5)). Docker allows 64 MB (docker run --shm-size).
    """
    pipeline, ram = prediction.scenario.job.input, prediction.host_ram
    held = ram.items.get("batches_in_flight", 0.0)
    shared = pipeline.transport is Transport.SHARED_MEMORY and pipeline.workers > 0
    most = ram.capacity / 2.0
    if not shared or (held < max(ram.items.values()) and held <= most):
        return ""
    needs = "a container needs --shm-size or --ipc=host"
    room = f"half of RAM is allowed by default ({show(most, BYTE, 3)})"
    if held > most:
        room += ", which is too little: workers die of bus errors (mount it with a larger size=)"
    return f"{show(held, BYTE, 3)} of batches: {needs}; {room}"


def _fit(fit: MemoryFit | HostRam | None) -> str:
    if fit is None:
        return ""
    most = max(fit.items, key=lambda name: fit.items[name])
    item = f"{printable(most).replace('_', ' ')}, {show(fit.items[most], BYTE, 2)}"
    needed, room = show(fit.total, BYTE, 3), f"of {show(fit.capacity, BYTE, 3)}"
    if fit.known_verdict is None:
        return (
            f"{needed} {room} and activations, whose size is unknown "
            "(set model.activation_bytes_per_sample)"
        )
    if isinstance(fit, HostRam):
        return f"{needed} {room} per machine: {_FITS[fit.verdict]}; largest item: {item}"
    between = sure = ""
    if fit.probability is not None:
        between = f" ({interval(*fit.band, BYTE, 2)})"
        sure = f" ({chance(fit.probability)} probability)"
    return f"{needed}{between} {room}: {_FITS[fit.verdict]}{sure}; largest item: {item}"


def _cost(prediction: Prediction) -> str:
    cost, scenario = prediction.cost, prediction.scenario
    if cost.per_second is None:
        unknown = "; ".join(missing(scenario))
        return f"unknown: {unknown or f'{unpriced(scenario)} ({ways_to_price(scenario)})'}"
    digits = digits_of(prediction, "total_time_s")
    rate = significant(cost.samples_per_usd or 0.0, digits)
    listed = listed_price(scenario, scenario.cluster.trainers)
    power = cost.electricity
    return (
        f"{bill_in_all(prediction, known(prediction, 'cost.usd_to_train'))} for the run at "
        f"{quantity(cost.per_second, USD_PER_SECOND, 4)}{'' if listed is None else dated(listed)}"
        f"{'' if power is None else f' and {show(power, USD, 2)} of electricity'}; "
        f"{rate} samples per dollar{store_share(prediction)}"
    )


def _energy(prediction: Prediction) -> str:
    """Describe energy, price and emissions of the run; empty without ``[energy]``."""
    plan, energy = prediction.scenario.energy, prediction.energy
    if plan is None:
        return ""
    if energy.of_building is None:
        return f"unknown: {'; '.join(energy.missing)}" if energy.missing else ""
    text = f"{known(prediction, 'energy.kwh')} for the run"
    if energy.price is not None and plan.price is not None:
        price, rate = quantity(energy.price, USD, 2), show(plan.price, USD_PER_JOULE)
        text += f", {price} at {rate} ({plan.figures['tariff'].date})"
    if energy.emitted is not None:
        text += f", {quantity(energy.emitted, KILOGRAM, 2)} CO2e ({plan.figures['grid'].date})"
    return text


def _uncertainties(prediction: Prediction) -> Iterator[str]:
    """Yield the uncertain inputs with the largest effect, and the number of unverified inputs."""
    largest = [one for one in dominant_uncertainties(prediction) if one.width >= MIN_EFFECT]
    for one in largest[:MAX_UNCERTAINTIES]:
        yield _effect(one, prediction)
    unverified = sum(not one.source.verified for one in prediction.assumptions)
    yield (
        f"{unverified} of {len(prediction.assumptions)} inputs are unverified; "
        "plan simulate --full lists all"
    )


def _effect(one: DominantUncertainty, prediction: Prediction) -> str:
    doubt = one.component
    what = uncertain(doubt.rate, doubt.grade, prediction.scenario, doubt.name)
    return f"{what}: run time {_change(one.fast)} to {_change(one.slow)}"


def _change(share: float) -> str:
    whole = round(100.0 * share)
    return f"{whole:+d}%" if whole else "0%"


def _short_warnings(prediction: Prediction) -> Iterator[str]:
    """Yield the first warnings that are not reported elsewhere, with long lists removed."""
    kept = [text for text in prediction.warnings if not text.startswith(_REPEATED)]
    for text in kept[:MAX_WARNINGS]:
        yield _LISTS.sub(lambda found: found[0] if len(found[0]) < MAX_LIST else "", text)
    if len(kept) > MAX_WARNINGS:
        yield f"{len(kept) - MAX_WARNINGS} more: plan simulate --full"


def _step_title(prediction: Prediction) -> str:
    timing, step = prediction.timing, prediction.timing.step_time
    quantiles = ", ".join(
        f"{name} {show(value, SECOND)}"
        for name, value in (("p50", step.p50), ("p95", step.p95), ("p99", step.p99))
    )
    ends = prediction.interval.get("step_time_s.mean")
    between = (
        "" if ends is None else f", {INTERVAL} {interval(ends['p10'], ends['p90'], SECOND, 3)}"
    )
    if ends is None and timing.half_width > NEGLIGIBLE * step.mean:
        between = f" +- {show(timing.half_width, SECOND)}"
    bursts = "they come in bursts; " if step.p50 <= NEGLIGIBLE * step.mean else ""
    called, many = batch_called(prediction.scenario), batches_called(prediction.scenario)
    title = f"{called.capitalize()} {show(step.mean, SECOND)}{between}"
    return f"{title} ({bursts}over {many}: {quantiles})"


def step_bars(prediction: Prediction) -> Bars:
    """Return the mean step as a waterfall of its exposed parts, with their sum."""
    timing = prediction.timing
    whole = timing.step_time.mean or 1.0
    marked = {timing.next_bottleneck: "next", timing.bottleneck: "bottleneck"}
    labels, bars, before = part_labels(prediction), list[Bar](), 0.0
    for name, time in parts(timing.split):
        share = time / whole
        if share > NEGLIGIBLE:
            bars.append(
                Bar(
                    label=labels[name],
                    value=show(time, SECOND),
                    share=percent(share),
                    start=before,
                    length=share,
                    note=marked.get(PARTS[name], "") if name in PARTS else "",
                )
            )
        before += share
    total = Bar(
        label=f"= {batch_called(prediction.scenario)}",
        value=show(timing.step_time.mean, SECOND),
        share=percent(before),
        start=0.0,
        length=0.0,
    )
    return Bars(bars=(*bars, total))


def _hidden(prediction: Prediction) -> Table | None:
    hidden = hidden_exchange(prediction.timing)
    return grid((), [(hidden,)] if hidden else [], "<")


def _resources(prediction: Prediction) -> Bars:
    marked = marks(prediction)
    busiest_first = sorted(prediction.timing.usage.items(), key=lambda entry: -entry[1].mean)
    return Bars(
        bars=tuple(
            Bar(
                label=str(name),
                value=percent(usage.mean),
                share=f"{usage.total:.4g} of {usage.units}",
                start=0.0,
                length=usage.mean,
                note=marked.get(name, ""),
            )
            for name, usage in busiest_first
        )
    )


def _cpu_need(prediction: Prediction) -> list[Row]:
    need, group = prediction.cpu_need, prediction.scenario.cluster.trainers
    if need is None:
        return []
    there = prediction.scenario.cluster.vcpus_per_gpu or 0.0
    wanted = need.per_gpu * max(1, group.gpus_per_host) * group.count
    short = f"{need.short:.3g} of {wanted:.4g} ({percent(need.short / wanted)})"
    return [
        (f"per {device_word(prediction)}", f"{need.per_gpu:.3g} needed, {there:.3g} available"),
        ("missing", short if need.short > 0.0 else "none"),
    ]


def _memory(what: str, fit: MemoryFit | HostRam) -> tuple[Section, ...]:
    if isinstance(fit, HostRam):
        rule = f"{show(fit.rule_of_thumb, BYTE)} (GPU memory + system + application)"
        extra = [("rule of thumb", rule)]
    else:
        extra = [(f"total, {name} stage", show(size, BYTE)) for name, size in fit.stages.items()]
    return section(_fit_title(what, fit), item_table(fit, *extra))


def item_table(fit: MemoryFit | HostRam, *extra: Row) -> Table | None:
    """Return a table of the items of a memory, with the rows `extra` below them."""
    items = [
        (printable(name).replace("_", " "), show(size, BYTE))
        for name, size in fit.items.items()
        if size > 0.0
    ]
    return grid((), [*items, *extra], "<>" if all(len(text) < 12 for _, text in extra) else "<<")  # noqa: PLR2004 - as wide as a size


def _fit_title(what: str, fit: MemoryFit | HostRam) -> str:
    needed, room = show(fit.total, BYTE), f"needed of {show(fit.capacity, BYTE)}"
    if isinstance(fit, MemoryFit) and fit.probability is not None:
        between = interval(*fit.band, BYTE, 3)
        sure = chance(fit.probability)
        return f"{what}: {needed} ({between}) {room}, fits with {sure} probability"
    if fit.known_verdict is None:
        return f"{what}: {needed} {room}, and activations of unknown size"
    return f"{what}: {needed} {room}, {_FITS[fit.verdict]}"


def training_log_table(prediction: Prediction, every: int) -> Table:
    """Return the log lines that a training loop prints every `every` steps, as far as simulated."""
    lines = [
        (f"step {done:,}", show(time, SECOND), f"{count(rate)} samples/s")
        for done, time, rate in training_log(prediction, every)
    ]
    if len(prediction.timing.step_times) < prediction.total_steps:
        lines.append(("later", "", f"{count(prediction.timing.throughput)} samples/s"))
    return Table(head=(), rows=tuple(lines), align="<>>")


def assumption_texts(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """Yield each assumption with its value and source; unverified ones first and marked."""
    for assumption in sorted(assumptions, key=lambda one: one.source.verified):
        source = assumption.source
        mark = "" if source.verified else "UNVERIFIED "
        yield f"{mark}{assumption.what}: {assumption.value} [{source.reference}, {source.date}]"


def as_object(prediction: Prediction) -> dict[str, Any]:
    """Return the object of ``--json``: every metric by its dotted path, nested, in SI units.

    Null: not applicable, or not finite. ``utilization`` lists the scenario's resources.
    """
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": prediction.scenario.name,
        "seed": prediction.seed,
    }
    for metric in JOB_METRICS:
        place(tree, metric.name.split("."), _plain(metric.get(prediction)))
    tree["utilization"] = {
        str(name): {"mean": u.mean, "sum": u.total, "units": u.units}
        for name, u in sorted(prediction.timing.usage.items())
    }
    tree["interval"] = {name: dict(band) for name, band in prediction.interval.items()}
    tree["assumptions"] = [assumption_object(assumption) for assumption in prediction.assumptions]
    tree["warnings"] = list(prediction.warnings)
    return tree


def place(tree: dict[str, Any], path: Sequence[str], value: object) -> None:
    """Set a value in nested dictionaries under a path."""
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _plain(value: Value) -> object:
    """Convert a value to a JSON-serializable type, without subclasses."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, int) else float(value)


def assumption_object(assumption: Assumption) -> dict[str, object]:
    """Return an assumption with its source as a JSON-serializable dict."""
    source = assumption.source
    return {
        "what": assumption.what,
        "value": assumption.value,
        "source": source.reference,
        "date": source.date,
        "verified": source.verified,
    }
