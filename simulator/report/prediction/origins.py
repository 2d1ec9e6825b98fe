"""Origins of the inputs of an equation: the values of a scenario with their sources."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import Final

from simulator.records import dataclass
from simulator.report.profile_figures import units_of
from simulator.results.metrics import Metric
from simulator.results.prediction import Prediction
from simulator.schema.provenance import Assumption, Part, Source
from simulator.schema.scenario import Scenario
from simulator.units import Unit

_DEPTH = 8
"""Maximum nesting depth of a scenario."""
_LEFT_OUT = re.compile(r"\((\S+) not given\)$")
"""Pattern of the key of a default, at the end of its note."""
_SAYS_NOTHING = frozenset(
    {"per", "the", "of", "amount", "factor", "one", "other", "share", "value"}
)
"""Common words in names of inputs, which don't identify a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A value of a scenario: dotted `path`, name of its `owner`, value, unit and source."""

    path: str
    owner: str
    value: float
    unit: Unit | None = None
    source: Source | None = None

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rsplit(".", maxsplit=1)[-1]


def origins(scenario: Scenario) -> tuple[Origin, ...]:
    """Return all numbers of a scenario with their sources, including the sources of defaults."""
    assumed = {
        left_out[1]: note.source
        for note in scenario.notes
        if (left_out := _LEFT_OUT.search(note.what))
    }
    return tuple(
        replace(one, source=one.source or assumed.get(one.path.removeprefix("jobs.")))
        for one in _figures(scenario, "", scenario.name, {}, _DEPTH)
    )


def find(known: tuple[Origin, ...], label: str, value: float) -> Origin | None:
    """Return the value that an input was taken from; None if there is none.

    It has the same value, and its name shares a word with the label.

    Parameters
    ----------
    known : tuple of Origin
        Result of `origins`.
    label : str
        Name of the input, with or without a unit in brackets.
    value : float
        Value of the input.
    """
    wanted = _words(label)
    same = [o for o in known if math.isclose(o.value, value, rel_tol=1e-12) and value != 0.0]
    exact = [o for o in same if wanted and _words(o.name) == wanted]
    near = [o for o in same if _words(o.name) & wanted]
    found = exact or near
    return next((o for o in found if o.source is not None), found[0] if found else None)


def _words(label: str) -> frozenset[str]:
    bare = re.sub(r"\[.*?\]", "", label).lower()
    return frozenset(re.findall(r"[a-z0-9]+", bare)) - _SAYS_NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Unit and source of a field, and the sources of its nested fields."""

    unit: Unit | None = None
    source: Source | None = None
    within: Mapping[str, Source] = field(default_factory=dict)

    def item(self, key: object) -> _Known:
        """Return the unit and source of an item of a mapping, which may have its own source."""
        return _Known(unit=self.unit, source=self.within.get(str(key), self.source))


def _figures(
    thing: object, path: str, owner: str, outer: Mapping[str, Source], depth: int
) -> Iterator[Origin]:
    if depth == 0 or not is_dataclass(thing) or isinstance(thing, type | Source):
        return
    owner = getattr(thing, "name", "") or owner
    sources: Mapping[str, Source] = {**outer, **getattr(thing, "sources", {})}
    units = units_of(type(thing))
    for part in fields(thing):
        if part.name in {"sources", "curves"}:  # points of a curve are not inputs of their own
            continue
        inner = f"{path}.{part.name}" if path else part.name
        lead = f"{part.name}."
        known = _Known(
            unit=units.get(part.name),
            source=sources.get(part.name),
            within={k.removeprefix(lead): s for k, s in sources.items() if k.startswith(lead)},
        )
        yield from _leaves(getattr(thing, part.name), inner, owner, known, depth)


def _leaves(value: object, path: str, owner: str, known: _Known, depth: int) -> Iterator[Origin]:
    if isinstance(value, bool | str):
        return
    if isinstance(value, int | float):
        yield Origin(
            path=path, owner=owner, value=float(value), unit=known.unit, source=known.source
        )
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}", owner, known.item(key), depth)
    elif isinstance(value, tuple):
        for item in value:
            yield from _leaves(item, path, owner, known, depth)
    else:
        yield from _figures(value, path, owner, known.within, depth - 1)


SHOWS: Final = 1e-3
"""Share of a step from which the step depends on a part."""

_ENTRIES: Final = {
    "data_stall": (Part.INPUT,),
    "h2d": (Part.COPY, Part.INPUT),
    "compute": (Part.DEVICE,),
    "communication": (Part.EXCHANGE,),
    "bubble": (Part.DEVICE, Part.EXCHANGE),
    "checkpoint": (Part.CHECKPOINT,),
    "other": (Part.DEVICE, Part.EXCHANGE),
}
"""Parts of a prediction that each exposed part of the step depends on."""

_OF_STEP: Final = ("step_time_s", "throughput", "mfu", "hfu", "flops", "tokens")
"""Starts of the names of metrics that depend only on the mean step."""
_MEMORY: Final = {
    "host_ram": frozenset({Part.HOST_RAM}),
    "gpu_memory": frozenset({Part.GPU_MEMORY}),
    "fits": frozenset({Part.HOST_RAM, Part.GPU_MEMORY}),
}
_BILL: Final = ("cost", "energy", "samples_per_usd")
_OF_MEMORY: Final = frozenset({Part.HOST_RAM, Part.GPU_MEMORY})


def resting(prediction: Prediction, metrics: Sequence[Metric]) -> tuple[Assumption, ...]:
    """Return the assumptions that affect at least one of the metrics, in order."""
    parts = frozenset[Part]().union(*(_parts(prediction, metric.name) for metric in metrics))
    return tuple(one for one in prediction.assumptions if not one.bears_on or one.bears_on & parts)


def _parts(prediction: Prediction, name: str) -> frozenset[Part]:
    """Return the parts of a prediction that a metric depends on."""
    for start, parts in _MEMORY.items():
        if name.startswith(start):
            return parts
    if name.startswith(_OF_STEP):
        return _exposed(prediction)
    beside = _OF_MEMORY if name.startswith(_BILL) else _OF_MEMORY | {Part.BILL}
    return frozenset(Part) - beside


def _exposed(prediction: Prediction) -> frozenset[Part]:
    """Return the parts of a prediction that the mean step depends on, without hidden work."""
    split, step = prediction.timing.split, prediction.timing.step_time.mean
    return frozenset(
        part
        for entry, parts in _ENTRIES.items()
        if getattr(split, entry) > SHOWS * step
        for part in parts
    )
