"""Scenarios that can be read with some keys set, for tests of what-if studies."""

from __future__ import annotations

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.studies.levers import Settings
from simulator.studies.levers.lever import Read
from tests.support.scenarios import scenario

CATALOGUE = Catalogue.default()


def reader(name: str, *overrides: str) -> Read:
    """Reads a scenario, with further keys set each time."""

    def read(settings: Settings) -> Scenario:
        added = tuple(f"{key}={value}" for key, value in settings.items())
        return load_scenario(name, overrides=(*overrides, *added), catalogue=CATALOGUE)

    return read


def made_up(**fixed: object) -> Read:
    """Reads a small scenario whose figures settings change by the names of `scenario`'s arguments.

    A worker takes 0.1 s for a batch, the device 0.021 s, unless `fixed` says otherwise.
    """

    def read(settings: Settings) -> Scenario:
        figures = {"batch_cpu": 0.1, "compute": 0.021, "workers": 2, **fixed}
        own = {"input.workers": "workers", "input.prefetch": "prefetch"}
        figures |= {own.get(key, key): value for key, value in settings.items()}
        return scenario(**figures)  # type: ignore[arg-type] # by name

    return read
