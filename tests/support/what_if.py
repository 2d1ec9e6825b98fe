"""Scenarios that can be read with some keys set, for tests of what-if studies."""

from __future__ import annotations

from simulator.files.catalogue import Catalogue
from simulator.files.scenario import load_scenario
from simulator.scenario import Scenario
from simulator.studies.knobs import Read, Settings

CATALOGUE = Catalogue.default()


def reader(name: str, *overrides: str) -> Read:
    """Reads a scenario, with further keys set each time."""

    def read(settings: Settings) -> Scenario:
        added = tuple(f"{key}={value}" for key, value in settings.items())
        return load_scenario(name, overrides=(*overrides, *added), catalogue=CATALOGUE)

    return read
