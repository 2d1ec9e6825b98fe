"""Envelope of the evidence: the range of measured runs, and the distance of a scenario from it.

Only inputs of the prediction count: if the step time was measured on the device, neither the
accelerator nor the precision matters. If the device time is computed, a scenario is compared with
each kind of run that was measured as a whole: a combination that was not measured is outside, even
if each part of it was measured with others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Final, TypeAlias

from simulator.equations.uncertainty import doublings_outside
from simulator.physics.device_time import Evidence, evidence_of, uses_fitted_kernels
from simulator.physics.transformer import of_tokens
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
from simulator.schema.data_loading import LoaderKind
from simulator.schema.fields import (
    Choice,
    Citation,
    Length,
    NumberField,
    NumberOrZeroField,
    TextField,
)
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.schema.transformers import Transformer
from simulator.schema.uncertainty import Axis, Rate, Reach, UncertaintyComponent, stretched
from simulator.units import show_count

PATH: Final = "way of timing"
OPERATORS: Final = "operator by operator"
MODE: Final = "mode"
GPU: Final = "accelerator"
ARCHITECTURE: Final = "architecture"
PRECISION: Final = "precision"
FRAMEWORK: Final = "framework"
FAMILY: Final = "model family"
SHARDING: Final = "sharding"
TRAINED: Final = "trainable parameters"
NAMED: Final = (PATH, MODE, FRAMEWORK, ARCHITECTURE, GPU, FAMILY, SHARDING, PRECISION)
"""Categorical features of a run; along an `Axis` the distance is a number of doublings."""
PLACED: Final = (
    *(Axis.RANKS, Axis.PARAMETERS, Axis.BATCH, Axis.TOKENS, Axis.SEQUENCE),
    *(Axis.TENSOR, Axis.PIPELINE),
)
"""Axes along which a run is compared with measured runs of the same kind."""

SCALE: Final = frozenset({Axis.MACHINES, Axis.RANKS, Axis.EXCHANGING})
"""Axes along which another resource may become the bottleneck."""
_FAMILIES: Final = {
    "ConvNet": "convolutional network",
    "CustomModel": "model given by its figures",
    "Dlrm": "recommender",
    "EncoderDecoder": "encoder and decoder",
}
"""Names of models other than a plain stack of transformer layers."""
_UNSAID: Final = {TRAINED: "all parameters"}
"""Values of measured runs for features that they do not state."""
_SIXTEEN: Final = (Precision.BF16, Precision.FP16)
_TOLD: Final = 0.01
"""Minimum log deviation of a difference that a warning lists."""
_WARNED: Final = 0.05
"""Log deviation of all differences together above which a warning is given."""
_SHOWN: Final = 4
"""Maximum number of measured values of a feature that a warning lists."""

AxisField: TypeAlias = Annotated[Axis, Choice(Axis)]
SpanField: TypeAlias = Annotated[tuple[NumberField, ...], Length(2, 2)]
Names: TypeAlias = Mapping[str, str]
Place: TypeAlias = Mapping[Axis, float]
Differences: TypeAlias = Mapping[str, float]
"""Log deviation that each difference from a measured run adds, by kind or axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A series of measured runs with the same categorical features."""

    series: TextField
    """Name of the series."""
    names: Mapping[str, TextField]
    """Categorical features that the runs have in common."""
    spans: Mapping[AxisField, SpanField]
    """Smallest and largest value by axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart(Citation):
    """Uncertainty added by a difference from measured runs in one feature or axis."""

    kind: TextField
    """Categorical feature or axis that differs."""
    log_sd: NumberOrZeroField
    """Log standard deviation added: once for a feature, per doubling along an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A measured range, and the uncertainty added to a rate outside of it."""

    reach: Reach
    rate: Rate
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Range of configurations covered by measurements.

    `measured` are runs that computed device times are compared with, `apart` is the uncertainty
    that each difference from them adds, by feature or axis. `spans` are ranges over all runs.
    """

    measured: tuple[Measured, ...] = ()
    apart: Mapping[str, Apart] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()

    def without(self, series: Sequence[str]) -> Envelope:
        """Return the envelope without the measured runs of these series."""
        return replace(
            self, measured=tuple(one for one in self.measured if one.series not in series)
        )

    def has(self, kind: str, name: str) -> bool:
        """Return whether any measured run has the value `name` of the feature `kind`."""
        return any(one.names.get(kind) == name for one in self.measured)


def outside(
    scenario: Scenario, envelope: Envelope, widest: float = 0.0
) -> tuple[UncertaintyComponent, ...]:
    """Return an uncertainty with a warning for each difference of a scenario from the envelope.

    Parameters
    ----------
    scenario, envelope : Scenario, Envelope
        Scenario to predict, and range of the measurements.
    widest : float
        Largest log deviation among the rates of the scenario. On more devices than were
        measured, that rate may be the bottleneck even if the model predicts another one.
    """
    return (*_unlike(scenario, envelope), *_beyond(scenario, envelope.spans, widest))


def nearest(names: Names, place: Place, envelope: Envelope) -> tuple[Measured | None, Differences]:
    """Return the nearest measured runs, and the uncertainty of each difference from them.

    Without comparable measured runs, return None and count every feature as different.
    """
    known = {kind: one.log_sd for kind, one in envelope.apart.items() if kind in names}
    found: tuple[Measured | None, Differences] = None, known
    least = math.inf
    for one in envelope.measured:
        if not comparable(names, one):
            continue
        own = dict(_differences(names, place, one, envelope.apart))
        size = sum(value * value for value in own.values())
        if size < least:
            found, least = (one, own), size
    return found


def comparable(names: Names, one: Measured) -> bool:
    """Return whether one method predicts the compute time of a measured run and of a scenario.

    The methods are fitted kernels and operators; `names` are those of the scenario.
    """
    paths = (names.get(PATH), one.names.get(PATH))
    return paths[0] == paths[1] or OPERATORS not in paths


def distance(differences: Differences) -> float:
    """Return the log standard deviation of all differences combined."""
    return math.hypot(*differences.values())


def _differences(
    names: Names, place: Place, one: Measured, apart: Mapping[str, Apart]
) -> Iterator[tuple[str, float]]:
    for kind, name in names.items():
        if one.names.get(kind, _UNSAID.get(kind, name)) != name:
            yield kind, apart[kind].log_sd
    for axis, (low, high) in one.spans.items():
        value = place.get(axis, low)
        if not low <= value <= high:
            yield axis, float(doublings_outside(value, low, high)) * apart[axis].log_sd


def _unlike(scenario: Scenario, envelope: Envelope) -> Iterator[UncertaintyComponent]:
    """Yield the uncertainty of the distance from the nearest measured runs, if it is not zero."""
    names = named(scenario)
    if not names:
        return
    place = compared(scenario)
    one, differences = nearest(names, place, envelope)
    wide = distance(differences)
    if wide > 0.0:
        source = next(envelope.apart[kind].cited for kind in differences)
        yield UncertaintyComponent(
            name="distance from measured runs",
            rate=Rate.STEP if uses_fitted_kernels(scenario) else Rate.DEVICE,
            log_sd=wide,
            source=source,
            outside=True,
            warning=_told(names, place, one, differences, envelope),
        )


def _told(
    names: Names,
    place: Place,
    one: Measured | None,
    differences: Differences,
    envelope: Envelope,
) -> str:
    """Return a warning that lists the differences; empty if they are small."""
    new = any(not envelope.has(kind, names[kind]) for kind in differences if kind in names)
    if distance(differences) < _WARNED and not new:
        return ""
    spans = {} if one is None else {str(axis): ends for axis, ends in one.spans.items()}
    at = {str(axis): value for axis, value in place.items()}
    told = []
    for kind, wide in sorted(differences.items(), key=lambda item: -item[1]):
        if wide < _TOLD:
            continue
        if kind in names:
            told.append(f"{kind} {names[kind]} ({_others(kind, names[kind], one, envelope)})")
        else:
            ends = " to ".join(show_count(end) for end in dict.fromkeys(spans[kind]))
            told.append(f"{kind} {show_count(at[kind])} (measured: {ends})")
    like = "" if one is None else f"; nearest runs: {one.series}"
    return f"outside the evidence: {', '.join(told)}{like}"


def _others(kind: str, name: str, one: Measured | None, envelope: Envelope) -> str:
    """Return the measured values of the feature `kind` as a text."""
    if one is not None and envelope.has(kind, name):
        return f"measured like this: {one.names[kind]}"
    known = sorted({each.names[kind] for each in envelope.measured if kind in each.names})
    known = known or [_UNSAID.get(kind, "none")]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"measured: {', '.join(known[:_SHOWN])}{more}"


def _beyond(
    scenario: Scenario, spans: Sequence[Span], widest: float
) -> Iterator[UncertaintyComponent]:
    place = placed(scenario)
    for span in spans:
        reach, rate = span.reach, span.rate
        value = place.get(reach.axis)
        if value is not None and not reach.low <= value <= reach.high:
            far = stretched(0.0, (reach,), place)
            yield UncertaintyComponent(
                name=f"{reach.axis} outside the evidence",
                rate=rate,
                log_sd=far,
                least=widest + far if reach.axis in SCALE and value > reach.high else 0.0,
                source=span.source,
                outside=True,
                warning=(
                    f"outside the evidence: {reach.axis} {show_count(value)} "
                    f"(measured: {show_count(reach.low)} to {show_count(reach.high)})"
                ),
            )


def named(scenario: Scenario) -> Names:
    """Return the categorical features that the computed device time depends on."""
    gpu, job = scenario.cluster.trainers.host.gpu, scenario.job
    if gpu is None or not is_computed(scenario):
        return {}
    precision = job.train.precision
    names = {
        PATH: _path(scenario),
        MODE: str(job.mode),
        FRAMEWORK: job.software.framework.lower(),
        ARCHITECTURE: gpu.architecture,
        GPU: gpu.name,
        PRECISION: "bf16 or fp16" if precision in _SIXTEEN else str(precision),
    }
    if job.model is not None:
        names[FAMILY] = _family(job.model)
    if uses_fitted_kernels(scenario):
        names[SHARDING] = str(job.parallelism.sharding) if scenario.ranks > 1 else "none"
    if job.train.freezes:
        names[TRAINED] = "head" if job.train.head_only else "adapters"
    return names


def _path(scenario: Scenario) -> str:
    if not uses_fitted_kernels(scenario):
        return OPERATORS
    profiled = scenario.job.software.profiled_kernels
    return "profiled kernels" if profiled else "fitted kernels"


def _family(model: object) -> str:
    if not isinstance(model, Transformer):
        name = type(model).__name__
        return _FAMILIES.get(name, name)
    if model.experts is not None:
        return "mixture of experts"
    if not of_tokens(model):
        return "vision transformer"
    return "decoder" if model.causal else "encoder"


def compared(scenario: Scenario) -> Place:
    """Return the coordinates of a scenario along the axes that distinguish measured runs."""
    job = scenario.job
    batch, model = float(job.train.batch_size), job.model
    place = {Axis.BATCH: batch}
    if isinstance(model, Transformer):
        place = {Axis.TOKENS: batch * model.sequence, Axis.SEQUENCE: float(model.sequence)}
    if model is not None:
        place[Axis.PARAMETERS] = float(model.parameters)
    if uses_fitted_kernels(scenario):
        place[Axis.RANKS] = float(scenario.ranks)
        place[Axis.TENSOR] = float(job.parallelism.tensor)
        place[Axis.PIPELINE] = float(job.parallelism.pipeline)
    return place


def placed(scenario: Scenario) -> Place:
    """Return the coordinates of a scenario along the axes that its step time depends on."""
    job, place = scenario.job, dict[Axis, float]()
    if scenario.cluster.trainers.count > 1:
        place[Axis.MACHINES] = float(scenario.cluster.trainers.count)
    if job.mode is Mode.TRAIN and scenario.ranks > 1:
        place[Axis.RANKS] = float(scenario.ranks)
        if job.model is not None:
            place[Axis.EXCHANGING] = float(scenario.ranks)
    if job.input.workers > 0 and job.input.loader is not LoaderKind.ACTORS:
        place[Axis.WORKERS] = float(job.input.workers)
    if is_computed(scenario):
        place[Axis.BATCH] = float(job.train.batch_size)
        if job.model is not None:
            place[Axis.PARAMETERS] = float(job.model.parameters)
        if job.parallelism.tensor > 1:
            place[Axis.TENSOR] = float(job.parallelism.tensor)
        if job.parallelism.pipeline > 1:
            place[Axis.PIPELINE] = float(job.parallelism.pipeline)
    return place


def is_computed(scenario: Scenario) -> bool:
    """Return whether the device time is computed from a model instead of a measured step."""
    return (
        evidence_of(scenario) is not Evidence.NONE
        and evidence_of(scenario) is not Evidence.MEASURED
    )
