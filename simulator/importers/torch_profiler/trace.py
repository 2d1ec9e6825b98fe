"""Traces of the PyTorch profiler: how a step is spent, by operator, here and at other sizes.

`kineto` reads the events, `trace_steps` finds whole steps and splits them, `trace_operators` and
`trace_messages` say what they consist of, `trace_scaling` and `trace_replay` what they become at
another batch size or number of devices. This door puts it together as sections of a scenario.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem
from simulator.importers.reading import changed
from simulator.importers.result import Fragment
from simulator.importers.torch_profiler.kineto import DEVICE, Kind, Trace, read_trace
from simulator.importers.torch_profiler.messages import (
    Message,
    Wire,
    fit_wire,
    gradient_values,
    messages,
)
from simulator.importers.torch_profiler.operators import Names, Row, rows
from simulator.importers.torch_profiler.replay import Replay, replay
from simulator.importers.torch_profiler.scaling import Key, Line, Rules, Target, lines, scaled
from simulator.importers.torch_profiler.steps import Composition, Window, composition, window
from simulator.importers.torch_profiler.text import Column, Result, fragment
from simulator.units import BytesPerSecond

_EMPTY: Final = units.parse("5 us", units.SECOND)
"""The most that a kernel is taken to need however little it does; own choice."""
_OFF: Final = 0.05
"""How far a replay of the trace as it is may be from its own time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is known beside the traces, and what is asked for.

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
    """Steps and operators of one or more traces, and what they become at other sizes.

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
        For files that are no such traces or broken, and options that don't fit them.
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
    """Options that contradict each other."""
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
    """The batches to scale to; the trace's own where only the number of devices changes."""
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
    """The trace whose batch is the nearest."""
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
    """Ranks of the target's largest group, which holds the same share of all devices."""
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
    """How well the trace replays as it is: the time without waiting for data."""
    if base.replay is None:
        yield "the trace can't be replayed (launches, marks or a device are missing): parts scale"
        return
    again = base.replay.composition(lambda event: event.duration, 1.0).step
    known = base.spent.step - base.spent.data
    if abs(again / known - 1.0) > _OFF:
        share = again / known - 1.0
        yield f"a replay of the trace as it is, without waits for data, comes out {share:+.0%}"
