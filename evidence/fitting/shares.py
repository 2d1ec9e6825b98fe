"""Shares of the data sheet that no step of a language model tells, fitted to steps on one GPU.

Rates of products without matrix units for any model, and what kernels of TensorFlow reach of
others', by ResNet-50 and BERT-large; all else is as fitted to language models. Least squares on the
log step time without its optimizer, both models weighted equally. U-Net, DLRM and Mask R-CNN are
read only to print their errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from fitting.figures import changed_texts, free, shipped
from fitting.part import DATA, Outcome, Say
from simulator.physics.operators import operator_time, rates_of
from simulator.reading.fitted.kernel_files import KernelFiles, with_values
from simulator.reading.fitted.kernels import Use, kernels
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.model_library import load_model
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.models import Model
from simulator.schema.software import Software
from simulator.schema.transformer_families import with_attention

Vector = NDArray[np.float64]
FITTED = ("resnet50", "bert-large")
OTHERS = ("dlrm", "unet-2d", "mask-rcnn-r50-fpn")
FREE = free("alone")
FOLDER = "kernels"
CHANGE = 1e-3
"""Change of a share over which slopes are taken."""
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

    def predicted(self, files: KernelFiles) -> float:
        """Seconds by the figures of these files."""
        software = Software(framework=self.framework)
        use = Use(software=software, precision=self.precision, summed_in=Precision.FP32)
        found = kernels(self.gpu, use, files)
        operators = self.model.operators(self.batch, self.precision)
        work = operator_time(operators, rates_of(self.gpu, self.precision, found), found)
        return float(work.forward + work.backward)

    def error(self, files: KernelFiles) -> float:
        """Relative error."""
        return self.predicted(files) / self.seconds - 1.0


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


def at(shares: Vector) -> KernelFiles:
    """The files with these shares in them."""
    pairs = zip(FREE.tables, shares.tolist(), strict=True)
    return with_values({name: value for table, value in pairs for name in table.names})


@cache
def chosen() -> tuple[Step, ...]:
    """What shares are fitted to."""
    return tuple(step for name in FITTED for step in steps(name))


def logs(shares: Vector) -> Vector:
    """Logarithm of predicted over measured of all rows."""
    files = at(shares)
    return np.log1p([row.error(files) for row in chosen()])


def fitted() -> tuple[Vector, Vector]:
    """Shares, and their standard errors from the slopes of the residuals."""
    counts = {name: sum(row.model.name == name for row in chosen()) for name in FITTED}
    weights = np.array([counts[row.model.name] ** -0.5 for row in chosen()])
    bounds = [t.low for t in FREE.tables], [t.high for t in FREE.tables]
    start = [t.prior for t in FREE.tables]
    search = least_squares(
        lambda shares: weights * logs(shares), start, bounds=bounds, diff_step=CHANGE
    )
    best = np.asarray(search.x)
    left = logs(best)
    slopes = np.stack([(logs(best + step) - left) / CHANGE for step in CHANGE * np.eye(len(best))])
    spread = float(left @ left) / max(1, len(left) - len(best))
    return best, np.sqrt(np.diag(spread * np.linalg.pinv(slopes @ slopes.T)))


def part(tables: Path | None, say: Say) -> Outcome:  # noqa: ARG001 - all parts have one signature
    """The part of ``evidence/fit.py``."""
    best, errors = fitted()
    lines = [f"{'figure':24} {'value':>8} {'error':>7}"]
    for name, value, error in zip(FREE.names, best, errors, strict=True):
        lines.append(f"{name:24} {value:8.4f} {error:7.4f}")
    files = at(best)
    rows = chosen()
    for framework in sorted({row.framework for row in rows}):
        wrong = [abs(row.error(files)) for row in rows if row.framework == framework]
        say(f"{framework}, {len(wrong)} rows: median error {np.median(wrong):.1%}")
    figures = {n: float(f"{v:.4g}") for n, v in zip(FREE.names, best.tolist(), strict=True)}
    texts = changed_texts(figures, FREE.tables, DATA / FOLDER)
    return Outcome(
        figures=figures,
        shipped=dict(zip(FREE.names, shipped(FREE.names), strict=True)),
        files={f"{FOLDER}/{file}": text for file, text in texts.items()},
        lines=(*lines, *_each_error(files)),
    )


def _each_error(files: KernelFiles) -> Iterator[str]:
    for name in (*FITTED, *OTHERS):
        for row in steps(name):
            told = f"{name:18} {row.gpu.name:20} {row.precision:5} {row.framework:11}"
            yield f"{told} {row.batch:6.0f} {row.error(files):+8.0%}"
