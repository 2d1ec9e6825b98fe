"""Traced steps as text: tables for people, sections for a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from simulator import units
from simulator.importers.result import Fragment
from simulator.importers.result import Kind as FragmentKind
from simulator.importers.torch_profiler.kineto import Kind
from simulator.importers.torch_profiler.operators import Growth, Row
from simulator.importers.torch_profiler.steps import Composition
from simulator.reading.hardware.profile_text import comment, quantity, quote

_NAMED: Final = {
    Kind.KERNEL: "kernel",
    Kind.COLLECTIVE: "collective",
    Kind.TO_DEVICE: "copy in",
    Kind.TO_HOST: "copy out",
    Kind.OPERATOR: "on the CPU",
}
_LONGEST: Final = 44
_SHOWN: Final = units.parse("1 ns", units.SECOND)
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
    """The result as sections of a scenario under its tables."""
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
    """The split of a step, a column for each."""
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
        if key == "step" or any(value > _SHOWN for value in values):
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
    if value <= _SHOWN:
        return "-" + " " * 7
    share = f"{value / step:>7.1%}" if step > 0.0 else " " * 7
    return f"{units.show(value, units.SECOND):>9}{share}"


def _operators(result: Result) -> Iterator[str]:
    """The longest operators of the first trace."""
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
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 3]}..."


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for first, *others in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"{first:<{widths[0]}}", *cells]).rstrip()
