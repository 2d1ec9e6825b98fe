"""Steps and memory of measured language-model runs, predicted at any values of the fitted figures.

All runs are predicted together: their descriptions are stacked to one whose numbers are arrays, and
so are the figures that hold for each of them. The equations are those of the package.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from simulator.physics.footprint import memory_fit
from simulator.physics.training_step import training_step
from simulator.physics.transformer import TransformerStep, kernels_of, transformer_step
from simulator.reading.fitted.kernel_files import KernelFiles
from simulator.reading.fitted.kernels import Use, kernels, memory_figures, use_of
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario
from simulator.schema.accelerators import Gpu
from simulator.schema.measurement import Row, Split
from simulator.schema.scenario import Scenario
from simulator.schema.software import Kernels, MemoryFigures

Vector = NDArray[np.float64]
Record = TypeVar("Record")

STEP: Final = "step_time_s.mean"
MEMORY: Final = "gpu_memory_bytes.total"
SET: Final = "llm_training"


@dataclass(frozen=True)
class Runs:
    """Measured runs with what is predicted from: scenarios are read once."""

    rows: tuple[Row, ...]
    scenarios: tuple[Scenario, ...]

    @cached_property
    def seconds(self) -> Vector:
        """Measured steps [s], nan where there is none."""
        return np.array([row.measured.get(STEP, np.nan) for row in self.rows])

    @cached_property
    def memory(self) -> Vector:
        """Measured device memory [B], nan where there is none."""
        return np.array([row.measured.get(MEMORY, np.nan) for row in self.rows])

    @cached_property
    def families(self) -> NDArray[np.str_]:
        """What rows are counted under."""
        return np.array([row.family for row in self.rows])

    @cached_property
    def series(self) -> NDArray[np.str_]:
        """The series of each row."""
        return np.array([row.labels["series"] for row in self.rows])

    @cached_property
    def fitted(self) -> NDArray[np.bool_]:
        """Return whether figures may be fitted to a row."""
        return np.array([row.split is Split.FIT for row in self.rows])

    def chosen(self, which: NDArray[np.bool_]) -> Runs:
        """Some of the runs."""
        pairs = zip(self.rows, self.scenarios, which, strict=True)
        own = [(row, scenario) for row, scenario, wanted in pairs if wanted]
        return Runs(tuple(row for row, _ in own), tuple(scenario for _, scenario in own))

    @cached_property
    def described(self) -> tuple[TransformerStep, ...]:
        """What a device of each run computes and sends."""
        return tuple(transformer_step(scenario) for scenario in self.scenarios)

    @cached_property
    def uses(self) -> tuple[tuple[tuple[Gpu | None, Use], ...], NDArray[np.int64]]:
        """What decides which figures hold: the different cases, and the case of each run."""
        found: dict[Hashable, tuple[int, tuple[Gpu | None, Use]]] = {}
        case = [
            found.setdefault(_key(use), (len(found), use))[0] for use in map(_use, self.scenarios)
        ]
        return tuple(use for _, use in found.values()), np.array(case)

    def kernels(self, files: KernelFiles) -> Kernels:
        """Figures of all runs, as arrays of one entry a run."""
        cases, case = self.uses
        own = [cast("Kernels", kernels(gpu, use, files)) for gpu, use in cases]
        return stacked(own, case)

    def step_times(self, files: KernelFiles) -> Vector:
        """Predicted steps [s]."""
        steps = stacked(self.described, np.arange(len(self.rows)))
        return np.asarray(training_step(steps, self.kernels(files)).total)

    def memory_sizes(self, files: KernelFiles) -> Vector:
        """Predicted device memory of a rank on the fullest stage [B], one run after the other."""
        cases, case = self.uses
        own = [memory_figures(gpu, use, files) for gpu, use in cases]
        pairs = zip(self.scenarios, case, strict=True)
        return np.array([_memory(_on(scenario, own[i])) for scenario, i in pairs])


def _key(use: tuple[Gpu | None, Use]) -> Hashable:
    gpu, words = use
    return (
        None if gpu is None else gpu.name,
        repr(words.software),
        words.precision,
        words.summed_in,
        None if words.link is None else words.link.name,
    )


def _use(scenario: Scenario) -> tuple[Gpu | None, Use]:
    return scenario.cluster.trainers.host.gpu, use_of(scenario)


def _on(scenario: Scenario, found: MemoryFigures) -> Scenario:
    job = scenario.job
    return replace(scenario, jobs=(replace(job, software=replace(job.software, memory=found)),))


def _memory(scenario: Scenario) -> float:
    fit = memory_fit(scenario)
    return math.nan if fit is None else float(fit.total)


def stacked(items: Sequence[Record], case: NDArray[np.int64]) -> Record:
    """One record whose numbers are arrays: entry i is that of ``items[case[i]]``."""
    first = items[0]
    values: dict[str, Any] = {}
    for one in fields(cast("Any", first)):
        if not one.init:
            continue
        own = [getattr(item, one.name) for item in items]
        if is_dataclass(own[0]):
            values[one.name] = stacked(own, case)
        elif isinstance(own[0], int | float | np.floating):
            values[one.name] = np.array(own, dtype=float)[case]
        else:
            values[one.name] = own[0]
    return type(first)(**values)


def runs(name: str = SET) -> Runs:
    """All runs of a measurement set that figures hold for."""
    catalogue = Catalogue.default(())
    rows = [row for row in load_set(name).rows if not row.excluded]
    scenarios = [load_scenario(r.base, overrides=r.overrides, catalogue=catalogue) for r in rows]
    known = [(r, s) for r, s in zip(rows, scenarios, strict=True) if s.job.software.kernels]
    for _, scenario in known:
        kernels_of(scenario)
    return Runs(tuple(row for row, _ in known), tuple(scenario for _, scenario in known))
