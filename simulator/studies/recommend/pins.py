"""What the user wants kept at a value, and which candidates keep it so."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping

from simulator.schema.goal import Plain
from simulator.studies.recommend.baseline import MACHINE, STORE, Ground, Settings
from simulator.studies.recommend.machines import Machine, is_called

DEVICE = "hardware.gpu"
"""Pinned, this is the accelerator a machine comes with; it is never put into another machine."""
OF_MACHINE = frozenset({MACHINE, DEVICE})


def keeps(ground: Ground, machine: Machine, settings: Settings, key: str, value: Plain) -> bool:
    """Whether a candidate has a key at the pinned value."""
    if key == MACHINE:
        return fnmatch.fnmatch(machine.name, str(value))
    if key == DEVICE:
        return is_called(machine.gpu, str(value))
    own = settings.get(key, ground.reader.given(key))
    if key == STORE:
        return _short(own) == _short(value)
    return own == value or str(own) == str(value)


def _short(store: object) -> str:
    return str(store or "").removeprefix("storage/")


def keeps_all(
    ground: Ground, machine: Machine, settings: Settings, pins: Mapping[str, Plain]
) -> bool:
    """Whether a candidate has every pinned key at its value."""
    return all(keeps(ground, machine, settings, key, value) for key, value in pins.items())


def seeds_of(
    pins: Mapping[str, Plain], seeds: Iterable[Settings], base: Settings
) -> Iterator[Settings]:
    """Where a search begins: with all pins set, and with each of them left free.

    Pins of the machine choose among machines and are not set. `base` is what pins that the
    scenario states already leave out.
    """
    set_ones = {k: v for k, v in pins.items() if k not in OF_MACHINE and base.get(k) != v}
    for seed in seeds:
        yield {**seed, **set_ones}
        for free in set_ones:
            yield {**seed, **{k: v for k, v in set_ones.items() if k != free}}
