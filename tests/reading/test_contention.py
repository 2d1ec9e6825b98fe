"""`contention` says how busy cores slow one another down, not that all do less than one."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario

HELPED = "remote-workers-mnist"


def load(*overrides: str) -> Scenario:
    """A shipped scenario with a machine of four cores and helpers, changed."""
    return load_scenario(HELPED, overrides=overrides)


@pytest.mark.parametrize(
    ("overrides", "most"),
    [
        (("hardware.contention=4.5",), "4"),
        (("hardware.contention=2.5", "hardware.cores=2.0"), "2"),
        (("hardware.contention=2.5", "hardware.vcpus=4.0"), "2"),
        (("remote.contention=20",), "18"),
    ],
)
def test_more_contention_than_cores_is_refused(overrides: tuple[str, ...], most: str) -> None:
    """All cores together would do less than one of them: no bound would hold."""
    with pytest.raises(InputError, match=rf"at most the number of cores, {most}"):
        load(*overrides)


def test_as_much_contention_as_leaves_one_core_is_sound() -> None:
    """All cores together do exactly what one does alone."""
    cpu = load("hardware.contention=4").cluster.trainers.host.cpu
    assert cpu.capacity_for(cpu.cores) == pytest.approx(1.0)
