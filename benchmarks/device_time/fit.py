"""Shares of the datasheet rates that a step reaches, fitted to ResNet-50 and BERT-large on one GPU.

    python benchmarks/device_time/fit.py

Prints the shares of ``simulator/data/software.toml``, with launches and kernels as figures fitted
to language models have them, and by plain roofline for comparison; then the error on every step
measured on one GPU, by batch size. Least squares on the log step time without its optimizer, both
models weighted alike. U-Net, DLRM and Mask R-CNN are read only to print their errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simulator.compute.device_time import product_rate
from simulator.compute.operator_time import Rates, work_of
from simulator.equations.pipeline import overlapped
from simulator.files.catalogue import Catalogue
from simulator.files.launches import launching
from simulator.files.models import load_model
from simulator.hardware.gpu import Gpu
from simulator.precision import Precision
from simulator.workload.models import Model
from simulator.workload.models.families import with_attention
from simulator.workload.software import Software

Vector = NDArray[np.float64]
FITTED = ("resnet50", "bert-large")
OTHERS = ("dlrm", "unet-2d", "mask-rcnn-r50-fpn")
FRAMEWORKS = ("pytorch", "tensorflow", "any")
LOW, START, HIGH = (0.1, 0.1, 0.3), (0.5, 0.8, 0.8), (1.0, 1.0, 0.9)
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
        matrix = shares[1] if self.precision is Precision.FP32 else shares[0]
        found = launching(self.gpu, Software(framework=self.framework)) if launched else None
        rates = Rates(
            matrix=product_rate(self.gpu, self.precision) * matrix,
            vector=self.gpu.peak[Precision.FP32],
            memory=self.gpu.memory_bandwidth * shares[2],
            units=self.gpu.multiprocessors,
        )
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


def main() -> None:
    """Fit, and print shares and errors."""
    shares: dict[tuple[str, bool], Vector] = {}
    for framework in FRAMEWORKS:
        rows = chosen(framework)
        for launched in (False, True):
            best = shares[framework, launched] = fitted(rows, launched=launched)
            errors = [abs(row.error(best, launched=launched)) for row in rows]
            how = "with launches" if launched else "plain roofline"
            print(f"{framework:10} {len(rows):3} rows, {how}: {np.round(best, 3)}", end=", ")
            print(f"median error {np.median(errors):.1%}, mean {np.mean(errors):.1%}")
    print(f"\n{'plain':>60} {'launched':>8}")
    for name in (*FITTED, *OTHERS):
        for row in steps(name):
            own = row.framework if row.framework in FRAMEWORKS else "any"
            text = f"{name:18} {row.gpu.name:20} {row.precision:5} {row.framework:11}"
            errors = [row.error(shares[own, on], launched=on) for on in (False, True)]
            print(f"{text} {row.batch:6.0f} " + " ".join(f"{error:+8.0%}" for error in errors))


if __name__ == "__main__":
    main()
