"""Shares of the datasheet rates that a step reaches, fitted to ResNet-50 and BERT-large on one GPU.

Shares of ``simulator/data/software.toml``, with launches and kernels as figures fitted to language
models have them, and by plain roofline for comparison; the error on every step measured on one GPU
is told by batch size. Least squares on the log step time without its optimizer, both
models weighted alike. U-Net, DLRM and Mask R-CNN are read only to print their errors.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from fitting.part import DATA, Outcome, Say
from simulator.compute.operator_time import work_of
from simulator.compute.rates import rates_of
from simulator.equations.pipeline import overlapped
from simulator.files.convert.framework_figures import EfficiencyTable, efficiency_by
from simulator.files.convert.models import load_model
from simulator.files.fitted.launches import launching
from simulator.files.hardware.catalogue import Catalogue
from simulator.scenario.hardware.gpu import Gpu
from simulator.scenario.precision import Precision
from simulator.scenario.workload.models import Model
from simulator.scenario.workload.models.families import with_attention
from simulator.scenario.workload.software import Software

Vector = NDArray[np.float64]
FITTED = ("resnet50", "bert-large")
OTHERS = ("dlrm", "unet-2d", "mask-rcnn-r50-fpn")
FRAMEWORKS = ("pytorch", "tensorflow", "any")
LOW, START, HIGH = (0.1, 0.1, 0.4), (0.5, 0.8, 1.0), (1.0, 1.0, 1.13)
"""Memory is at most 0.9 of the A100's data sheet, of which language models' kernels reach 0.8."""
NAMES = ("matrix", "vector", "memory")
FILE = DATA / "software.toml"
CHANGE = 1e-3
"""Change of a share over which slopes are taken."""
NEAR = 1e-6
SHORT = 128
"""Tokens of the short sequences that BERT was measured with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step measured on one GPU."""

    model: Model
    gpu: Gpu
    precision: Precision
    framework: str
    batch: float
    seconds: float

    def predicted(self, shares: Vector, *, launched: bool) -> float:
        """Seconds at shares of matrix units, other units and memory."""
        found = launching(self.gpu, Software(framework=self.framework)) if launched else None
        matrix, vector, memory = shares.tolist()
        table = EfficiencyTable.model_construct(
            matrix=matrix, vector=vector, memory=memory, source="a fit", date="undated"
        )
        rates = rates_of(self.gpu, self.precision, efficiency_by(table, self.gpu, self.precision))
        work = work_of(self.model.operators(self.batch, self.precision), rates, found)
        if found is None:
            return float(work.forward + work.backward)
        passes = ((work.forward, work.kernels), (work.backward, work.backward_kernels))
        return sum(float(overlapped(t, n * found.kernel, found.blend)) for t, n in passes)

    def error(self, shares: Vector, *, launched: bool) -> float:
        """Relative error."""
        return self.predicted(shares, launched=launched) / self.seconds - 1.0


def steps(name: str) -> Iterator[Step]:
    """All steps of a model that were measured on one GPU."""
    catalogue = Catalogue.default(())
    models = [load_model(name)]
    if name == "bert-large":
        # those frameworks had no fused attention kernel when the steps were measured
        both = (*models, load_model(name, sequence=SHORT))
        models = [with_attention(model, fused=False) for model in both]
    for model in models:
        for times in model.step_times:
            for batch, seconds in zip(times.batch_sizes, times.seconds, strict=True):
                yield Step(
                    model=model,
                    gpu=catalogue.gpu(times.gpu or ""),
                    precision=times.precision or Precision.FP32,
                    framework=times.framework,
                    batch=batch,
                    seconds=seconds,
                )


def chosen(framework: str) -> list[Step]:
    """What a framework's shares are fitted to."""
    found = [step for name in FITTED for step in steps(name)]
    return [step for step in found if framework in (step.framework, "any")]


def fitted(rows: Sequence[Step], *, launched: bool) -> Vector:
    """Shares of matrix units, other units and memory."""
    counts = {name: sum(row.model.name == name for row in rows) for name in FITTED}
    weights = np.array([counts[row.model.name] ** -0.5 for row in rows])

    def residuals(shares: Vector) -> Vector:
        errors = [row.error(shares, launched=launched) for row in rows]
        return np.asarray(weights * np.log1p(errors))

    best = least_squares(residuals, START, bounds=(LOW, HIGH), diff_step=1e-3)
    return np.asarray(best.x)


def part(tables: Path | None, say: Say) -> Outcome:  # noqa: ARG001 - parts are alike
    """The part of ``evidence/fit.py``."""
    figures: dict[str, float] = {}
    lines = [f"{'figure':24} {'value':>8} {'error':>7}"]
    fitted_to: dict[str, Vector] = {}
    for framework in FRAMEWORKS:
        rows = chosen(framework)
        best, errors = fitted_with_errors(rows)
        fitted_to[framework] = best
        for name, value, error in zip(NAMES, best, errors, strict=True):
            figures[f"{framework}.{name}"] = float(f"{value:.4g}")
            bound = " at its bound" if value > HIGH[NAMES.index(name)] - NEAR else ""
            lines.append(f"{framework + '.' + name:24} {value:8.4f} {error:7.4f}{bound}")
        wrong = [abs(row.error(best, launched=True)) for row in rows]
        say(f"{framework}, {len(rows)} rows: median error {np.median(wrong):.1%}")
    lines += _each_error(fitted_to)
    text = FILE.read_text(encoding="utf-8")
    return Outcome(
        figures=figures,
        shipped=_shipped(),
        files={FILE.name: _put(text, figures)},
        lines=tuple(lines),
    )


def fitted_with_errors(rows: Sequence[Step]) -> tuple[Vector, Vector]:
    """Shares, and their standard errors from the slopes of the residuals."""
    best = fitted(rows, launched=True)
    at = np.log1p([row.error(best, launched=True) for row in rows])
    slopes = np.stack(
        [
            (np.log1p([row.error(best + step, launched=True) for row in rows]) - at) / CHANGE
            for step in CHANGE * np.eye(len(best))
        ],
        axis=1,
    )
    spread = float(at @ at) / max(1, len(rows) - len(best))
    covariance = spread * np.linalg.pinv(slopes.T @ slopes)
    return best, np.sqrt(np.diag(covariance))


def _each_error(fitted_to: Mapping[str, Vector]) -> Iterator[str]:
    for name in (*FITTED, *OTHERS):
        for row in steps(name):
            own = row.framework if row.framework in FRAMEWORKS else "any"
            told = f"{name:18} {row.gpu.name:20} {row.precision:5} {row.framework:11}"
            yield f"{told} {row.batch:6.0f} {row.error(fitted_to[own], launched=True):+8.0%}"


def _shipped() -> dict[str, float]:
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))["efficiency"]
    return {f"{t['framework']}.{name}": float(t[name]) for t in tables for name in NAMES}


def _put(text: str, figures: Mapping[str, float]) -> str:
    """The file with other shares."""
    for key, value in figures.items():
        framework, name = key.split(".")
        start = text.index(f'framework = "{framework}"')
        line = re.compile(rf"^{name} = .*$", re.MULTILINE)
        text = text[:start] + line.sub(f"{name} = {value:.4g}", text[start:], count=1)
    return text
