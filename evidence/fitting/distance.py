"""How much less is known of a step the less it is like measured ones, from series left out.

Each series of language-model runs is predicted by figures that it and its siblings had no part in
(``data/unseen.toml``), against evidence that lacks them: so far off is a job that nothing was
fitted to; predictions by the shipped figures say how far where something was fitted. The deviations
that come out score best (Winkler) over both: a base by what the step is made of, one for each
respect in which a job differs from the runs most like it, and one for each doubling. The same runs
under an unmeasured framework then say what the use of another's kernels adds. The
memory of an accelerator has two deviations: of a framework that was measured, and what it adds if
it was not.

Each family counts as the root of its runs; for the framework all count equally, since runs of one
series are off together by what its framework does otherwise. What is expected of deviations before
any row was looked at (`EXPECTED`) says how they compare: all that steps are made of share one
factor, all differences another, and both are free. Beyond it each deviation is expected there with
a spread of a factor `SPREAD`, which counts as one more observation. How good the rule is, and not
the deviations that these rows chose, is judged by deviations fitted without each series.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fitting.deviations import NINETY, OUTSIDE, TARGET
from fitting.language_models import SET, Runs, runs, stacked
from fitting.part import Outcome, Say
from simulator.equations.uncertainty import doublings_outside
from simulator.physics.training_step import launch_share, small_kernels_share
from simulator.reading.fitted.kernel_files import kernel_files, with_values
from simulator.reading.fitted.kernels import ANY
from simulator.results.envelope import (
    ARCHITECTURE,
    FAMILY,
    FRAMEWORK,
    GPU,
    MODE,
    NAMED,
    PATH,
    PLACED,
    PRECISION,
    SHARDING,
    Measured,
    comparable,
    compared,
    named,
)
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import Axis, Grade, Rate
from simulator.uncertainty.grades import (
    MEMORY,
    UNLIKE,
    graded,
    memory_deviations,
    shipped_envelope,
)
from simulator.uncertainty.scenario import siblings, uncertainties_of, unseen_groups

Vector = NDArray[np.float64]
GRADES: Final = (Grade.FITTED, Grade.EXPERTS, Grade.PROFILED)
"""What a step is made of; each run is of one of them."""
EXPECTED: Final[Mapping[str, float]] = {
    Grade.FITTED: 0.05,
    Grade.EXPERTS: 0.1,
    Grade.PROFILED: 0.06,
    Grade.CARRIED: 0.15,
    Grade.CARRIED_KERNELS: 0.5,
    Grade.CARRIED_LAUNCHES: 0.3,
    PATH: 0.1,
    MODE: 0.15,
    FRAMEWORK: 0.07,
    ARCHITECTURE: 0.07,
    GPU: 0.03,
    FAMILY: 0.07,
    SHARDING: 0.05,
    PRECISION: 0.05,
    Axis.RANKS: 0.03,
    Axis.PARAMETERS: 0.03,
    Axis.BATCH: 0.03,
    Axis.TOKENS: 0.03,
    Axis.SEQUENCE: 0.03,
    Axis.TENSOR: 0.03,
    Axis.PIPELINE: 0.03,
}
"""Deviations expected before any row was looked at: two teams tune one job to within 5 to 10% of
each other, each doubling of something is worth a few per cent, and inference by shares of the data
sheet that training reached is known half as well as training. Norms and activations move 1 to 3.7
times what they need, with a log deviation of 0.5 between eras of software. What a host takes to
launch a kernel is expected to differ by a third between frameworks."""
UNSEEN: Final = "unseen"
STOOD_IN: Final = "stood in for"
JUDGED: Final = "by deviations fitted without each series"
SEEN: Final = "seen"
SPREAD: Final = math.e
HELD: Final = 0.003
"""Weight of that expectation."""
FAR: Final = 1e3
"""Represents measured runs that do not exist."""
CARRIED: Final = {
    Grade.CARRIED: None,
    Grade.CARRIED_KERNELS: small_kernels_share,
    Grade.CARRIED_LAUNCHES: launch_share,
}
"""What another framework's kernels add: as a whole, and by a share of the step."""
_APART: Final = len(GRADES) + len(CARRIED)
KINDS: Final = (*NAMED, *map(str, PLACED))


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Errors with what they may depend on: one entry of each array a sample.

    `errors` are log(measured / predicted), `grade` the number of what the step is made of.
    `carried` has the share of the step that each of `CARRIED` is about, in its columns, 0 where no
    other framework's kernels are used. `different` has, for each distinct case,
    rows of measured runs and columns of `KINDS`: 1 or doublings; `case` is that of each sample.
    """

    family: NDArray[np.str_]
    series: NDArray[np.str_]
    what: NDArray[np.str_]
    errors: Vector
    grade: NDArray[np.int64]
    carried: Vector
    case: NDArray[np.int64]
    different: Vector

    def deviations(self, x: Vector) -> Vector:
        """Log deviation of every sample at deviations in the order of `EXPECTED`."""
        (base, others), apart = np.split(x[:_APART], [len(GRADES)]), x[_APART:]
        carried = ((others * self.carried) ** 2).sum(axis=1)
        far = ((self.different * apart) ** 2).sum(axis=2).min(axis=1)[self.case]
        found: Vector = np.sqrt(base[self.grade] ** 2 + carried + far)
        return found

    def scores(self, deviations: Vector) -> Vector:
        """Winkler score of every sample's interval, over the measured value."""
        half, predicted = NINETY * deviations, np.exp(-self.errors)
        low, high = predicted * np.exp(-half), predicted * np.exp(half)
        missed = np.maximum(0.0, low - 1.0) + np.maximum(0.0, 1.0 - high)
        found: Vector = high - low + 2.0 / OUTSIDE * missed
        return found

    def chosen(self, which: NDArray[np.bool_]) -> Samples:
        """Some of the samples."""
        own = {
            name: getattr(self, name)[which]
            for name in ("family", "series", "what", "errors", "grade", "carried", "case")
        }
        return replace(self, **own)

    def weights(self, power: float) -> Vector:
        """Each family of each kind of sample counts as a power of the number of its samples."""
        keys = np.char.add(self.what, self.family)
        _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
        raw = np.asarray(count[place], dtype=np.float64) ** (power - 1.0)
        return np.asarray(raw / raw.sum(), dtype=np.float64)


def left_out(found: Runs) -> Vector:
    """Steps of all runs, each predicted by figures that its series had no part in [s]."""
    seconds = found.step_times(kernel_files())
    for group in unseen_groups():
        own = np.isin(found.series, group.series)
        if group.figures and own.any():
            seconds[own] = found.chosen(own).step_times(with_values(group.figures))
    return seconds


def samples(found: Runs) -> Samples:
    """All samples of runs whose step was measured."""
    found = found.chosen(np.isfinite(found.seconds))
    anywhere = tuple(_in_any_framework(scenario) for scenario in found.scenarios)
    other = Runs(found.rows, anywhere)
    fitted_to = np.isin(found.series, [one for group in _fitted_groups() for one in group])
    parts = {
        UNSEEN: (found, left_out(found), np.full(len(found.rows), fill_value=True)),
        STOOD_IN: (other, left_out(other), np.full(len(found.rows), fill_value=True)),
        SEEN: (found, found.step_times(kernel_files()), fitted_to),
    }
    cases, carried = _Cases(), carried_shares(other)
    table = [
        (what, i, own.seconds[i] / seconds[i], cases.of(own, int(i), seen=what == SEEN))
        for what, (own, seconds, which) in parts.items()
        for i in np.flatnonzero(which)
    ]
    return Samples(
        family=np.array([str(found.families[i]) for _, i, _, _ in table]),
        series=np.array([str(found.series[i]) for _, i, _, _ in table]),
        what=np.array([what for what, *_ in table]),
        errors=np.log([ratio for *_, ratio, _ in table]),
        grade=np.array([GRADES.index(_grade(found.scenarios[i])) for _, i, _, _ in table]),
        carried=np.array([carried[i] * (what == STOOD_IN) for what, i, *_ in table]),
        case=np.array([case for *_, case in table]),
        different=cases.stacked(),
    )


def carried_shares(found: Runs) -> Vector:
    """The share of each step, by row, that each of `CARRIED` is about, by column."""
    own = found.kernels(kernel_files())
    steps = stacked(found.described, np.arange(len(found.rows)))
    whole = np.ones(len(found.rows))
    parts = [whole if share is None else share(steps, own) for share in CARRIED.values()]
    return np.stack([np.asarray(part) for part in parts], axis=1)


def _fitted_groups() -> Iterator[Sequence[str]]:
    return (group.series for group in unseen_groups() if group.figures)


def _in_any_framework(scenario: Scenario) -> Scenario:
    software = replace(scenario.job.software, framework=ANY)
    return replace(scenario, jobs=(replace(scenario.job, software=software),))


def _grade(scenario: Scenario) -> Grade:
    """What a step is made of, read from its uncertainty."""
    names = {f"{Rate.STEP}, {grade}": grade for grade in GRADES}
    return next(
        names[component.name] for component in uncertainties_of(scenario) if component.name in names
    )


class _Cases:
    """What runs differ in from measured ones; equal cases are worked out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], int] = {}
        self._tables: list[Vector] = []

    def of(self, own: Runs, i: int, *, seen: bool) -> int:
        """The number of a run's case."""
        scenario = own.scenarios[i]
        names, place = named(scenario), compared(scenario)
        out = () if seen else siblings(str(own.series[i]))
        key = (out, tuple(names.items()), tuple(place.items()))
        if key not in self._known:
            every = shipped_envelope().without(out).measured
            measured = [one for one in every if comparable(names, one)]
            rows = np.array(sorted({_different(names, place, one) for one in measured}))
            self._known[key] = len(self._tables)
            self._tables.append(rows[[not _is_further(row, rows) for row in rows]])
        return self._known[key]

    def stacked(self) -> Vector:
        """All of them: cases, measured runs, kinds."""
        most = max(len(table) for table in self._tables)
        found: Vector = np.full((len(self._tables), most, len(KINDS)), FAR)
        for i, table in enumerate(self._tables):
            found[i, : len(table)] = table
        return found


def _is_further(row: Vector, rows: Vector) -> bool:
    return bool(np.any(np.all(rows <= row, axis=1) & np.any(rows < row, axis=1)))


def _different(
    names: Mapping[str, str], place: Mapping[Axis, float], one: Measured
) -> tuple[float, ...]:
    parts = [float(one.names.get(kind, name) != name) for kind, name in names.items()]
    by_kind = dict(zip(names, parts, strict=True))
    for axis, (low, high) in one.spans.items():
        by_kind[axis] = float(doublings_outside(place.get(axis, low), low, high))
    return tuple(by_kind.get(kind, 0.0) for kind in KINDS)


def fitted(found: Samples) -> Vector:
    """The deviations that score best, in the order of `EXPECTED`.

    The addition for an unmeasured framework is fitted last, to the runs under such a one, with
    all others held: how far those are off says nothing of series that have kernels of their own.
    """
    stood_in = found.what == STOOD_IN
    others = found.chosen(stood_in)
    best = fitted_apart(found.chosen(~stood_in))
    best = _best(others, others.weights(0.0), best, _CARRIED_ONES[None, :], shared=False)
    return np.asarray(np.exp(best))


def fitted_apart(found: Samples) -> Vector:
    """Logarithms of the deviations of steps under frameworks of their own; the others as expected.

    What steps are made of shares a factor, and all differences from measured runs another.
    """
    made_of = np.array([one in GRADES for one in EXPECTED])
    parts = np.array([made_of, ~made_of & ~_CARRIED_ONES])
    return _best(found, found.weights(0.5), _AS_EXPECTED, parts, shared=True)


def left_out_deviations(found: Samples) -> Vector:
    """Log deviation of every sample of a series, by deviations fitted without it and its siblings.

    Series outside all groups use figures fitted to all rows.
    """
    deviations = found.deviations(np.exp(fitted_apart(found)))
    for group in unseen_groups():
        own = np.isin(found.series, group.series)
        if own.any():
            best = np.exp(fitted_apart(found.chosen(~own)))
            deviations[own] = found.chosen(own).deviations(best)
    return deviations


_CARRIED_ONES: Final = np.array([one in CARRIED for one in EXPECTED])
_AS_EXPECTED: Final = np.log(list(EXPECTED.values()))


def _best(
    found: Samples, weight: Vector, start: Vector, parts: NDArray[np.bool_], *, shared: bool
) -> Vector:
    """Logarithms of the deviations, those of `parts` as they score best and the others as they are.

    Each part, a row of `parts`, has a factor that is free where they are `shared`.
    """
    free = parts.any(axis=0)
    factors = parts.astype(float) if shared else np.zeros((0, len(start)))

    def apart(some: Vector) -> tuple[Vector, Vector]:
        """What every deviation is, and how far each lies from what is expected of it."""
        common, own = np.split(some, [len(factors)])
        beside, every = np.zeros(len(start)), start.copy()
        beside[free] = own
        every[free] = (_AS_EXPECTED + common @ factors + beside)[free]
        return every, beside

    def cost(some: Vector) -> float:
        x, beside = apart(some)
        moved = float(np.sum((beside / math.log(SPREAD)) ** 2))
        return float(weight @ found.scores(found.deviations(np.exp(x)))) + HELD * moved

    best = np.zeros(len(factors) + int(free.sum()))
    for method in ("Powell", "Nelder-Mead", "Powell"):
        best = minimize(cost, best, method=method, options={"maxiter": 4000}).x
    return apart(best)[0]


def of_memory(found: Runs) -> tuple[dict[str, float], Iterator[str]]:
    """Log deviations of memory: as a whole, what being unlike measured runs adds; what they mean.

    The former is that of runs predicted without their series, the latter what they are off by more
    under an unmeasured framework.
    """
    found = found.chosen(np.isfinite(found.memory))
    other = Runs(found.rows, tuple(_in_any_framework(scenario) for scenario in found.scenarios))
    sizes = {SEEN: found.memory_sizes(kernel_files())}
    for what, own in ((UNSEEN, found), (STOOD_IN, other)):
        sizes[what] = own.memory_sizes(kernel_files())
        for group in unseen_groups():
            some = np.isin(found.series, group.series)
            if group.figures and some.any():
                sizes[what][some] = own.chosen(some).memory_sizes(with_values(group.figures))
    errors = {what: np.log(found.memory / size) for what, size in sizes.items()}
    widths = {what: _width_of(own, found.families) for what, own in errors.items()}
    far = math.sqrt(max(0.0, widths[STOOD_IN] ** 2 - widths[UNSEEN] ** 2))
    lines = (
        f"memory, {what}: {len(own)} runs, deviation {widths[what]:.3f}, within "
        f"{np.mean(np.abs(own) <= NINETY * widths[what]):.0%}, median {np.median(np.abs(own)):.1%}"
        for what, own in errors.items()
    )
    return {MEMORY: widths[UNSEEN], UNLIKE: far}, lines


def _width_of(errors: Vector, families: NDArray[np.str_]) -> float:
    """The deviation that scores best where families count as the root of their runs."""
    _, place, count = np.unique(families, return_inverse=True, return_counts=True)
    weight = 1.0 / np.sqrt(count[place])
    half = NINETY * np.linspace(0.01, 0.5, 491)[:, None]
    missed = np.maximum(0.0, np.abs(errors) - half)
    scores = ((2.0 * half + 2.0 / OUTSIDE * missed) * weight).sum(axis=1)
    return float(half[scores.argmin(), 0] / NINETY)


def table(found: Samples, deviations: Vector) -> Iterator[str]:
    """Return coverage and score by kind of sample and family, compared with one width for all."""
    half = NINETY * deviations
    within, scores = np.abs(found.errors) <= half, found.scores(half / NINETY)
    yield f"{'samples':14} {'family':16} {'n':>5} {'within':>7} {'half':>6} {'score':>6} one width"
    for what in dict.fromkeys(map(str, found.what)):
        own = found.what == what
        flat = _one_width(found.chosen(own))
        for family in (*dict.fromkeys(map(str, found.family[own])), "all"):
            some = own & ((found.family == family) | (family == "all"))
            beside = found.chosen(some).scores(np.full(int(some.sum()), flat))
            yield (
                f"{what:14} {family:16} {some.sum():5d} {within[some].mean():7.0%} "
                f"{np.median(half[some]):6.3f} {scores[some].mean():6.3f} {beside.mean():.3f}"
            )


def _one_width(found: Samples) -> float:
    tried = np.linspace(0.01, 0.5, 99)
    every = np.ones(len(found.errors))
    return float(min(tried, key=lambda sd: float(found.scores(sd * every).mean())))


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``."""
    every = runs(SET if tables is None else str(tables / f"{SET}.toml"))
    found = samples(every)
    say(f"{len(found.errors)} errors, {len(found.different)} cases")
    best = fitted(found)
    memory, told = of_memory(every)
    fitted_values = {**dict(zip(EXPECTED, best, strict=True)), **memory}
    values = {name: float(f"{value:.3g}") for name, value in fitted_values.items()}
    unseen = int((found.what == UNSEEN).sum())
    own = found.chosen(found.what == UNSEEN)
    told_by = found.chosen(found.what != STOOD_IN)
    judged = left_out_deviations(told_by)[told_by.what == UNSEEN]
    why = f"fitted to the errors of {unseen} steps predicted by figures fitted without their series"
    old = TARGET.read_text(encoding="utf-8")
    return Outcome(
        figures={str(name): value for name, value in values.items()},
        shipped={str(name): _known(name) for name in values},
        files={TARGET.name: _rewritten(old, values, why)},
        lines=(*table(found, found.deviations(best)), JUDGED, *table(own, judged), *told),
    )


def _known(name: str) -> float:
    if name in (*GRADES, *CARRIED):
        return graded(Rate.STEP, Grade(name)).log_sd
    if name in memory_deviations():
        return memory_deviations()[name]
    return shipped_envelope().apart[str(name)].log_sd


def _rewritten(text: str, values: Mapping[str, float], why: str) -> str:
    """The file with other deviations, and what they follow from."""
    heads = {name: f'[[apart]]\nkind = "{name}"\n' for name in values}
    for grade in (*GRADES, *CARRIED):
        heads[grade] = f'rate = "{Rate.STEP}"\ngrade = "{grade}"\n'
    for kind in memory_deviations():
        heads[kind] = f'[[memory]]\nkind = "{kind}"\n'
    today = f"{datetime.now(tz=UTC):%Y-%m-%d}"
    for name, value in values.items():
        pattern = re.compile(rf"({re.escape(heads[name])})log_sd = .*\n(?:\w+ = .*\n)*")
        made = rf'\g<1>log_sd = {value:.3g}\nsource = "{why}"\ndate = "{today}"\n'
        text = pattern.sub(made, text, count=1)
    return text
