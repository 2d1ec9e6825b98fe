"""The shipped scenarios with what they ask, for reading, as a table and as JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator

from simulator.reading.names import asked_for
from simulator.reading.shipped import scenario_names, scenario_path, service_names
from simulator.report.format.table import Table
from simulator.report.text import columns


def _asked(wanted: str) -> Iterator[tuple[str, str]]:
    """Each name that `wanted` means, with the scenario's title.

    Raises
    ------
    UnknownName
        If it means none.
    """
    for name in asked_for("shipped scenario", wanted, (*scenario_names(), *service_names())):
        path = scenario_path(name)
        if path is not None:
            text = path.read_text(encoding="utf-8")
            yield name, str(tomllib.loads(text).get("title", ""))


def as_text(wanted: str = "") -> str:
    """Names and titles in two columns."""
    rows = list(_asked(wanted))
    lines = columns([("scenario", "what it asks"), *rows], "<<")
    return "\n".join([*lines, "", "Copy one to change it: plan init --from SCENARIO -o mine.toml"])


def as_json(wanted: str = "") -> str:
    """A list of names and titles."""
    return json.dumps(
        [{"name": n, "title": t} for n, t in _asked(wanted)], indent=2, ensure_ascii=False
    )


def as_table(wanted: str = "") -> Table:
    """A row for each."""
    return Table(head=("scenario", "title"), rows=tuple(_asked(wanted)))
