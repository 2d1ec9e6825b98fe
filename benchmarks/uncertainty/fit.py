"""How far rates may be off, fitted to the errors of the shipped rows that may be fitted to.

    python benchmarks/uncertainty/fit.py [SETS...] [--write]

Every doubt of a row moves its predicted figure by so much per cent for each per cent of the rate
(the closed form's slope). Deviations are chosen so that the interval from P10 to P90 that follows
from them scores best (Winkler) on rows of split ``fit``: as narrow as it can be while one error in
five lies outside. Each family counts as the square root of its rows. Nothing is read of test
rows but to print the coverage there. Deviations that no row depends on stay as they are.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from evidence import Sample, achieved_over_stated, roofline_errors, samples
from numpy.typing import NDArray
from scipy.optimize import minimize

from simulator.files.shipped_sets import set_names
from simulator.files.uncertainty import graded
from simulator.measurement import Split
from simulator.uncertainty import Axis, Grade, Rate

Vector = NDArray[np.float64]
Name = tuple[Rate, Grade | Axis]
"""A rate's deviation at a grade of evidence, or what a doubling along an axis adds to it."""

TARGET = Path(__file__).parents[2] / "simulator" / "data" / "uncertainty.toml"
NINETY = 1.2816
"""The 90% quantile of a normal distribution over its standard deviation."""
OUTSIDE = 0.2
PRIOR = 0.003
"""What a deviation that is e times as far as before costs beside the mean score."""
MATTERS = 0.05
"""Change of a figure over that of the rate from which on the figure says something about it."""
ENOUGH = 20
"""Figures below which a deviation stays as it is."""
LEAST, MOST = 0.001, 1.5


class Model:
    """Log deviations of all samples as a function of the fitted deviations.

    Those that fewer than `ENOUGH` samples depend on are held where they are.
    """

    def __init__(self, found: Sequence[Sample]) -> None:
        terms = dict.fromkeys((rate, grade) for s in found for rate, grade in s.effects)
        axes = dict.fromkeys((rate, axis) for s in found for rate, axis in s.distances)
        self.names: list[Name] = [*terms, *axes]
        self.slopes = np.array(
            [[s.effects.get(n, s.distances.get(n, 0.0)) for n in self.names] for s in found]  # type: ignore[call-overload]
        )
        self.fixed = np.array([math.hypot(s.chance, s.given) for s in found])
        self.errors = np.array([s.error for s in found])
        self.rows = np.sum(self.slopes > MATTERS, axis=0)

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which deviations the samples can say something about."""
        return self.rows >= ENOUGH

    def deviations(self, fitted: Vector) -> Vector:
        """Log deviation of every sample."""
        own = (self.slopes * fitted) ** 2
        return np.sqrt(own.sum(axis=1) + self.fixed**2)

    def scores(self, fitted: Vector) -> Vector:
        """Winkler score of every sample's interval, in logarithms."""
        half = NINETY * self.deviations(fitted)
        missed = np.maximum(0.0, np.abs(self.errors) - half)
        return 2.0 * half + 2.0 / OUTSIDE * missed


def weights(found: Sequence[Sample]) -> Vector:
    """Each family counts as the square root of its figures."""
    rows: dict[tuple[str, str, str], int] = defaultdict(int)
    for s in found:
        rows[s.set, s.family, s.metric] += 1
    raw = np.array([1.0 / math.sqrt(rows[s.set, s.family, s.metric]) for s in found])
    return raw / raw.sum()


def before(name: Name) -> float:
    """The deviation that is in the file now; a guess for what is not."""
    rate, what = name
    if isinstance(what, Grade):
        return graded(rate, what).log_sd
    return graded(rate, Grade.CALIBRATED).per_doubling.get(what, 0.01) or 0.01


def fit(model: Model, weight: Vector) -> tuple[Vector, Vector]:
    """Deviations with the best score, and how much of the samples' variance each explains."""
    start = np.log(np.clip([before(n) for n in model.names], LEAST, MOST))
    free = model.free

    def whole(x: Vector) -> Vector:
        every = start.copy()
        every[free] = x
        return np.exp(every)

    def cost(x: Vector) -> float:
        prior = PRIOR * float(np.mean((x - start[free]) ** 2))
        return float(weight @ model.scores(whole(x))) + prior

    best = start[free]
    bounds = [(math.log(LEAST), math.log(MOST))] * len(best)
    for method in ("Powell", "Nelder-Mead", "Powell"):
        best = minimize(cost, best, method=method, bounds=bounds, options={"maxiter": 4000}).x
    fitted = whole(best)
    parts = (model.slopes * fitted) ** 2
    share = parts / np.maximum(1e-12, model.deviations(fitted)[:, None] ** 2)
    return fitted, weight @ share


def coverage(found: Sequence[Sample], fitted: dict[Name, float], split: Split) -> list[str]:
    """Share of errors within P10 to P90 by family, and the median width."""
    lines = []
    groups: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    for s in found:
        if s.split is split:
            groups[s.set, s.family, s.metric].append(s)
            groups["all", "", ""].append(s)
    for key, own in groups.items():
        model = Model(own)
        own_fit = np.array([fitted.get(n, 0.0) for n in model.names])
        half = NINETY * model.deviations(own_fit)
        within = float(np.mean(np.abs(model.errors) <= half))
        one = np.quantile(np.abs(model.errors), 1.0 - OUTSIDE)
        name = " / ".join(filter(None, key))
        lines.append(
            f"  {split:5} {name:60} {len(own):5d} rows  {within:4.0%} within  half-width "
            f"{np.median(half):.3f}, 80% of errors {one:.3f}, bias {model.errors.mean():+.3f}"
        )
    return lines


def spreads() -> dict[tuple[Rate, Grade], tuple[float, str]]:
    """Deviations that follow from published ratios and from the model library."""
    ratios = achieved_over_stated()
    kinds = {
        (Rate.PCIE, Grade.DATASHEET): "pcie",
        (Rate.NVLINK, Grade.DATASHEET): "nvlink",
        (Rate.NETWORK, Grade.DATASHEET): "network",
    }
    found = {
        term: (
            float(np.std(ratios[kind], ddof=1)),
            f"spread of achieved over stated rate, {len(ratios[kind])} {kind} profiles",
        )
        for term, kind in kinds.items()
    }
    errors = [e for own in roofline_errors().values() for e in own]
    wide = float(np.quantile(np.abs(errors), 1.0 - OUTSIDE)) / NINETY
    text = f"errors of the roofline on the {len(errors)} step times of the model library"
    found[Rate.DEVICE, Grade.COMPUTED] = (wide, text)
    return found


def rewritten(text: str, values: dict[Name, float], why: Callable[[Name], str], date: str) -> str:
    """The file with some deviations and their sources replaced."""

    def table(match: re.Match[str]) -> str:
        block = match.group(0)
        rate = re.search(r'^rate = "(.*)"$', block, re.MULTILINE)
        grade = re.search(r'^grade = "(.*)"$', block, re.MULTILINE)
        if rate is None or grade is None:
            return block
        name = (Rate(rate.group(1)), Grade(grade.group(1)))
        slopes = {n[1]: v for n, v in values.items() if n[0] is name[0] and isinstance(n[1], Axis)}
        if name[1] is Grade.CALIBRATED and slopes:
            inner = ", ".join(f'"{axis}" = {value:.3g}' for axis, value in sorted(slopes.items()))
            block = re.sub(r"^per_doubling = .*\n", "", block, flags=re.MULTILINE)
            block = re.sub(
                r"(^log_sd = .*\n)", rf"\1per_doubling = {{ {inner} }}\n", block, flags=re.MULTILINE
            )
        if name not in values:
            return block
        block = re.sub(r"^log_sd = .*$", f"log_sd = {values[name]:.3g}", block, flags=re.MULTILINE)
        block = re.sub(r"^source = .*$", f'source = "{why(name)}"', block, flags=re.MULTILINE)
        block = re.sub(r"^date = .*$", f'date = "{date}"', block, flags=re.MULTILINE)
        return re.sub(r"^verified = false\n", "", block, flags=re.MULTILINE)

    return re.sub(r"\[\[doubt\]\]\n(?:.+\n)+", table, text)


def main() -> None:
    """Fit, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(set_names()))
    parser.add_argument("--write", action="store_true", help="write the file of the package")
    given = parser.parse_args()
    found = samples(given.sets)
    own = [s for s in found if s.split is Split.FIT]
    model, weight = Model(own), weights(own)
    fitted, shares = fit(model, weight)
    stated = spreads()
    values: dict[Name, float] = {name: sd for name, (sd, _) in stated.items()}
    for i, name in enumerate(model.names):
        note = "" if model.free[i] else "  (held)"
        sys.stdout.write(
            f"{name[0]:12} {name[1]:28} {before(name):.3f} -> {fitted[i]:.3f}  "
            f"{shares[i]:5.1%} of the variance, {model.rows[i]} figures{note}\n"
        )
        if model.free[i]:
            values[name] = float(fitted[i])
    for split in Split:
        sys.stdout.write(
            "\n".join(coverage(found, dict(zip(model.names, fitted, strict=True)), split)) + "\n"
        )
    for term, (sd, text) in stated.items():
        sys.stdout.write(f"{term[0]}, {term[1]}: {sd:.3f}, {text}\n")
    if given.write:
        counted = (
            f"fitted to the errors of {len(own)} figures of the shipped measurement sets, split fit"
        )

        def why(name: Name) -> str:
            return stated[name][1] if name in stated else counted  # type: ignore[index]

        today = f"{datetime.now(tz=UTC):%Y-%m-%d}"
        TARGET.write_text(
            rewritten(TARGET.read_text(encoding="utf-8"), values, why, today), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
