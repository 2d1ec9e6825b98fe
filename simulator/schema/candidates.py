"""Candidates of equal structure combined into one scenario whose differing numbers are arrays.

Closed forms take such a scenario like any other and return results for all candidates at once. Two
scenarios have equal structure if they differ only in the numbers listed in `ARRAYS`, with which
closed forms only calculate. Text belongs to the structure, and so do numbers that count something
or choose between two ways of calculating. Fields that no result depends on (names, notes, sources,
uncertainties) may differ; the batch has those of its first candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np

from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.data_loading import Dataset, InputPipeline
from simulator.schema.machines import CpuPool, Group, Host, Link, Network
from simulator.schema.provenance import Source
from simulator.schema.scenario import CostPlan, Job, Memory, Scenario
from simulator.schema.storage import Storage
from simulator.schema.training import Parallelism, Schedule, Sharding, Train
from simulator.schema.uncertainty import UncertaintyComponent

ARRAYS: Final[Mapping[type, frozenset[str]]] = {
    Train: frozenset({"batch_size", "accumulation", "epochs", "start_up", "shut_down"}),
    InputPipeline: frozenset(
        {"workers", "prefetch", "receive_per_batch", "receive_per_sample"}
        | {"worker_start", "worker_memory"}
        | {"decode", "augment", "collate", "per_batch", "output_bytes_per_sample"}
        | {"device_time", "device_memory", "prepared_bytes_per_sample"}
    ),
    Dataset: frozenset({"samples", "bytes_per_sample", "readers"}),
    Storage: frozenset(
        {"read_bandwidth", "achievable_read_bandwidth", "read_latency", "open_latency", "price"}
    ),
    Network: frozenset({"bandwidth", "storage_cap"}),
    CpuPool: frozenset({"cores", "threads", "smt_worth", "contention", "coremark"}),
    Host: frozenset({"ram", "memory_bandwidth"}),
    Gpu: frozenset({"memory"}),
    Group: frozenset({"price", "count"}),
    CostPlan: frozenset({"price", "provisioning"}),
    Memory: frozenset({"operating_system", "application", "page_cache"}),
    Parallelism: frozenset({"tensor", "pipeline", "interleave", "context"}),
}
"""Numbers that closed forms accept as arrays, by the type that holds them. Whether such a number is
None belongs to the structure."""

IGNORED: Final[Mapping[type, frozenset[str]]] = {
    Scenario: frozenset({"name", "title", "notes", "uncertainties", "stated"}),
    InputPipeline: frozenset({"measured_on", "tensors_per_batch"}),
    CpuPool: frozenset({"model"}),
    Host: frozenset({"note"}),
    Gpu: frozenset({"note"}),
    Link: frozenset({"note"}),
    Storage: frozenset({"note"}),
}
"""Fields that no result depends on, in addition to sources."""

Key: TypeAlias = Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Candidates of equal structure: their `indices`, and all of them as one `scenario`."""

    indices: tuple[int, ...]
    scenario: Scenario

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.indices)


def stack(scenarios: Sequence[Scenario], most: int | None = None) -> tuple[Batch, ...]:
    """Group scenarios of equal structure into batches.

    Parameters
    ----------
    scenarios : sequence of Scenario
        The candidates.
    most : int, optional
        Largest number of candidates in a batch; no limit by default.

    Returns
    -------
    tuple of Batch
        Each candidate is in exactly one batch, in the order of `scenarios`.
    """
    found: dict[Key, list[int]] = {}
    _keys.make_room()
    for index, scenario in enumerate(scenarios):
        found.setdefault(_keys.of_scenario(scenario, index), []).append(index)
    return tuple(
        Batch(indices=tuple(part), scenario=_together([scenarios[i] for i in part]))
        for indices in found.values()
        for part in _parts(indices, most or len(indices))
    )


def _parts(indices: Sequence[int], most: int) -> Iterable[Sequence[int]]:
    return (indices[start : start + most] for start in range(0, len(indices), most))


class _Keys:
    """Cache of structure keys: objects of equal structure get the same key.

    An object that several scenarios share is examined once. Scenarios that are stacked again (first
    for the variability of their samples, then for their bounds) are found in the cache.
    """

    def __init__(self) -> None:
        self._known: dict[Key, object] = {}
        self._seen: dict[int, tuple[object, Key]] = {}

    def make_room(self) -> None:
        """Clear the cache if it holds more than `_MOST_SEEN` objects."""
        if len(self._seen) > _MOST_SEEN:
            self._known.clear()
            self._seen.clear()

    def of_scenario(self, scenario: Scenario, index: int) -> Key:
        """Return the key of a scenario's structure, with the choices that its numbers make."""
        schedule = scenario.job.parallelism.schedule
        alone = index if schedule is not Schedule.ONE_FORWARD_ONE_BACKWARD else None
        facts = scenario.ranks_per_host, scenario.ranks > 1, alone
        return (self._of(scenario), *facts, *_machines(scenario))

    def _of(self, value: Any) -> Key:  # noqa: ANN401 - any part of a scenario
        seen = self._seen.get(id(value))
        if seen is not None and seen[0] is value:
            return seen[1]
        key = self._number(value)
        self._seen[id(value)] = (value, key)
        return key

    def _number(self, value: Any) -> Key:  # noqa: ANN401 - any part of a scenario
        kind: Any = type(value)
        parts = _parts_of(kind)
        key: Key
        if parts is not None:
            bare = tuple([number is None for number in parts.numbers(value)])
            key = (kind, self._all(parts.structure(value)), bare, *_decided(value))
        elif isinstance(value, Mapping):
            key = (dict, tuple(value), self._all(value.values()))
        elif isinstance(value, tuple | list):
            key = (tuple, self._all(value))
        else:
            return (value,)
        return self._known.setdefault(key, object())

    def _all(self, values: Iterable[Any]) -> tuple[Key, ...]:
        of = self._of
        return tuple([value if type(value) in _PLAIN else of(value) for value in values])


def _machines(scenario: Scenario) -> tuple[int, ...]:
    """Return the number of machines of each group, as far as the structure depends on it.

    For trainers only one or several machines differ, unless the model or its state is spread over
    machines, the optimizer is offloaded, or collectives were measured on some numbers of machines.
    Machines that only prepare batches are laid out one by one.
    """
    trainers = scenario.cluster.trainers
    network = trainers.host.network
    link = None if network is None else network.link
    measured = link is not None and any(curve.machines > 1 for curve in link.collective)
    degrees = scenario.job.parallelism
    spread = degrees.splits_model or degrees.sharding is not Sharding.NONE
    each = measured or spread or degrees.offload_optimizer
    return tuple(
        min(group.count, 2) if group is trainers and not each else group.count
        for group in scenario.cluster.groups
    )


_MOST_SEEN: Final = 100_000
"""Number of objects from which on the cached structures are discarded."""
_keys: Final = _Keys()
_PLAIN: Final = frozenset({float, int, str, bool, type(None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Getters of the two parts of a dataclass: its structure and the numbers that may be arrays."""

    structure: Callable[[Any], tuple[Any, ...]]
    numbers: Callable[[Any], tuple[Any, ...]]


@cache
def _parts_of(kind: Hashable) -> _Parts | None:
    """Return the getters for a type; None if it is not a dataclass."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return None
    return _Parts(structure=_taking(_structural(kind)), numbers=_taking(_arrays(kind)))


def _taking(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a getter of several fields that always returns a tuple, for one field or none too."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _decided(value: object) -> tuple[bool, ...]:
    """Return the choices that closed forms make from the numbers of `value`."""
    match value:
        case InputPipeline():
            prepared = value.prepared_bytes_per_sample > 0.0
            return (value.workers > 0, value.device_memory > 0.0, prepared)
        case Parallelism():
            return (value.pipeline > 1, value.splits_model)
        case Job():
            return (value.train.accumulation > 1,)
        case _:
            return ()


def _arrays(kind: type) -> tuple[str, ...]:
    return tuple(sorted(ARRAYS.get(kind, ())))


def _structural(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a type that belong to the structure."""
    numbers, ignored = ARRAYS.get(kind, frozenset()), IGNORED.get(kind, frozenset())
    left_out = {"source", "sources"} | numbers | ignored
    if kind in {Source, UncertaintyComponent}:
        return ()
    return tuple(field.name for field in fields(kind) if field.name not in left_out)


def _together(values: Sequence[Any]) -> Any:  # noqa: ANN401 - any part of a scenario
    """Merge values of equal structure into one, with arrays where numbers differ."""
    first = values[0]
    if len(set(map(id, values))) == 1:
        return first
    kind = type(first)
    if is_dataclass(kind):
        return _merged(kind, values)
    if isinstance(first, Mapping):
        return {name: _together([value[name] for value in values]) for name in first}
    if isinstance(first, tuple | list):
        return tuple(_together(entries) for entries in zip(*values, strict=True))
    return first


def _merged(kind: Callable[..., Any], values: Sequence[Any]) -> Any:  # noqa: ANN401 - any dataclass
    first = values[0]
    known = {field.name: getattr(first, field.name) for field in fields(first)}
    for name in _structural(type(first)):
        if type(known[name]) not in _PLAIN:
            known[name] = _together(list(map(attrgetter(name), values)))
    for name in _arrays(type(first)):
        each = list(map(attrgetter(name), values))
        if known[name] is not None and each.count(known[name]) < len(each):
            known[name] = np.array(each, dtype=float)
    return kind(**known)
