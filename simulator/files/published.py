"""Published figures of shipped scenarios, from the measurement sets that come with plan."""

from __future__ import annotations

from pathlib import Path

from simulator.confidence.measurement import Row
from simulator.files.measured import load_set
from simulator.files.shipped import find_scenario, scenario_folder, set_folder, set_names


def published(name_or_path: str) -> tuple[Row, ...]:
    """Rows measured on a shipped scenario just as it is; none for a scenario of the user's own."""
    path = find_scenario(name_or_path)
    if path is None or path.parent.resolve() != scenario_folder().resolve():
        return ()
    return tuple(
        row
        for name in set_names()
        if _mentions(name, path.stem)
        for row in load_set(name).rows
        if Path(row.base).stem == path.stem and not row.overrides and not row.excluded
    )


def _mentions(name: str, scenario: str) -> bool:
    """Whether a set's rows name a scenario at all; reading every set takes seconds."""
    return f",{scenario}," in (set_folder() / f"{name}.csv").read_text(encoding="utf-8")
