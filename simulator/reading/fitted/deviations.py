"""The data behind intervals: how far rates may be off by evidence, and what measured runs cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Final, TypeAlias

from simulator.reading.convert.model_sections import SourcedTable
from simulator.reading.document import check, read_document
from simulator.reading.shipped import DATA
from simulator.results.envelope import Apart, Envelope, Measured, Span
from simulator.schema.fields import (
    Choice,
    NumberField,
    NumberOrZeroField,
    TextField,
    TimeOrZeroField,
)
from simulator.uncertainty.components import Axis, Grade, Rate, Reach
from simulator.uncertainty.provenance import Source

_DATA: Final = DATA

RateField: TypeAlias = Annotated[Rate, Choice(Rate)]
AxisField: TypeAlias = Annotated[Axis, Choice(Axis)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtTable(SourcedTable):
    """How far a rate may be off, given what stands behind its figure."""

    rate: RateField
    """Which rate."""
    grade: Annotated[Grade, Choice(Grade)]
    """What stands behind the figure."""
    log_sd: NumberOrZeroField
    """Standard deviation of the rate's logarithm."""
    seconds: TimeOrZeroField = 0.0
    """Deviation of a step beside it that does not grow with the step."""
    per_doubling: dict[AxisField, NumberOrZeroField] = field(default_factory=dict)
    """What each doubling beyond what was measured adds, by axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTable(SourcedTable):
    """How much less is known of a rate outside of all that was measured."""

    kind: AxisField
    """The axis along which it is outside."""
    rate: RateField
    """The rate that is known less well."""
    log_sd: NumberOrZeroField
    """Log deviation that each doubling along the axis adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartTable(SourcedTable):
    """How much less is known of what differs from measured runs in one respect."""

    kind: TextField
    """What differs: a name, or a place along an axis."""
    log_sd: NumberOrZeroField
    """Log deviation that is added: once for a name, for each doubling along an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTable(SourcedTable):
    """How far the memory of an accelerator may be off."""

    kind: TextField
    """Of what: all, or what differs from measured runs."""
    log_sd: NumberOrZeroField
    """Standard deviation of its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyFile:
    """Deviations by evidence."""

    doubt: list[DoubtTable]
    """Inside of what was measured."""
    outside: list[OutsideTable]
    """Outside of it."""
    apart: list[ApartTable]
    """Where the device's time is computed: away from the runs that are most like it."""
    memory: list[MemoryTable]
    """Of the memory of an accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """Runs of one kind and series that were measured."""

    series: TextField
    """Their series."""
    names: dict[str, TextField]
    """What they have in common, by kind."""
    spans: dict[AxisField, list[NumberField]]
    """Least and largest value by axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTable:
    """A range that was measured."""

    axis: AxisField
    """What ranges."""
    low: NumberField
    """Least measured value."""
    high: NumberField
    """Largest measured value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFile:
    """What all measured runs together cover."""

    source: TextField
    """The sets it was made from."""
    date: TextField
    """When."""
    measured: list[MeasuredTable] = field(default_factory=list)
    """Runs whose device time a prediction computes."""
    span: list[SpanTable] = field(default_factory=list)
    """Ranges."""


@cache
def _deviations() -> UncertaintyFile:
    return check(UncertaintyFile, read_document(_DATA / "uncertainty.toml"))


@cache
def shipped_envelope() -> Envelope:
    """What the shipped measurement sets and step times cover."""
    file = check(EnvelopeFile, read_document(_DATA / "envelope.toml"))
    tables = {table.kind: table for table in _deviations().outside}
    made = Source(reference=file.source, date=file.date)
    measured = tuple(
        Measured(
            series=one.series,
            names=one.names,
            spans={axis: (ends[0], ends[-1]) for axis, ends in one.spans.items()},
        )
        for one in file.measured
    )
    spans = tuple(
        Span(
            reach=Reach(
                axis=one.axis, low=one.low, high=one.high, per_doubling=tables[one.axis].log_sd
            ),
            rate=tables[one.axis].rate,
            source=made,
        )
        for one in file.span
    )
    apart = {one.kind: Apart(log_sd=one.log_sd, source=one.origin) for one in _deviations().apart}
    return Envelope(measured=measured, apart=apart, spans=spans)


MEMORY: Final = "as a whole"
UNLIKE: Final = "unlike measured runs"


@cache
def memory_deviations() -> Mapping[str, float]:
    """Log deviations of an accelerator's memory: `MEMORY`, and what it adds to be `UNLIKE`."""
    return {one.kind: one.log_sd for one in _deviations().memory}


@cache
def graded(rate: Rate, grade: Grade) -> DoubtTable:
    """How far a rate may be off at a grade of evidence.

    Raises
    ------
    KeyError
        If there is no figure for it, which is a bug.
    """
    tables = {(table.rate, table.grade): table for table in _deviations().doubt}
    return tables[rate, grade]
