"""Candidates of equal structure as one scenario whose differing numbers are arrays.

Closed forms take such a scenario as they take a plain one, and answer for all candidates at once.
Two scenarios have equal structure if they differ in nothing but the numbers of `ARRAYS`: those
that closed forms only calculate with. A number that something is counted by, or that decides
between two ways of calculating, belongs to the structure, as all words do. What figures do not
depend on (names, notes, sources, doubts) may differ; the batch shows the first candidate's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from simulator.hardware.cluster import Group
from simulator.hardware.gpu import Gpu
from simulator.hardware.host import CpuPool, Host, Network
from simulator.hardware.link import Link
from simulator.hardware.storage import Storage
from simulator.provenance import Source
from simulator.scenario import CostPlan, Job, Memory, Scenario
from simulator.uncertainty import Doubt
from simulator.workload.dataset import Dataset
from simulator.workload.loader import Loader, Preprocessing
from simulator.workload.parallelism import Parallelism, Schedule
from simulator.workload.train import Train

ARRAYS: Final[Mapping[type, frozenset[str]]] = {
    Train: frozenset({"batch_size", "accumulation", "epochs", "start_up", "shut_down"}),
    Loader: frozenset(
        {"workers", "prefetch", "receive_per_batch", "receive_per_sample"}
        | {"worker_start", "worker_memory"}
    ),
    Preprocessing: frozenset(
        {"decode", "augment", "collate", "per_batch", "output_bytes"}
        | {"device_time", "device_memory", "prepared_bytes"}
    ),
    Dataset: frozenset({"samples", "bytes_per_sample", "readers"}),
    Storage: frozenset(
        {"read_bandwidth", "achievable_read_bandwidth", "read_latency", "open_latency", "price"}
    ),
    Network: frozenset({"bandwidth", "storage_cap"}),
    CpuPool: frozenset({"cores", "threads", "smt_worth", "contention", "coremark"}),
    Host: frozenset({"ram", "memory_bandwidth"}),
    Gpu: frozenset({"memory"}),
    Group: frozenset({"price"}),
    CostPlan: frozenset({"price", "provisioning"}),
    Memory: frozenset({"operating_system", "application", "page_cache"}),
    Parallelism: frozenset({"tensor", "pipeline", "interleave", "context"}),
}
"""Numbers that closed forms take as arrays, by the type that holds them; None is a structure."""

IGNORED: Final[Mapping[type, frozenset[str]]] = {
    Scenario: frozenset({"name", "title", "notes", "doubts"}),
    CpuPool: frozenset({"model"}),
    Host: frozenset({"note"}),
    Gpu: frozenset({"note"}),
    Link: frozenset({"note"}),
    Storage: frozenset({"note"}),
}
"""What no figure depends on, beside sources."""

Key: TypeAlias = Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Candidates of equal structure: which ones (`indices`), and all of them as one scenario."""

    indices: tuple[int, ...]
    scenario: Scenario

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.indices)


def stack(scenarios: Sequence[Scenario], most: int | None = None) -> tuple[Batch, ...]:
    """Put scenarios of equal structure together.

    Parameters
    ----------
    scenarios : sequence of Scenario
        The candidates.
    most : int, optional
        Most candidates of a batch; by default any number.

    Returns
    -------
    tuple of Batch
        Every candidate stands in exactly one, in order.
    """
    found: dict[Key, list[int]] = {}
    keys = _Keys()
    for index, scenario in enumerate(scenarios):
        found.setdefault(keys.of_scenario(scenario, index), []).append(index)
    return tuple(
        Batch(indices=tuple(part), scenario=_together([scenarios[i] for i in part]))
        for indices in found.values()
        for part in _parts(indices, most or len(indices))
    )


def _parts(indices: Sequence[int], most: int) -> Iterable[Sequence[int]]:
    return (indices[start : start + most] for start in range(0, len(indices), most))


class _Keys:
    """Structures by number: equal numbers for equal structures.

    Objects that several scenarios share are looked at once.
    """

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._known: dict[int, tuple[object, Key]] = {}

    def of_scenario(self, scenario: Scenario, index: int) -> Key:
        """The structure of a scenario, with what its numbers decide."""
        job = scenario.job
        degrees = job.parallelism
        alone = index if degrees.schedule is not Schedule.ONE_FORWARD_ONE_BACKWARD else None
        decided = (scenario.ranks_per_host, scenario.ranks > 1, alone)
        return (self._of(scenario), decided)

    def _of(self, value: object) -> Key:
        kind = type(value)
        if kind in _PLAIN:
            return (kind, value)
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        key = self._number(kind, value)
        self._known[id(value)] = (value, key)
        return key

    def _number(self, kind: type, value: Any) -> Key:  # noqa: ANN401 - any part of a scenario
        key: Key
        if is_dataclass(kind):
            own = [self._of(getattr(value, name)) for name in _structural(kind)]
            bare = [getattr(value, name) is None for name in _arrays(kind)]
            key = (kind, *own, *bare, *_decided(value))
        elif isinstance(value, Mapping):
            key = (dict, *((name, self._of(entry)) for name, entry in value.items()))
        elif isinstance(value, tuple | list):
            key = (tuple, *(self._of(entry) for entry in value))
        else:
            return (kind, value)
        return self._numbers.setdefault(key, len(self._numbers))


_PLAIN: Final = frozenset({float, int, str, bool, type(None)})


def _decided(value: object) -> tuple[bool, ...]:
    """Questions that closed forms ask of a number, each with its answer."""
    match value:
        case Loader():
            return (value.workers > 0,)
        case Parallelism():
            return (value.pipeline > 1, value.splits_model)
        case Preprocessing():
            return (value.device_memory > 0.0, value.prepared_bytes > 0.0)
        case Job():
            return (value.train.accumulation > 1,)
        case _:
            return ()


@cache
def _arrays(kind: type[object]) -> tuple[str, ...]:
    return tuple(sorted(ARRAYS.get(kind, ())))


@cache
def _structural(kind: type) -> tuple[str, ...]:
    """Fields of a type that belong to the structure."""
    numbers, ignored = ARRAYS.get(kind, frozenset()), IGNORED.get(kind, frozenset())
    left_out = {"source", "sources"} | numbers | ignored
    if kind in {Source, Doubt}:
        return ()
    return tuple(field.name for field in fields(kind) if field.name not in left_out)


def _together(values: Sequence[Any]) -> Any:  # noqa: ANN401 - any part of a scenario
    """Values of equal structure as one, with arrays where numbers differ."""
    first = values[0]
    if all(value is first for value in values):
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
            known[name] = _together([getattr(value, name) for value in values])
    for name in _arrays(type(first)):
        each = [getattr(value, name) for value in values]
        if known[name] is not None and any(one != known[name] for one in each):
            known[name] = np.array(each, dtype=float)
    return kind(**known)
