"""What the shipped evidence covers: writes ``simulator/data/envelope.toml``.

It changes when a measurement set or a model with step times has come or gone. What lies outside is
warned of, and known less well.
"""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fitting.part import DATA, Outcome, Say
from simulator.confidence.doubts import Axis
from simulator.errors import PlanError
from simulator.files.measured import load_set
from simulator.files.models import load_model, model_names
from simulator.files.scenario import load_scenario
from simulator.files.shipped_sets import set_names
from simulator.results.envelope import FRAMEWORK, GPU, LISTED, PRECISION, named, placed

TARGET = DATA / "envelope.toml"
LEAST = {
    Axis.MACHINES: 2.0,
    Axis.RANKS: 2.0,
    Axis.EXCHANGING: 2.0,
    Axis.WORKERS: 1.0,
    Axis.TENSOR: 2.0,
    Axis.PIPELINE: 2.0,
}
"""Where a range begins whatever was measured: fewer parts are the simpler case."""
SHOWN = 6
"""Digits of the end of a range."""


class Covered:
    """Names and values that occur in the evidence."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = defaultdict(set)
        self.values: dict[Axis, list[float]] = defaultdict(list)

    def add(self, names: dict[str, str], place: dict[Axis, float]) -> None:
        """One measured run."""
        for kind, name in names.items():
            self.names[kind].add(name)
        for axis, value in place.items():
            self.values[axis].append(value)


def step_times() -> Iterator[tuple[dict[str, str], dict[Axis, float]]]:
    """Steps that were measured on a device, from the model library."""
    for name in model_names():
        model = load_model(name)
        for times in model.step_times:
            if times.gpu is None or times.precision is None:
                continue
            names = {GPU: times.gpu, PRECISION: str(times.precision), FRAMEWORK: times.framework}
            for batch in times.batch_sizes:
                yield names, {Axis.BATCH: batch, Axis.PARAMETERS: model.parameters}


def rows(sets: Sequence[str], say: Say) -> Iterator[tuple[dict[str, str], dict[Axis, float]]]:
    """Runs of measurement sets that a prediction is compared with."""
    for name in sets:
        for row in load_set(name).rows:
            if row.excluded:
                continue
            try:
                scenario = load_scenario(row.base, overrides=row.overrides)
            except PlanError as error:
                say(f"{name}, row {row.id}: {error}")
                continue
            yield dict(named(scenario)), dict(placed(scenario))


def text(covered: Covered, sets: Sequence[str]) -> str:
    """The file."""
    source = f"step times of the model library, measurement sets: {', '.join(sets)}"
    lines = [
        "# What measured runs cover. Made by evidence/fit.py envelope from the evidence",
        "# that ships; don't edit.",
        "schema = 1",
        f'source = "{source}"',
        f'date = "{datetime.now(tz=UTC):%Y-%m-%d}"',
    ]
    for kind in LISTED:
        if covered.names[kind]:
            names = ", ".join(f'"{name}"' for name in sorted(covered.names[kind]))
            lines += ["", "[[listed]]", f'kind = "{kind}"', f"names = [{names}]"]
    for axis in Axis:
        found = covered.values[axis]
        if found:
            ends = (min(*found, LEAST.get(axis, math.inf)), max(found))
            low, high = (f"{end:.{SHOWN}g}" for end in ends)
            lines += ["", "[[span]]", f'axis = "{axis}"', f"low = {low}", f"high = {high}"]
    return "\n".join([*lines, ""])


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``; its figures are the ends of ranges."""
    sets = set_names()
    covered = Covered()
    for found in (step_times(), rows(_paths(sets, tables), say)):
        for names, place in found:
            covered.add(names, place)
    old = TARGET.read_text(encoding="utf-8")
    made = text(covered, sets)
    if _undated(made) == _undated(old):
        made = old
    return Outcome(figures=_ends(made), shipped=_ends(old), files={TARGET.name: made})


def _paths(sets: Sequence[str], tables: Path | None) -> list[str]:
    """Sets converted from tables where there are such, else the shipped ones."""
    own = {} if tables is None else {path.stem: str(path) for path in tables.glob("*.toml")}
    return [own.get(name, name) for name in sets]


def _undated(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("date = "))


def _ends(text: str) -> dict[str, float]:
    """Ends of ranges, and how many names are listed of each kind."""
    found = tomllib.loads(text)
    ends = {f"{s['axis']}.{end}": float(s[end]) for s in found["span"] for end in ("low", "high")}
    return ends | {one["kind"]: float(len(one["names"])) for one in found["listed"]}
