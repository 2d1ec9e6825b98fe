"""PyTorch profiler traces as sections of a scenario: how a step is spent, here and at other sizes.

`trace_file` reads the events, `steps` finds whole steps and splits them into operators, `messages`
reads the collectives, `scaling` gives the step at another batch size or number of devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.importers.foreign import changed
from simulator.importers.result import Fragment
from simulator.importers.result import Kind as FragmentKind
from simulator.importers.torch_profiler.messages import (
    Message,
    Wire,
    fit_wire,
    gradient_values,
    messages,
)
from simulator.importers.torch_profiler.scaling import (
    Key,
    Line,
    Replay,
    Rules,
    Target,
    lines,
    replay,
    scaled,
)
from simulator.importers.torch_profiler.steps import (
    Composition,
    Growth,
    Names,
    Row,
    Window,
    composition,
    rows,
    window,
)
from simulator.importers.torch_profiler.trace_file import DEVICE, Kind, Trace, read_trace
from simulator.reading.hardware.profile_text import comment, quantity, quote
from simulator.units import BytesPerSecond

_NAMED: Final = {
    Kind.KERNEL: "kernel",
    Kind.COLLECTIVE: "collective",
    Kind.TO_DEVICE: "copy in",
    Kind.TO_HOST: "copy out",
    Kind.OPERATOR: "on the CPU",
}
_MAX_NAME_WIDTH: Final = 44
_MIN_SHOWN: Final = units.parse("1 ns", units.SECOND)
"""Shorter parts are rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A step as traced, or as scaled to another size."""

    title: str
    batch: int | None
    devices: int
    spent: Composition
    measured: bool

    @property
    def rate(self) -> float | None:
        """Samples a second of all devices, as long as data is there."""
        if self.batch is None:
            return None
        return self.batch * self.devices / self.spent.step if self.spent.step > 0.0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All that is said of one or more traces; `parameters` are values reduced in a step."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    device: str
    parameters: float
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    files: str
    date: str
    extends: str
    shown: int
    steps: int


def fragment(result: Result) -> Fragment:
    """Return the result as sections of a scenario under its tables."""
    known = [column for column in result.columns if column.batch is not None]
    warnings = list(result.warnings)
    if not known:
        warnings.append(
            "no --batch: the samples of a step are not in a trace; no section is written"
        )
    summary = tuple(_summary(result))
    said = [f"From {result.files} (PyTorch profiler, {result.date}).", *summary]
    text = [comment("\n".join(said)), *(_sections(result, known) if known else ())]
    return Fragment(
        kind=FragmentKind.SCENARIO,
        text="\n".join(text) + "\n",
        summary=summary,
        warnings=tuple(warnings),
    )


def _sections(result: Result, known: Sequence[Column]) -> Iterator[str]:
    if result.extends:
        yield from ("schema = 1", f"extends = {quote(result.extends)}", "")
    first = known[0]
    yield "[model]"
    copied = first.spent.to_device_bytes / (first.batch or 1)
    # A scenario that is built on says these itself, by name or by figures.
    mark = "# " if result.extends else ""
    if result.parameters:
        count = f"{result.parameters:.0f}"
        yield f"{mark}parameters = {count}  # values reduced over all ranks in a step"
        if copied:
            size = quantity(copied, units.BYTE)
            yield f"{mark}input_bytes_per_sample = {size}  # copied in a step"
    yield "step_times = ["
    for column in known:
        time = quantity(column.spent.without_data, units.SECOND)
        said = "" if column.measured else "  # scaled, not measured"
        yield f"  {{ batch_size = {column.batch}, time = {time} }},{said}"
    yield "]"
    yield ""
    yield "[train]"
    yield f"batch_size = {known[-1].batch}"


def _summary(result: Result) -> Iterator[str]:
    where = result.device or "CPU"
    yield f"{where}: {result.steps} whole steps"
    yield ""
    yield from _steps(result.columns)
    if result.assumptions:
        yield ""
        yield "assumed:"
        yield from (f"- {line}" for line in result.assumptions)
    yield ""
    yield from _operators(result)


def _steps(columns: Sequence[Column]) -> Iterator[str]:
    """Return the split of a step, a column for each."""
    heads = [("", *cells) for cells in zip(*(_head(c) for c in columns), strict=True) if any(cells)]
    device = columns[0].spent.on_device
    parts = [
        ("step", "step"),
        ("  compute" if device else "  operators", "compute"),
        ("  exposed communication", "communication"),
        ("  copies to the device", "to_device"),
        ("  copies to the host", "to_host"),
        ("  waits for data", "data"),
        ("  gaps: launches, Python" if device else "  between operators", "gaps"),
        ("hidden communication", "hidden_communication"),
        ("hidden copies", "hidden_to_device"),
    ]
    lines = []
    for name, key in parts:
        values = [float(getattr(column.spent, key)) for column in columns]
        steps = [column.spent.step for column in columns]
        if key == "step" or any(value > _MIN_SHOWN for value in values):
            cells = (_cell(value, step) for value, step in zip(values, steps, strict=True))
            lines.append((name, *cells))
    copied = [column.spent.to_device_bytes for column in columns]
    if any(copied):
        lines.append(("copied to the device", *(units.show(size, units.BYTE) for size in copied)))
    if device:
        lines.append(("device busy", *(f"{column.spent.busy:.1%}" for column in columns)))
    rates = [column.rate for column in columns]
    if any(rates):
        lines.append(
            ("samples/s, all devices", *(f"{rate:,.4g}" if rate else "" for rate in rates))
        )
    yield from _aligned([*heads, *lines])


def _head(column: Column) -> tuple[str, str, str]:
    batch = "" if column.batch is None else f"batch {column.batch}"
    devices = f"{column.devices} devices" if column.devices > 1 else ""
    return column.title, batch, devices


def _cell(value: float, step: float) -> str:
    if value <= _MIN_SHOWN:
        return "-" + " " * 7
    share = f"{value / step:>7.1%}" if step > 0.0 else " " * 7
    return f"{units.show(value, units.SECOND):>9}{share}"


def _operators(result: Result) -> Iterator[str]:
    """Return the longest operators of the first trace."""
    total = sum(row.time for row in result.rows)
    heads = [("operator", "what", "calls", "time", "share", "with the batch")]
    shown = result.rows[: result.shown]
    lines = [
        (
            _cut(row.name),
            _NAMED.get(row.kind, ""),
            f"{row.calls:,.4g}",
            units.show(row.time, units.SECOND),
            f"{row.time / total:.1%}" if total else "",
            "grows" if row.growth is Growth.BATCH else "fixed",
        )
        for row in shown
    ]
    yield from _aligned([*heads, *lines])
    rest = result.rows[result.shown :]
    if rest:
        time = sum(row.time for row in rest)
        yield f"and {len(rest)} more, {units.show(time, units.SECOND)} together"


def _cut(name: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in name)
    return plain if len(plain) <= _MAX_NAME_WIDTH else f"{plain[: _MAX_NAME_WIDTH - 3]}..."


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for first, *others in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"{first:<{widths[0]}}", *cells]).rstrip()


_EMPTY: Final = units.parse("5 us", units.SECOND)
"""The most that a kernel is taken to need however little it does; own choice."""
_MAX_REPLAY_ERROR: Final = 0.05
"""How far a replay of the trace as it is may be from its own time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Facts that are not in the traces, and the sizes asked for.

    `batches` are samples that a device took in a step, one for each trace or one for all, or none.
    `to_batches` and `devices` are what to scale to; `network` and `per_machine` as in `Target`.
    `steps` counts the steps of a trace without marks. `extends` names the scenario to build on,
    `shown` says how many operators to list.
    """

    batches: tuple[int, ...] = ()
    to_batches: tuple[int, ...] = ()
    devices: int | None = None
    network: BytesPerSecond | None = None
    per_machine: int | None = None
    steps: int | None = None
    extends: str = ""
    shown: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One trace taken apart."""

    path: Path
    batch: int | None
    trace: Trace
    of: Window
    found: Mapping[int, Message]
    names: Names
    rows: tuple[Row, ...]
    spent: Composition
    replay: Replay | None

    @property
    def members(self) -> int:
        """Ranks of the largest group that talked; 1 where none did."""
        return max((message.ranks for message in self.found.values()), default=1)

    @property
    def devices(self) -> int:
        """Devices of the job, as far as the trace tells."""
        return self.trace.ranks or self.members


def read(paths: Sequence[Path], request: Request) -> Fragment:
    """Read the steps and operators of one or more traces, and scale them to other sizes.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        One trace of one rank, or several of equal runs at different batch sizes.
    request : Request
        What is known, and asked for.

    Returns
    -------
    Fragment
        Sections [model] and [train] if the batch is known; the tables in comments and summary.

    Raises
    ------
    InputError
        For files that are not such traces or broken, and options that don't fit them.
    """
    _check(paths, request)
    batches = _batches(paths, request)
    traced = [
        _traced(path, batch, request.steps) for path, batch in zip(paths, batches, strict=True)
    ]
    fitted = lines({each.batch: each.rows for each in traced if each.batch is not None})
    columns = [_column(each) for each in traced]
    assumptions: list[str] = []
    warnings = [warning for each in traced for warning in _warnings(each)]
    for batch in _wanted(request):
        base = _nearest(traced, batch)
        target = Target(
            batch=batch,
            devices=request.devices,
            network=request.network,
            per_machine=request.per_machine,
        )
        rules = _rules(base, target, fitted)
        columns.append(_scaled(base, rules, request))
        assumptions += [line for line in rules.assumptions() if line not in assumptions]
        warnings += [line for line in _replay_warnings(base) if line not in warnings]
    first = traced[0]
    inside = [event for event in first.trace.of(Kind.COLLECTIVE) if first.of.holds(event)]
    return fragment(
        Result(
            columns=tuple(columns),
            rows=first.rows,
            device=first.trace.device,
            parameters=gradient_values(inside, first.found) / first.of.steps,
            assumptions=tuple(assumptions),
            warnings=tuple(dict.fromkeys(warnings)),
            files=", ".join(path.name for path in paths),
            date=changed(paths[0]),
            extends=request.extends,
            shown=request.shown,
            steps=first.of.steps,
        )
    )


def _check(paths: Sequence[Path], request: Request) -> None:
    """Return options that contradict each other."""
    problems = []
    if len(request.batches) not in {0, len(paths)}:
        message = f"is given {len(request.batches)} times for {len(paths)} traces"
        problems.append(Problem(origin="--batch", message=message, hint="once for each trace"))
    if request.to_batches and not request.batches:
        message = "needs to know the batch of the trace"
        problems.append(Problem(origin="--to-batch", message=message, hint="give --batch"))
    if len(paths) > 1 and len(set(request.batches)) != len(paths):
        message = "of several traces have to differ"
        hint = "give --batch for each, in the order of the files"
        problems.append(Problem(origin="--batch", message=message, hint=hint))
    if request.network is not None and request.devices is None:
        message = "is asked for only with other numbers of devices"
        problems.append(Problem(origin="--network", message=message, hint="give --gpus"))
    if problems:
        raise InputError(tuple(problems))


def _batches(paths: Sequence[Path], request: Request) -> list[int | None]:
    return [*request.batches] if request.batches else [None] * len(paths)


def _wanted(request: Request) -> tuple[int | None, ...]:
    if request.to_batches:
        return request.to_batches
    return (None,) if request.devices is not None else ()


def _traced(path: Path, batch: int | None, steps: int | None) -> Traced:
    trace = read_trace(path)
    of = window(trace, steps)
    found = messages(trace)
    names = Names.of_trace(trace, of, found)
    return Traced(
        path=path,
        batch=batch,
        trace=trace,
        of=of,
        found=found,
        names=names,
        rows=rows(trace, of, found),
        spent=composition(trace, of),
        replay=replay(trace, of, names),
    )


def _column(traced: Traced) -> Column:
    return Column(
        title="traced",
        batch=traced.batch,
        devices=traced.devices,
        spent=traced.spent,
        measured=True,
    )


def _nearest(traced: Sequence[Traced], batch: int | None) -> Traced:
    if batch is None:
        return traced[0]
    return min(traced, key=lambda each: abs((each.batch or batch) - batch))


def _rules(base: Traced, target: Target, fitted: Mapping[Key, Line]) -> Rules:
    work = base.trace.of(Kind.KERNEL)
    shortest = min((e.duration for e in work if e.duration > 0.0), default=_EMPTY)
    growth = target.batch / base.batch if target.batch and base.batch else 1.0
    return Rules(
        batch=base.batch,
        growth=growth,
        shortest=min(_EMPTY, shortest) if work else 0.0,
        names=base.names,
        messages=base.found,
        wire=_wire(base),
        members=base.members,
        ranks=_ranks(base, target),
        target=target,
        lines=fitted,
        on_device=bool(work),
    )


def _wire(base: Traced) -> Wire | None:
    return fit_wire(base.trace.of(Kind.COLLECTIVE), base.found)


def _ranks(base: Traced, target: Target) -> int:
    """Return ranks of the target's largest group, which holds the same share of all devices."""
    if target.devices is None:
        return base.members
    ranks = base.members * target.devices / base.devices
    if ranks < 1.0 or ranks != int(ranks):
        message = f"don't divide into groups as the trace's {base.devices} do"
        raise InputError(
            (
                Problem(
                    origin="--gpus",
                    message=message,
                    found=str(target.devices),
                    hint=f"its largest group has {base.members} ranks",
                ),
            )
        )
    return int(ranks)


def _scaled(base: Traced, rules: Rules, request: Request) -> Column:
    again = base.replay
    if again is not None:
        spent = again.composition(rules.duration, rules.growth)
    else:
        spent = scaled(base.spent, base.rows, rules)
    return Column(
        title="scaled",
        batch=None if base.batch is None else round(base.batch * rules.growth),
        devices=request.devices or base.devices,
        spent=spent,
        measured=False,
    )


def _warnings(traced: Traced) -> Iterator[str]:
    yield from traced.trace.warnings
    yield from traced.of.warnings
    silent = sum(id(e) not in traced.found for e in traced.trace.of(Kind.COLLECTIVE))
    if silent:
        yield f"{silent} collectives don't say what they moved"
    if traced.found:
        yield "collectives last until the slowest peer is there: their time holds waiting too"
    if not traced.trace.of(*DEVICE):
        yield "no device in the trace: times are those of operators on the CPU"


def _replay_warnings(base: Traced) -> Iterator[str]:
    """Return the error of a replay of the trace as it is: the time without waiting for data."""
    if base.replay is None:
        yield "the trace can't be replayed (launches, marks or a device are missing): parts scale"
        return
    again = base.replay.composition(lambda event: event.duration, 1.0).step
    known = base.spent.step - base.spent.data
    if abs(again / known - 1.0) > _MAX_REPLAY_ERROR:
        share = again / known - 1.0
        yield f"a replay of the trace as it is, without waits for data, comes out {share:+.0%}"
