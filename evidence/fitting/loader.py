"""What decoding threads of one machine cost each other, fitted to the rates of FFCV's threads.

The rates are in ``[notes.contention]`` of the set ``imread_benchmark``. Threads that decode side
by side slow one another down: ``threads / (1 + contention (threads - 1) / cores)`` of them are as
good as alone. Three rates determine the figure and the rate of one thread.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from fitting.part import DATA, Outcome, Say
from simulator.reading.hardware.catalogue import Catalogue

Vector = NDArray[np.float64]
NOTES: Final = DATA / "measured" / "imread_benchmark.toml"
NAME: Final = "contention"
_DIGITS: Final = 2


def fitted(cores: float, threads: Vector, rate: Vector) -> tuple[float, float]:
    """Contention and its standard error."""

    def residuals(x: Vector) -> Vector:
        good = threads / (1.0 + x[0] * (threads - 1.0) / cores)
        return np.asarray(np.log(good * np.exp(x[1]) / rate))

    best = least_squares(residuals, (0.5, np.log(rate[0] / threads[0])), bounds=((0, 0), (2, 20)))
    spread = float(best.fun @ best.fun) / max(1, len(rate) - 2)
    return float(best.x[0]), float(np.sqrt(spread * np.linalg.inv(best.jac.T @ best.jac)[0, 0]))


def part(tables: Path | None, say: Say) -> Outcome:  # noqa: ARG001 - all parts have one signature
    """The part of ``evidence/fit.py``: shipped in the default profile, with two digits."""
    notes = tomllib.loads(NOTES.read_text(encoding="utf-8"))["notes"][NAME]
    value, error = fitted(notes["cores"], np.array(notes["threads"]), np.array(notes["rate"]))
    ships = float(Catalogue.default(()).defaults().contention)
    say(f"{len(notes['rate'])} rates of one machine")
    line = f"contention {value:.4f}, standard error {error:.4f}; shipped with {_DIGITS} digits"
    return Outcome(
        figures={NAME: float(f"{value:.{_DIGITS}g}")}, shipped={NAME: ships}, lines=(line,)
    )
