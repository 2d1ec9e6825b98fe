"""Unused keys: keys of a scenario without effect on its prediction.

For every key, closed forms of the job are compared with those for other values: the demands of its
stages, the units that they use, the rules of its loader, lengths, memory and price. If no value
changes them, the job is also predicted without the key, over a few steps; only if all metrics are
equal is the key reported. So no key is reported that has an effect or that is required.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from simulator.errors import BrokenInvariant, PlanError
from simulator.physics.footprint import host_ram, memory_fit, page_cache_bytes
from simulator.pipeline.loads import unit_loads
from simulator.pipeline.program import demand_table
from simulator.pipeline.run_length import extras, lengths
from simulator.pipeline.stages.base import Phase, StageDemands
from simulator.pipeline.stages.communication import bucket_shares
from simulator.pipeline.topology import Topology, build
from simulator.predict import predict
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.settings import alternatives, given_keys
from simulator.records import dataclass
from simulator.results.cost import machines_price
from simulator.results.metrics import JOB_METRICS, Value
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario

STEPS: Final = 40
"""Steps over which a key is looked for in the simulation."""


def unused_keys(reader: CandidateReader) -> tuple[str, ...]:
    """Return the keys of a scenario without effect on its prediction, by section.

    Parameters
    ----------
    reader : CandidateReader
        Reads the scenario, which has no mistakes.
    """
    document = reader.document()
    known = _Known(scenario=reader.without_uncertainty({}))
    return tuple(
        key
        for key in given_keys(document)
        if _is_idle(reader, key, document.value(tuple(key.split("."))), known)
    )


def unused_in(text: str, profiles: Sequence[Path] = ()) -> tuple[str, ...]:
    """Return the keys without effect of a scenario given as text, which has no mistakes."""
    return unused_keys(CandidateReader("-", stdin=io.StringIO(text), profiles=profiles))


def with_unused_keys(prediction: Prediction, reader: CandidateReader) -> Prediction:
    """Add a warning that names the keys of a scenario without effect on its prediction."""
    idle = unused_keys(reader)
    if not idle:
        return prediction
    them = "it" if len(idle) == 1 else "them"
    warning = f"without effect here: {', '.join(idle)} (nothing in this job depends on {them})"
    return replace(prediction, warnings=(*prediction.warnings, warning))


@dataclass(frozen=True, kw_only=True)
class _Known:
    """The scenario as given, with cached results that variants are compared with."""

    scenario: Scenario

    @cached_property
    def closed_forms(self) -> tuple[object, ...] | str:
        """Parts of the prediction that need no simulation, or the reason why there are none."""
        return _closed_forms(self.scenario)

    @cached_property
    def figures(self) -> dict[str, Value] | str:
        """All metrics over a few simulated steps, or the reason why there are none."""
        return _figures(self.scenario)

    def made_like(self, other: Scenario) -> bool:
        """Return whether the closed forms of another scenario are equal."""
        known = self.closed_forms
        if isinstance(known, str):
            return _closed_forms(other) == known
        try:
            return all(one == its for one, its in zip(_made_of(other), known, strict=True))
        except PlanError:
            return False


def _is_idle(reader: CandidateReader, key: str, value: object, known: _Known) -> bool:
    """Return whether neither another value of a key nor its absence changes the prediction."""
    tried = 0
    for choice in alternatives(key, value):
        try:
            found = reader.without_uncertainty({key: choice})
        except PlanError:
            continue
        tried += 1
        if not known.made_like(found):
            return False
    if not tried:
        return False
    try:
        left_out = reader.without(key)
    except PlanError:
        return False
    return _figures(left_out) == known.figures


def _closed_forms(scenario: Scenario) -> tuple[object, ...] | str:
    """Return the parts of a prediction that need no simulation, or why there are none."""
    try:
        return tuple(_made_of(scenario))
    except PlanError as error:
        return str(error)


def _made_of(scenario: Scenario) -> Iterator[object]:
    """Yield the parts of a prediction that need no simulation, the quickest first."""
    job = scenario.job
    pipeline, train = job.input, job.train
    yield pipeline.policy, pipeline.pin_memory, pipeline.overlap_copies, pipeline.straggler
    yield job.dataset.size_spread, job.input.cost_spread, job.copies, job.remote
    yield train.batch_size, train.accumulation, train.sync_every_step
    yield scenario.cost.provisioning, scenario.cost.price, scenario.cost.purchase
    yield machines_price(scenario)
    yield lengths(scenario)
    topology, warm = build(scenario), demand_table(scenario, Phase.WARM)
    yield _asked(warm)
    yield _used(topology, warm)
    yield extras(scenario, topology, warm)
    ram, fit = host_ram(scenario), memory_fit(scenario)
    yield ram.items, ram.capacity
    yield fit if fit is None else (fit.items, fit.capacity)
    yield page_cache_bytes(scenario)
    yield bucket_shares(scenario)
    cold = demand_table(scenario, Phase.COLD)
    yield _asked(cold)
    yield _used(topology, cold)


def _asked(stages: Sequence[StageDemands]) -> list[tuple[object, ...]]:
    """Return the demands of stages without their source and without empty ones."""
    return [
        (
            *(stage.stage, stage.group, stage.times, d.path, d.amount, d.operations, d.latency),
            *(d.threads, d.ceiling if d.amount else None),
        )
        for stage in stages
        for d in stage.demands
        if d.amount or d.operations or d.latency
    ]


def _used(topology: Topology, stages: Sequence[StageDemands]) -> dict[str, float]:
    loads = ((unit, float(load)) for unit, load in unit_loads(topology, stages).items())
    return {unit: load for unit, load in loads if load > 0.0}


def _figures(scenario: Scenario) -> dict[str, Value] | str:
    """Return all metrics over a few simulated steps, or the reason why there are none."""
    try:
        prediction = predict(scenario, intervals=False, max_steps=STEPS)
    except (PlanError, BrokenInvariant) as error:
        return str(error)
    return {metric.name: metric.get(prediction) for metric in JOB_METRICS}
