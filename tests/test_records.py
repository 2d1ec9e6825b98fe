"""The quick frozen dataclass behaves as the standard one."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace

import pytest

from simulator.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A record with a default, a default factory and a field without part in equality."""

    rate: float
    name: str = "disk"
    notes: list[str] = field(default_factory=list, hash=False)
    cache: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive(Disk):
    """A record that inherits fields and checks them."""

    size: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a size below zero."""
        if self.size < 0:
            raise ValueError(self.size)


@dataclass(frozen=True, slots=True)
class Pair:
    """A record with positional fields, one of which may be left out."""

    first: float
    second: float = 2.0


@dataclass(frozen=True)
class Empty:
    """A record without fields."""


@dataclass(frozen=True, eq=False)
class Identity:
    """A record that equals itself alone."""

    value: int = 0


@dataclass(slots=True)
class Counter:
    """A record that may change."""

    count: int = 0


def test_defaults_are_those_of_the_standard_library() -> None:
    """A default factory runs for each instance, `init=False` takes no argument."""
    one, other = Disk(rate=5.0), Disk(rate=5.0)
    assert (one.name, one.notes, one.cache) == ("disk", [], {})
    assert one.notes is not other.notes
    assert Pair(1.0) == Pair(1.0, second=2.0)
    with pytest.raises(TypeError, match="cache"):
        Disk(rate=5.0, cache={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="rate"):
        Disk()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Disk(5.0)  # type: ignore[misc]


def test_records_are_compared_and_hashed_by_their_fields() -> None:
    """`compare=False` and `hash=False` leave a field out; classes differ."""
    one, other = Disk(rate=5.0), Disk(rate=5.0, notes=["fast"])
    one.cache["read"] = 1
    assert one == Disk(rate=5.0)
    assert one != other
    assert hash(one) == hash(other)
    assert Drive(rate=5.0) != Disk(rate=5.0)
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert Identity() != Identity()
    nan = math.nan
    assert Pair(nan) == Pair(nan)  # one object, as in tuples


def test_records_are_frozen() -> None:
    """No field of a frozen record can be set or deleted; others can."""
    disk = Disk(rate=5.0)
    with pytest.raises(FrozenInstanceError):
        disk.rate = 6.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del disk.rate  # type: ignore[misc]
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)


def test_records_are_copied_pickled_and_replaced() -> None:
    """A copy equals the record; `replace` runs the checks of the class."""
    drive = Drive(rate=5.0, size=3.0, notes=["fast"])
    assert copy.copy(drive) == copy.deepcopy(drive) == pickle.loads(pickle.dumps(drive)) == drive  # noqa: S301
    assert replace(drive, size=4.0).size == 4.0
    with pytest.raises(ValueError, match="-1"):
        replace(drive, size=-1.0)


def test_records_are_dataclasses() -> None:
    """Fields, `asdict` and the printed form are those of the standard library."""

    @dataclasses.dataclass(frozen=True)
    class Standard:
        first: float
        second: float = 2.0

    assert is_dataclass(Pair)
    assert [f.name for f in fields(Pair)] == [f.name for f in fields(Standard)]
    assert asdict(Pair(1.0)) == asdict(Standard(1.0))
    assert repr(Pair(1.0)) == "Pair(first=1.0, second=2.0)"
    assert repr(Disk(rate=5.0)) == "Disk(rate=5.0, name='disk', notes=[])"
