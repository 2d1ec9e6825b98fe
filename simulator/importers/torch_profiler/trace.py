"""Importer of PyTorch profiler traces: the composition of a step, as traced and at other sizes.

`trace_file` reads the events and collectives, `steps` finds whole steps and splits them into
operators, `scaling` gives the step at another batch size or number of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.importers.foreign import changed
from simulator.importers.result import Fragment, aligned
from simulator.importers.result import Kind as FragmentKind
from simulator.importers.torch_profiler.scaling import Replay, Rules, lines, replay, scaled
from simulator.importers.torch_profiler.steps import (
    Composition,
    Key,
    Names,
    Row,
    Window,
    composition,
    rows,
    window,
)
from simulator.importers.torch_profiler.trace_file import (
    DEVICE,
    Kind,
    Trace,
    fit_wire,
    gradient_values,
    messages,
    read_trace,
)
from simulator.reading.hardware.profile_text import comment, quantity, quote
from simulator.records import dataclass
from simulator.units import BytesPerSecond, Seconds

_NAMED: Final = {
    Kind.KERNEL: "kernel",
    Kind.COLLECTIVE: "collective",
    Kind.TO_DEVICE: "copy in",
    Kind.TO_HOST: "copy out",
    Kind.OPERATOR: "on the CPU",
}
_MAX_NAME_WIDTH: Final = 44
_READING: Final = 0.7
"""Share of the time that reading a trace takes, the rest being its analysis."""
_MIN_SHOWN: Final = units.parse("1 ns", units.SECOND)
"""Time below which a part is a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A step as traced (`measured`), or as scaled to another size."""

    batch: int | None
    devices: int
    spent: Composition
    measured: bool

    @property
    def rate(self) -> float | None:
        """Samples per second of all devices without data stalls; None if the batch is unknown."""
        if self.batch is None:
            return None
        return self.batch * self.devices / self.spent.step if self.spent.step > 0.0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Options of the import: facts that are not in the traces, and target sizes.

    `batches` are the samples per device and step of each trace; empty if unknown. `to_batches` and
    `devices` are the target sizes; `network` and `per_machine` as in `Rules`. `steps` is the number
    of steps of a trace without marks, `extends` the scenario to build on, `shown` the number of
    operators to list.
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
    """One trace with its steps, operators, composition and replay."""

    batch: int | None
    trace: Trace
    of: Window
    names: Names
    rows: tuple[Row, ...]
    spent: Composition
    replay: Replay | None

    @property
    def members(self) -> int:
        """Number of ranks of the largest group with a collective; 1 without collectives."""
        return max((message.ranks for message in self.names.messages.values()), default=1)

    @property
    def devices(self) -> int:
        """Number of devices of the job: the world size if recorded, else `members`."""
        return self.trace.ranks or self.members


def read(
    paths: Sequence[Path], request: Request, progress: Callable[[float], None] | None = None
) -> Fragment:
    """Convert one or more traces to scenario sections, and scale them to other sizes.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        One trace of one rank, or traces of equal runs at different batch sizes.
    request : Request
        Facts that are not in the traces, and target sizes.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    Fragment
        Sections [model] and [train] if the batch size is known; the tables in comments and summary.

    Raises
    ------
    InputError
        For files that are not profiler traces or invalid, and options that contradict them.
    """
    _check(paths, request)
    batches = request.batches or [None] * len(paths)
    tell = progress or (lambda _: None)
    traced = []
    for number, (path, batch) in enumerate(zip(paths, batches, strict=True)):
        tell(number / len(paths))
        traced.append(
            _traced(
                path,
                batch,
                request.steps,
                lambda share, before=number: tell((before + _READING * share) / len(paths)),  # type: ignore[misc] # a default keeps the number
            )
        )
    fitted = lines({each.batch: each.rows for each in traced if each.batch is not None})
    columns = [
        Column(batch=each.batch, devices=each.devices, spent=each.spent, measured=True)
        for each in traced
    ]
    assumptions: dict[str, None] = {}
    warnings = dict.fromkeys(warning for each in traced for warning in _warnings(each))
    scale = request.devices is not None
    for batch in request.to_batches or ((None,) if scale else ()):
        base = min(traced, key=lambda each: abs((each.batch or batch or 0) - (batch or 0)))
        rules = _rules(base, batch, request, fitted)
        columns.append(_scaled(base, rules, request))
        assumptions |= dict.fromkeys(rules.assumptions())
        warnings |= dict.fromkeys(_replay_warnings(base))
    first = traced[0]
    inside = [event for event in first.trace.of(Kind.COLLECTIVE) if first.of.holds(event)]
    parameters = gradient_values(inside, first.names.messages) / first.of.steps
    summary = [f"{first.trace.device or 'CPU'}: {first.of.steps} whole steps", "", *_steps(columns)]
    if assumptions:
        summary += ["", "assumed:", *(f"- {line}" for line in assumptions)]
    summary += ["", *_operators(first.rows, request.shown)]
    files = ", ".join(path.name for path in paths)
    said = [f"From {files} (PyTorch profiler, {changed(paths[0])}).", *summary]
    text = [comment("\n".join(said))]
    known = [column for column in columns if column.batch is not None]
    if known:
        text += _sections(known, parameters, request.extends)
    else:
        missing = "no --batch: the samples of a step are not in a trace; no section is written"
        warnings[missing] = None
    return Fragment(
        kind=FragmentKind.SCENARIO,
        text="\n".join(text) + "\n",
        summary=tuple(summary),
        warnings=tuple(warnings),
    )


def _sections(known: Sequence[Column], parameters: float, extends: str) -> Iterator[str]:
    if extends:
        yield from ("schema = 1", f"extends = {quote(extends)}", "")
    first = known[0]
    yield "[model]"
    copied = first.spent.to_device_bytes / (first.batch or 1)
    # The extended scenario sets these keys, by model name or by value.
    mark = "# " if extends else ""
    if parameters:
        yield f"{mark}parameters = {parameters:.0f}  # values reduced over all ranks in a step"
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


def _steps(columns: Sequence[Column]) -> Iterator[str]:
    """Yield the lines of a table: composition of a step, with one column for each size."""
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
    yield from aligned([*heads, *lines])


def _head(column: Column) -> tuple[str, str, str]:
    batch = "" if column.batch is None else f"batch {column.batch}"
    devices = f"{column.devices} devices" if column.devices > 1 else ""
    return "traced" if column.measured else "scaled", batch, devices


def _cell(value: float, step: float) -> str:
    if value <= _MIN_SHOWN:
        return "-" + " " * 7
    share = f"{value / step:>7.1%}" if step > 0.0 else " " * 7
    return f"{units.show(value, units.SECOND):>9}{share}"


def _operators(rows: Sequence[Row], shown: int) -> Iterator[str]:
    """Yield the lines of a table of the `shown` longest operators."""
    total = sum(row.time for row in rows)
    heads = ("operator", "what", "calls", "time", "share", "with the batch")
    cells = [
        (
            _cut(row.name),
            _NAMED.get(row.kind, ""),
            f"{row.calls:,.4g}",
            units.show(row.time, units.SECOND),
            f"{row.time / total:.1%}" if total else "",
            "grows" if row.grows else "fixed",
        )
        for row in rows[:shown]
    ]
    yield from aligned([heads, *cells])
    if len(rows) > shown:
        time = sum(row.time for row in rows[shown:])
        yield f"and {len(rows) - shown} more, {units.show(time, units.SECOND)} together"


def _cut(name: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in name)
    return plain if len(plain) <= _MAX_NAME_WIDTH else f"{plain[: _MAX_NAME_WIDTH - 3]}..."


_EMPTY: Final = units.parse("5 us", units.SECOND)
"""Maximum of the fixed time of a kernel; own choice."""
_MAX_REPLAY_ERROR: Final = 0.05
"""Relative error of a replay of the unmodified trace above which a warning is given."""


def _check(paths: Sequence[Path], request: Request) -> None:
    """Raise an `InputError` for options that contradict each other."""
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


def _traced(
    path: Path,
    batch: int | None,
    steps: int | None,
    progress: Callable[[float], None] | None = None,
) -> Traced:
    trace = read_trace(path, progress)
    of = window(trace, steps)
    names = Names.of_trace(trace, of, messages(trace))
    return Traced(
        batch=batch,
        trace=trace,
        of=of,
        names=names,
        rows=rows(trace, of, names),
        spent=composition(trace, of),
        replay=replay(trace, of, names),
    )


def _rules(
    base: Traced,
    batch: int | None,
    request: Request,
    fitted: Mapping[Key, tuple[Seconds, Seconds]],
) -> Rules:
    work = base.trace.of(Kind.KERNEL)
    shortest = min((e.duration for e in work if e.duration > 0.0), default=_EMPTY)
    return Rules(
        batch=base.batch,
        growth=batch / base.batch if batch and base.batch else 1.0,
        shortest=min(_EMPTY, shortest) if work else 0.0,
        names=base.names,
        wire=fit_wire(base.trace.of(Kind.COLLECTIVE), base.names.messages),
        members=base.members,
        ranks=_ranks(base, request.devices),
        network=request.network,
        per_machine=request.per_machine or base.members,
        lines=fitted,
        on_device=bool(work),
    )


def _ranks(base: Traced, devices: int | None) -> int:
    """Return the largest group size at the target, the same share of all devices as traced."""
    ranks = base.members * (devices or base.devices) / base.devices
    if ranks < 1.0 or ranks != int(ranks):
        message = f"don't divide into groups as the trace's {base.devices} do"
        hint = f"its largest group has {base.members} ranks"
        problem = Problem(origin="--gpus", message=message, found=str(devices), hint=hint)
        raise InputError((problem,))
    return int(ranks)


def _scaled(base: Traced, rules: Rules, request: Request) -> Column:
    if base.replay is not None:
        spent = base.replay.composition(rules.duration, rules.growth)
    else:
        spent = scaled(base.spent, base.rows, rules)
    return Column(
        batch=None if base.batch is None else round(base.batch * rules.growth),
        devices=request.devices or base.devices,
        spent=spent,
        measured=False,
    )


def _warnings(traced: Traced) -> Iterator[str]:
    yield from traced.trace.warnings
    yield from traced.of.warnings
    silent = sum(id(e) not in traced.names.messages for e in traced.trace.of(Kind.COLLECTIVE))
    if silent:
        yield f"{silent} collectives don't say what they moved"
    if traced.names.messages:
        yield "collectives last until the slowest peer is there: their time holds waiting too"
    if not traced.trace.of(*DEVICE):
        yield "no device in the trace: times are those of operators on the CPU"


def _replay_warnings(base: Traced) -> Iterator[str]:
    """Yield a warning if a replay of the unmodified trace has another step time (without waits)."""
    if base.replay is None:
        yield "the trace can't be replayed (launches, marks or a device are missing): parts scale"
        return
    again = base.replay.composition(lambda event: event.duration, 1.0).step
    known = base.spent.step - base.spent.data
    if abs(again / known - 1.0) > _MAX_REPLAY_ERROR:
        share = again / known - 1.0
        yield f"a replay of the trace as it is, without waits for data, comes out {share:+.0%}"
