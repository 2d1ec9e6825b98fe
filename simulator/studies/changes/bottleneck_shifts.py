"""What would move the bottleneck: for each resource, from which value on something else limits.

The names come from predictions. The closed form only says where to look first, since it knows
what each resource imposes without simulating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.errors import BrokenInvariant, PlanError
from simulator.pipeline.loads import pressures
from simulator.pipeline.stages.base import Phase
from simulator.predict import predict, simulation_input
from simulator.schema.scenario import Scenario
from simulator.studies.changes.levers import Knob, Read, turned
from simulator.studies.changes.whatif import Progress
from simulator.studies.search.outcome import BugLog, log_bug

FARTHEST: Final = 64.0
"""How many times as much, or as little, of a resource is looked at."""
MOST_WORKERS: Final = 256.0
"""The most of anything counted that is looked at."""
CLOSE: Final = 1.04
"""Ratio of two values, of which one is before the flip and one behind it, that is close enough."""
SIMULATED: Final = 100
"""Steps of an epoch that are simulated at most: who limits shows in fewer than how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Turned to `at`, a knob makes `after` limit the job in place of `before`.

    `at` lies behind the flip, by less than `CLOSE`; `rises`: more of it does so, else less.
    """

    knob: Knob
    at: float
    rises: bool
    before: str
    after: str


def flips(
    read: Read,
    knobs: Sequence[Knob],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    met: BugLog | None = None,
) -> tuple[Flip, ...]:
    """Where more or less of each resource moves the bottleneck, those that need least first.

    Parameters
    ----------
    read : callable
        Reads the scenario with some keys set.
    knobs : sequence of Knob
        What is turned, one at a time, up to `FARTHEST` times as far.
    seed : int
        Of all draws.
    progress : callable, optional
        Told the share that is done.
    met : Met, optional
        Where bugs of ours on the way are noted; without it the first one is raised.
    """
    scenario = read({})
    base, imposing = _limit(scenario, seed), _imposing(scenario)
    found: list[Flip] = []
    turnable = [knob for knob in knobs if knob.limits and knob.value > 0.0]
    for number, knob in enumerate(turnable, start=1):
        search = _Search(read=read, knob=knob, seed=seed, base=base, imposing=imposing, met=met)
        found += _of_knob(search)
        if progress is not None:
            progress(number / len(turnable))
    return tuple(sorted(found, key=lambda flip: abs(math.log(flip.at / flip.knob.value))))


def _ends(knob: Knob) -> Iterator[float]:
    high = max(MOST_WORKERS, knob.value) if knob.whole else knob.value * FARTHEST
    low = max(knob.least, 0.0 if knob.whole else knob.value / FARTHEST)
    yield from (end for end in (high, low) if end != knob.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What limits the job with a knob at a value; empty where there is no such job.

    `base` limits it as it is; `imposing` is what the closed form says of that.
    """

    read: Read
    knob: Knob
    seed: int
    base: str
    imposing: str
    met: BugLog | None

    def moves(self, value: float) -> bool:
        """Whether something else limits the job; not simulated where the closed form is sure."""
        sure = self.base == self.imposing and self.guess(value) == self.base
        return not sure and self.limit(value) not in {"", self.base}

    def limit(self, value: float) -> str:
        """As predicted."""
        return self._ask(value, lambda scenario: _limit(scenario, self.seed))

    def guess(self, value: float) -> str:
        """In closed form."""
        return self._ask(value, _imposing)

    def _ask(self, value: float, of: Callable[[Scenario], str]) -> str:
        try:
            return of(turned(self.read, self.knob, value))
        except PlanError:
            return ""
        except BrokenInvariant as error:
            log_bug(error, self.met)
            return ""


def _of_knob(search: _Search) -> Iterator[Flip]:
    knob = search.knob
    for end in _ends(knob):
        if search.moves(end):
            at, name = _bisect(search, knob.value, end)
            yield Flip(knob=knob, at=at, rises=end > knob.value, before=search.base, after=name)


def _limit(scenario: Scenario, seed: int) -> str:
    timing = predict(scenario, seed=seed, intervals=False, max_steps=SIMULATED).timing
    return timing.bottleneck


def _imposing(scenario: Scenario) -> str:
    inputs = simulation_input(scenario)
    last = Phase.WARM if inputs.lengths.epochs > 1.0 else Phase.COLD
    return next(iter(pressures(scenario, inputs.topology, inputs.demands[last])))


def _bisect(search: _Search, near: float, far: float) -> tuple[float, str]:
    """The nearest value at which something else limits the job, and what."""
    whole = search.knob.whole
    behind = search.limit(far)
    guess = _guessed(search, near, far)
    probes = [] if guess is None else _around(guess, near, far, whole=whole)
    while not _done(near, far, whole=whole):
        at = probes.pop() if probes else _between(near, far, whole=whole)
        if not min(near, far) < at < max(near, far):
            continue
        name = search.limit(at)
        if name in {"", search.base}:
            near = at
        else:
            far, behind = at, name
    return far, behind


def _done(near: float, far: float, *, whole: bool) -> bool:
    return abs(far - near) <= 1.0 if whole else max(near, far) / min(near, far) <= CLOSE


def _between(near: float, far: float, *, whole: bool) -> float:
    return float((near + far) // 2.0) if whole else math.sqrt(near * far)


def _around(guess: float, near: float, far: float, *, whole: bool) -> list[float]:
    """A value just behind a guess and one just before it; the last one is tried first."""
    outward = 1.0 if far > near else -1.0
    if whole:
        return [guess - outward, guess]
    return [guess / CLOSE ** (outward / 3.0), guess * CLOSE ** (outward / 3.0)]


def _guessed(search: _Search, near: float, far: float) -> float | None:
    """Where the closed form has another resource impose the most; None where it sees no change."""
    whole = search.knob.whole
    first = search.imposing
    if search.guess(far) in {"", first}:
        return None
    exact = CLOSE ** (1.0 / 8.0)
    while abs(far - near) > 1.0 if whole else max(near, far) / min(near, far) > exact:
        at = _between(near, far, whole=whole)
        if search.guess(at) in {"", first}:
            near = at
        else:
            far = at
    return far
