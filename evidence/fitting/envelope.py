"""What the shipped evidence covers: writes ``simulator/data/envelope.toml``.

It changes when a measurement set or a model with step times has come or gone. What lies outside is
warned of, and known less well. Runs whose device time a prediction has to compute are kept apart by
series and by all they have in common, where figures were fitted to their series; others only widen
the ranges of machines, ranks and workers.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from fitting.part import DATA, Outcome, Say
from fitting.samples import without_steps
from simulator.errors import PlanError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.model_library import load_model, model_names
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import set_names
from simulator.results.envelope import NAMED, PLACED, Names, Place, compared, named, placed
from simulator.schema.machines import Cluster
from simulator.schema.measurement import Split
from simulator.schema.scenario import Scenario
from simulator.schema.software import Software
from simulator.schema.uncertainty import Axis

TARGET = DATA / "envelope.toml"
RANGED = (Axis.MACHINES, Axis.RANKS, Axis.EXCHANGING, Axis.WORKERS)
"""Axes with one range over all runs."""
LEAST = {
    Axis.MACHINES: 2.0,
    Axis.RANKS: 2.0,
    Axis.EXCHANGING: 2.0,
    Axis.WORKERS: 1.0,
}
"""Begin of a range regardless of what was measured: fewer parts are the simpler case."""
FEWER = frozenset({Axis.RANKS, Axis.TENSOR, Axis.PIPELINE})
"""Axes along which the ranges of single kinds of run begin at one."""
LIBRARY = "steps of the model library"
SHOWN = 6
"""Digits of the end of a range."""
BASE = "resnet50-imagenet-p4d"
"""A scenario that the model library's steps are put into."""


Run = tuple[str, Names, tuple[Place, Place]]
"""Series, names, and where a run lies among its kind and among all."""


class Covered:
    """Values that occur in the evidence, of all runs and by kind of run."""

    def __init__(self) -> None:
        self.ranges: dict[Axis, list[float]] = defaultdict(list)
        self.kinds: dict[tuple[str, ...], dict[Axis, list[float]]] = {}

    def add(self, series: str, names: Names, places: tuple[Place, Place]) -> None:
        """One measured run: what it is compared by, and where it lies among all runs."""
        own, among = places
        for axis, value in among.items():
            self.ranges[axis].append(value)
        if names:
            key = (series, *(names.get(kind, "") for kind in NAMED))
            spans = self.kinds.setdefault(key, defaultdict(list))
            for axis, value in own.items():
                spans[axis].append(value)


def step_times() -> Iterator[Run]:
    """Steps that were measured on a device, from the model library."""
    base, catalogue = load_scenario(BASE), Catalogue.default(())
    group = base.cluster.groups[0]
    for name in model_names():
        model = load_model(name)
        for times in model.step_times:
            if times.gpu is None or times.precision is None:
                continue
            host = replace(group.host, gpu=catalogue.gpu(times.gpu))
            for batch in times.batch_sizes:
                job = replace(
                    base.job,
                    model=without_steps(model),
                    step_times=None,
                    train=replace(base.job.train, batch_size=batch, precision=times.precision),
                    software=Software(framework=times.framework),
                )
                alone = replace(group, host=host, gpus_per_host=1, count=1)
                cluster = Cluster(groups=(alone,))
                yield LIBRARY, *_seen(replace(base, jobs=(job,), cluster=cluster))


def _seen(scenario: Scenario) -> tuple[Names, tuple[Place, Place]]:
    return named(scenario), (compared(scenario), placed(scenario))


def rows(sets: Sequence[str], say: Say) -> Iterator[Run]:
    """Runs of measurement sets that a prediction is compared with."""
    for name in sets:
        found = [row for row in load_set(name).rows if not row.excluded]
        fitted_to = {row.labels.get("series") for row in found if row.split is Split.FIT}
        for row in found:
            try:
                scenario = load_scenario(row.base, overrides=row.overrides)
            except PlanError as error:
                say(f"{name}, row {row.id}: {error}")
                continue
            names, places = _seen(scenario)
            series = row.labels.get("series", "")
            own = names if series and series in fitted_to else {}
            yield series, own, places


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
    for axis in RANGED:
        found = covered.ranges[axis]
        if found:
            low, high = (f"{end:.{SHOWN}g}" for end in (min(*found, LEAST[axis]), max(found)))
            lines += ["", "[[span]]", f'axis = "{axis}"', f"low = {low}", f"high = {high}"]
    for (series, *names), spans in sorted(covered.kinds.items()):
        told = ", ".join(f'"{k}" = "{n}"' for k, n in zip(NAMED, names, strict=True) if n)
        lines += ["", "[[measured]]", f'series = "{series}"', f"names = {{ {told} }}"]
        lines += [f"spans = {{ {', '.join(_ends_of(spans))} }}"]
    return "\n".join([*lines, ""])


def _ends_of(spans: Mapping[Axis, list[float]]) -> Iterator[str]:
    for axis in PLACED:
        if spans.get(axis):
            low = 1.0 if axis in FEWER else min(spans[axis])
            yield f'"{axis}" = [{low:.{SHOWN}g}, {max(spans[axis]):.{SHOWN}g}]'


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``; its figures are the ends of ranges."""
    sets = [name for name in set_names() if not load_set(name).serves]
    covered = Covered()
    for found in (step_times(), rows(_paths(sets, tables), say)):
        for series, names, places in found:
            covered.add(series, names, places)
    old = TARGET.read_text(encoding="utf-8")
    made = text(covered, sets)
    if _undated(made) == _undated(old):
        made = old
    ends, known = _ends(made), _ends(old)
    shipped = {name: known.get(name, math.nan) for name in ends}
    return Outcome(figures=ends, shipped=shipped, files={TARGET.name: made})


def _paths(sets: Sequence[str], tables: Path | None) -> list[str]:
    own = {} if tables is None else {path.stem: str(path) for path in tables.glob("*.toml")}
    return [own.get(name, name) for name in sets]


def _undated(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("date = "))


def _ends(text: str) -> dict[str, float]:
    """Ends of ranges over all runs, and how many kinds of run each series has."""
    found = tomllib.loads(text)
    ends = {f"{s['axis']}.{end}": float(s[end]) for s in found["span"] for end in ("low", "high")}
    kinds = Counter(one["series"] for one in found.get("measured", []))
    return ends | {f"kinds of {series}": float(count) for series, count in kinds.items()}
