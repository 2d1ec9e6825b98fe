"""How far rates may be off, fitted to the errors of the shipped rows that may be fitted to.

Every uncertainty of a row moves its predicted figure by so much per cent for each per cent of the
rate (the closed form's slope). Deviations are chosen so that the interval from P10 to P90 that
follows from them scores best (Winkler) on rows of split ``fit``: as narrow as it can be while one
error in five lies outside. Each family counts as the square root of its figures, and a weak prior
holds every deviation near where it was. Test rows are read only to print the coverage there. Steps
of language models are left to the part ``distance``.

Deviations that few rows depend on stay as they are, and so does everything the file has no key
for: a table gets a ``per_doubling`` or ``seconds`` by being given one by hand.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fitting.language_models import SET
from fitting.part import DATA, Outcome, Say
from fitting.samples import Sample, achieved_over_stated, roofline_errors, samples
from simulator.reading.shipped import set_names
from simulator.schema.measurement import Split
from simulator.schema.uncertainty import Grade, Rate
from simulator.uncertainty.grades import graded
from simulator.units import SECOND, show

Vector = NDArray[np.float64]
Name = tuple[Rate, Grade, str]
"""A rate, its grade of evidence, and the key of the figure: `LOG`, `SECONDS`, or an axis."""
LOG = "log_sd"
SECONDS = "seconds"

TARGET = DATA / "uncertainty.toml"
NINETY = 1.2816
"""The 90% quantile of a normal distribution over its standard deviation."""
OUTSIDE = 0.2
PRIOR = 0.02
"""What deviations that are e times as far as before cost, as a share of the score."""
MATTERS = 0.1
"""Share of a figure's variance from which on its error says something about a deviation."""
MOSTLY = 0.5
"""Effect of the first step's uncertainty from which on a figure is one of the first step."""
ENOUGH = 20
"""Figures below which a deviation stays as it is."""
RANGE = 8.0
"""Factor by which a fit may change a deviation, either way."""


def slopes(sample: Sample) -> dict[Name, float]:
    """Change of a sample's log figure per unit of each deviation that it depends on."""
    found: dict[Name, float] = {}
    for (rate, grade), effect in sample.effects.items():
        found[rate, grade, LOG] = effect
        if graded(rate, grade).seconds > 0.0:
            found[rate, grade, SECONDS] = effect / _length(sample, rate)
    for (rate, axis), effect in sample.distances.items():
        if axis in graded(rate, Grade.CALIBRATED).per_doubling:
            found[rate, Grade.CALIBRATED, axis] = effect
    return found


def _length(sample: Sample, rate: Rate) -> float:
    return sample.first if rate is Rate.START else sample.step


def before(name: Name) -> float:
    """The deviation that is in the file now."""
    rate, grade, key = name
    table = graded(rate, grade)
    if key == LOG:
        return table.log_sd
    return table.seconds if key == SECONDS else dict(table.per_doubling)[key]  # type: ignore[index]


class Model:
    """Log deviations of all samples as a function of the deviations of rates."""

    def __init__(self, found: Sequence[Sample], known: Mapping[Name, float]) -> None:
        own = [slopes(sample) for sample in found]
        self.names: list[Name] = list(dict.fromkeys(name for one in own for name in one))
        self.slopes = np.array([[one.get(name, 0.0) for name in self.names] for one in own])
        self.fixed = np.array([math.hypot(s.chance, s.given) for s in found])
        self.errors = np.array([s.error for s in found])
        self.start = np.array([known.get(name) or before(name) for name in self.names])

    def deviations(self, figures: Vector) -> Vector:
        """Log deviation of every sample."""
        own: Vector = np.sqrt(((self.slopes * figures) ** 2).sum(axis=1) + self.fixed**2)
        return own

    def scores(self, figures: Vector) -> Vector:
        """Winkler score of every sample's interval, in logarithms."""
        half = NINETY * self.deviations(figures)
        missed = np.maximum(0.0, np.abs(self.errors) - half)
        every: Vector = 2.0 * half + 2.0 / OUTSIDE * missed
        return every

    def informed(self, figures: Vector) -> NDArray[np.int64]:
        """How many samples say something about each deviation."""
        parts = (self.slopes * figures) ** 2
        share = parts / np.maximum(1e-12, self.deviations(figures)[:, None] ** 2)
        return np.asarray(np.sum(share > MATTERS, axis=0))


def weights(found: Sequence[Sample]) -> Vector:
    """Each family counts as the square root of its figures."""
    rows: dict[tuple[str, str, str], int] = defaultdict(int)
    for s in found:
        rows[s.set, s.family, s.metric] += 1
    raw: Vector = np.array([1.0 / math.sqrt(rows[s.set, s.family, s.metric]) for s in found])
    return raw / float(raw.sum())


def fit_all(found: Sequence[Sample]) -> dict[Name, tuple[float, int]]:
    """Deviations with the best score, each with the figures that say something about it.

    First steps depend on much that later ones don't, so nothing is fitted to them but what is
    about them alone, last.
    """
    first = [s for s in found if s.effects.get((Rate.START, Grade.COMPUTED), 0.0) > MOSTLY]
    about = {id(s) for s in first}
    later = [s for s in found if id(s) not in about]
    values: dict[Name, tuple[float, int]] = {}
    for own, about_start in ((later, False), (first, True)):
        if not own:
            continue
        model = Model(own, {name: value for name, (value, _) in values.items()})
        allowed = np.array([_allowed(name, about_start=about_start) for name in model.names])
        free = allowed & (model.informed(model.start) >= ENOUGH)
        fitted = fit(model, weights(own), free)
        rows = model.informed(fitted)
        chosen = np.flatnonzero(free)
        values |= {model.names[i]: (float(fitted[i]), int(rows[i])) for i in chosen}
    return values


ELSEWHERE: Final = frozenset(
    {
        *(Grade.FITTED, Grade.EXPERTS, Grade.PROFILED),
        *(Grade.CARRIED, Grade.CARRIED_KERNELS, Grade.CARRIED_LAUNCHES),
    }
)
"""Grades whose deviations the part ``distance`` fits."""


def _allowed(name: Name, *, about_start: bool) -> bool:
    rate, grade, _ = name
    return (rate is Rate.START) is about_start and grade not in ELSEWHERE


def fit(model: Model, weight: Vector, free: NDArray[np.bool_]) -> Vector:
    """The free deviations with the best score, and the others as they are."""
    start = np.log(model.start)
    level = float(weight @ np.abs(model.errors))

    def whole(x: Vector) -> Vector:
        every = start.copy()
        every[free] = x
        figures: Vector = np.exp(every)
        return figures

    def cost(x: Vector) -> float:
        moved = float(np.mean((x - start[free]) ** 2))
        return float(weight @ model.scores(whole(x))) + PRIOR * level * moved

    best = start[free]
    if not len(best):
        return model.start
    bounds = [(x - math.log(RANGE), x + math.log(RANGE)) for x in best]
    for method in ("Powell", "Nelder-Mead", "Powell"):
        best = minimize(cost, best, method=method, bounds=bounds, options={"maxiter": 4000}).x
    return whole(best)


def coverage(found: Sequence[Sample], figures: Mapping[Name, float], split: Split) -> list[str]:
    """Share of errors within P10 to P90 by family, and the median width."""
    lines = []
    groups: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    for s in found:
        if s.split is split:
            groups[s.set, s.family, s.metric].append(s)
            groups["all", "", ""].append(s)
    for key, own in groups.items():
        model = Model(own, figures)
        half = NINETY * model.deviations(model.start)
        within = float(np.mean(np.abs(model.errors) <= half))
        one = np.quantile(np.abs(model.errors), 1.0 - OUTSIDE)
        name = " / ".join(filter(None, key))
        lines.append(
            f"  {split:5} {name:60} {len(own):5d} figures  {within:4.0%} within  half-width "
            f"{np.median(half):.3f}, 80% of errors {one:.3f}, bias {model.errors.mean():+.3f}"
        )
    return lines


def spreads() -> dict[Name, tuple[float, str]]:
    """Deviations that follow from published ratios and from the model library, and why."""
    ratios = achieved_over_stated()
    found = {}
    for rate, kind in ((Rate.PCIE, "pcie"), (Rate.NVLINK, "nvlink"), (Rate.NETWORK, "network")):
        # A rate without a measured one is used as stated, so its shortfall counts in full.
        short = float(np.sqrt(np.mean(np.square(ratios[kind]))))
        why = f"root mean square of log(achieved / stated) over {len(ratios[kind])} {kind} profiles"
        found[rate, Grade.DATASHEET, LOG] = (short, why)
    errors = [error for own in roofline_errors().values() for error in own]
    wide = float(np.quantile(np.abs(errors), 1.0 - OUTSIDE)) / NINETY
    why = f"errors of the roofline on the {len(errors)} step times of the model library"
    found[Rate.DEVICE, Grade.COMPUTED, LOG] = (wide, why)
    return found


def rewritten(text: str, values: Mapping[Name, tuple[float, str]]) -> str:
    """The file with some deviations and the sources of their tables replaced."""
    today = f"{datetime.now(tz=UTC):%Y-%m-%d}"

    def table(match: re.Match[str]) -> str:
        block = match.group(0)
        rate, grade = (
            re.search(rf'^{key} = "(.*)"$', block, re.MULTILINE) for key in ("rate", "grade")
        )
        if rate is None or grade is None:
            return block
        own = {
            key: value
            for (r, g, key), value in values.items()
            if (r.value, g.value) == (rate.group(1), grade.group(1))
        }
        for key, (value, why) in own.items():
            block = _put(block, key, value)
            block = re.sub(r"^source = .*$", f'source = "{why}"', block, flags=re.MULTILINE)
            block = re.sub(r"^date = .*$", f'date = "{today}"', block, flags=re.MULTILINE)
        return re.sub(r"^verified = false\n", "", block, flags=re.MULTILINE) if own else block

    return re.sub(r"\[\[doubt\]\]\n(?:.+\n)+", table, text)


def _put(block: str, key: str, value: float) -> str:
    if key == SECONDS:
        text = f'seconds = "{show(value, SECOND, 3)}"'
        return re.sub(r"^seconds = .*$", text, block, flags=re.MULTILINE)
    if key == LOG:
        return re.sub(r"^log_sd = .*$", f"log_sd = {value:.3g}", block, flags=re.MULTILINE)
    return re.sub(rf"(\b{re.escape(key)} = )[0-9.e-]+", rf"\g<1>{value:.3g}", block)


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``."""
    own = {} if tables is None else {path.stem: str(path) for path in tables.glob("*.toml")}
    found = samples([own.get(name, name) for name in set_names() if name != SET])
    fitted_to = [s for s in found if s.split is Split.FIT]
    say(f"{len(found)} figures, {len(fitted_to)} of split fit")
    why = f"fitted to the errors of {len(fitted_to)} figures of the shipped sets, split fit"
    values, lines = spreads(), []
    for name, (value, rows) in fit_all(fitted_to).items():
        rate, grade, key = name
        lines.append(f"{rate:12} {grade:12} {key:10} {value:.5f}  {rows} figures")
        values[name] = (value, why)
    figures = {name: value for name, (value, _) in values.items()}
    for split in Split:
        lines += coverage(found, figures, split)
    old = TARGET.read_text(encoding="utf-8")
    told = {name: ", ".join(name) for name in figures}
    return Outcome(
        figures={told[name]: float(f"{value:.3g}") for name, value in figures.items()},
        shipped={told[name]: float(f"{before(name):.3g}") for name in figures},
        files={TARGET.name: rewritten(old, values)},
        lines=tuple(lines),
    )
