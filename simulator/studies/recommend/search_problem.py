"""A search problem: one scenario and goal, what is searched, how it is judged, who predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from simulator.equations.reliability import best_checkpoint_interval, time_with_interruptions
from simulator.physics.footprint import Verdict
from simulator.pipeline.program import CHECKPOINTING
from simulator.pipeline.run_length import checkpoint_time as time_to_write
from simulator.pipeline.run_length import lengths
from simulator.pipeline.stages.base import Phase, ask
from simulator.pipeline.topology import build
from simulator.reading.search.candidates import CandidateReader
from simulator.results.metrics import Value
from simulator.schema.cost import Purchase
from simulator.schema.goal import Goal, Limits, Objective, Plain, Spot
from simulator.schema.scenario import Scenario
from simulator.studies.baseline import (
    MACHINE_KEYS,
    Baseline,
    Machine,
    Settings,
    keeps_pin,
    keeps_pins,
    pinned_seeds,
)
from simulator.studies.data_migration import Move, moves, with_copies
from simulator.studies.levers import COUNT, MACHINE, PURCHASE, STORE
from simulator.studies.levers.lever import Shortage
from simulator.studies.recommend.limits import (
    PORTING,
    Program,
    Rule,
    RuledOffer,
    broken,
    check_regions,
    program_of,
    rules_of,
)
from simulator.studies.recommend.ranking import (
    MONEY,
    PREPARED_WHERE,
    TIME,
    Choice,
    GoalValue,
    goal_value_of,
    number,
)
from simulator.studies.recommend.space import Space, cpu_relief, space_of
from simulator.studies.search.evaluate import Bounded
from simulator.studies.search.explore import (
    NOT_STORED,
    TIME_AND_COST,
    Judge,
    Request,
    Standing,
    bounds_of,
    explore,
)
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.store import Store
from simulator.studies.search.workers import Workers
from simulator.units import HOUR, Seconds

_HELD_COSTS = ("cost.storage.rent_usd", "cost.storage.provisioned_usd")
"""What is paid as long as the run lasts."""
_GROWING = ("cost.usd_per_step", "cost.time_to_train_s", *_HELD_COSTS)
_SHRINKING = ("cost.samples_per_usd",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A run on machines that are taken away, as it goes in the mean.

    `interval` is the work between two checkpoints and `write` the time of one [s], `losses` how
    often the run is interrupted; `stretch` how many times as long it takes for all that.
    """

    interval: Seconds
    write: Seconds
    losses: float
    stretch: float


def interrupted(
    scenario: Scenario, spot: Spot, total: Seconds, step: Seconds
) -> Interruption | None:
    """Return the effect of interruptions on a run; None for machines bought on demand.

    Parameters
    ----------
    scenario : Scenario
        The run; its own checkpoints count if it writes any, else the best interval is taken.
    spot : Spot
        How often one machine is taken away, and what a restart takes. Machines are taken away
        independently, and the run stops if any of them is.
    total, step : float
        The run and its mean step without interruptions [s].
    """
    if scenario.cost.purchase is not Purchase.SPOT:
        return None
    rate = spot.rate * sum(group.count for group in scenario.cluster.groups)
    write = checkpoint_time(scenario)
    given = scenario.job.train.checkpoint_every_steps
    if given is None:
        work, interval = total, max(step, float(best_checkpoint_interval(rate, write)))
    else:
        written = lengths(scenario).total_steps // given
        work, interval = total - written * write, given * step
    interval = min(interval, work)
    took = float(time_with_interruptions(work, rate, interval, write, spot.restart))
    return Interruption(interval=interval, write=write, losses=rate * took, stretch=took / total)


def checkpoint_time(scenario: Scenario) -> Seconds:
    """Time in which all copy and write their shares of the state [s]; 0 without a model."""
    job = scenario.job
    train = replace(job.train, checkpoint_every_steps=1.0)
    writing = replace(scenario, jobs=(replace(job, train=train),))
    return float(time_to_write(build(scenario), ask(CHECKPOINTING, writing, Phase.WARM)))


def with_losses(figures: Mapping[str, Value], lost: Interruption) -> dict[str, Value]:
    """The figures of a run with what interruptions cost in them; step times stay as they are."""
    changed = dict(figures)
    total, money = number(figures, TIME), number(figures, MONEY)
    if total is None:
        return changed
    changed[TIME] = total * lost.stretch
    for name, factor in (
        *((name, lost.stretch) for name in _GROWING),
        *((name, 1.0 / lost.stretch) for name in _SHRINKING),
    ):
        value = number(figures, name)
        if value is not None:
            changed[name] = value * factor
    rent, longer = number(figures, "cost.usd_per_h"), lost.stretch - 1.0
    if money is not None and rent is not None:
        held = sum(number(figures, name) or 0.0 for name in _HELD_COSTS)
        changed[MONEY] = money + (rent / HOUR * total + held) * longer
    return changed


_PLACEMENT_KEYS: Final = (MACHINE, STORE, "data.", "remote.", PREPARED_WHERE, "input.prepared")
"""Beginnings of the keys that say where the data lie, and how large they are."""
PlacementKey: TypeAlias = tuple[tuple[str, Plain], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProblem:
    """One scenario and goal, prepared: what is looked at, and how it is judged.

    `program` is what the job's program runs on; None where it uses no accelerator.
    """

    baseline: Baseline
    goal: Goal
    rules: tuple[Rule, ...]
    worth: GoalValue
    space: Space
    ideas: Mapping[int, str]
    excluded: Mapping[str, int]
    settings: tuple[Settings, ...]
    program: Program | None = None
    seeds: tuple[Settings, ...] = ({},)
    _copies: dict[PlacementKey, tuple[Move, ...]] = field(default_factory=dict, repr=False)

    @property
    def ports(self) -> tuple[str, ...]:
        """Software of accelerators that are left out only as the program does not run on it."""
        if self.program is None:
            return ()
        others = [rule for rule in self.rules if rule.of_hardware and rule.name != PORTING]
        return tuple(
            sorted(
                {
                    machine.stack
                    for machine in self.baseline.machines
                    if not self.program.may_run_on(machine)
                    and not broken(others, RuledOffer(machine=machine, count=1, figures={}))
                }
            )
        )

    def machine(self, settings: Settings) -> Machine:
        """The machine of a candidate."""
        return self.baseline.machine(str(settings[MACHINE]))

    def judged(self, outcome: Outcome) -> Choice:
        """A candidate's outcome as the goal sees it."""
        settings = outcome.candidate.settings
        machine, count = self.machine(settings), self.count(settings)
        figures = self.counted(outcome.candidate, outcome.figures)
        subject = RuledOffer(machine=machine, count=count, figures={**settings, **figures})
        return Choice(
            machine=machine,
            outcome=outcome,
            count=count,
            figures=figures,
            value=self.worth(figures),
            broken=broken(self.rules, subject) if outcome.status is Status.PREDICTED else (),
            idea=self.ideas.get(outcome.candidate.index, ""),
            copied=number(figures, TIME) is not None and bool(self.copies(settings)),
        )

    def counted(self, candidate: Candidate, figures: Mapping[str, Value]) -> Mapping[str, Value]:
        """A candidate's figures with what copying its data takes in them, and what spot loses."""
        if number(figures, TIME) is None:  # refused, or not predicted: it may not even be read
            return figures
        return with_copies(self._disturbed(candidate, figures), self.copies(candidate.settings))

    def copies(self, settings: Settings) -> tuple[Move, ...]:
        """The copies of the data that a candidate needs before it can run."""
        placed = tuple(sorted((k, v) for k, v in settings.items() if k.startswith(_PLACEMENT_KEYS)))
        if placed not in self._copies:
            baseline, machine = self.baseline, settings.get(MACHINE, self.baseline.own.name)
            chosen = baseline.reader.read(settings).scenario
            other = machine != baseline.own.name
            self._copies[placed] = moves(baseline.scenario, chosen, elsewhere=other)
        return self._copies[placed]

    def _disturbed(self, candidate: Candidate, figures: Mapping[str, Value]) -> Mapping[str, Value]:
        """A candidate's figures with lost work and restarts in them where it is spot capacity."""
        spot, settings = self.goal.spot, candidate.settings
        total, step = number(figures, TIME), number(figures, "step_time_s.mean")
        if spot is None or PURCHASE not in settings or total is None or step is None:
            return figures
        scenario = self.baseline.reader.read(settings).scenario
        lost = interrupted(scenario, spot, total, step)
        return figures if lost is None else with_losses(figures, lost)

    def is_searched(self, settings: Settings) -> bool:
        """Return whether a candidate lies on the axes that the goal names itself."""
        return _is_on_axes(self.baseline, self.seeds, settings)

    def needs_consent(self, settings: Settings) -> bool:
        """Return whether a candidate changes how samples are prepared, which the user must want."""
        own = self.baseline.scenario.job.input.where.value
        return settings.get(PREPARED_WHERE, own) != own

    def count(self, settings: Settings) -> int:
        """Return the number of machines that train."""
        return int(settings[COUNT])

    def keeps(self, settings: Settings, key: str) -> bool:
        """Return whether a candidate keeps one of the pins."""
        value = self.goal.pins[key]
        return keeps_pin(self.baseline, self.machine(settings), settings, key, value)

    def pinned(self, choice: Choice, without: str = "") -> bool:
        """Return whether a choice keeps the pins, one of them left out."""
        pins = {key: value for key, value in self.goal.pins.items() if key != without}
        return keeps_pins(self.baseline, choice.machine, choice.settings, pins)


def define_problem(
    baseline: Baseline, goal: Goal, seeds: Iterable[Settings] = ({},)
) -> SearchProblem:
    """Prepare a search: its limits, its space, and what would help the scenario as it stands.

    Parameters
    ----------
    ground : Ground
        The scenario and what is on offer.
    goal : Goal
        What is looked for.
    seeds : iterable of settings
        Points along the axes that the goal names itself.

    Raises
    ------
    PlanError
        If the goal names something that doesn't exist.
    """
    seeds = tuple(seeds)
    check_regions(goal.limits, baseline.machines)
    program = _program(baseline, goal)
    rules = rules_of(goal.limits, program)
    offered, excluded = _allowed_machines(baseline, rules)
    given = {key: baseline.reader.given(key) for key in goal.pins}
    base = {key: value for key, value in given.items() if isinstance(value, str | int | float)}
    starts = list(pinned_seeds(goal.pins, seeds, base))
    space = space_of(baseline, goal, offered, starts)
    now: Settings = {
        MACHINE: baseline.own.name,
        COUNT: baseline.scenario.cluster.trainers.count,
    }
    pinned = {key: value for key, value in goal.pins.items() if key not in MACHINE_KEYS}
    shortage = Shortage(
        baseline=baseline, offered=tuple(offered), helpers=_helper_machines(baseline, rules)
    )
    helping = [
        (name, {**pinned, **one})
        for name, one in cpu_relief(shortage, goal.alternatives)
        if _is_on_axes(baseline, seeds, one)
    ]
    settings = [now, *space.settings, *(one for _, one in helping)]
    first = 1 + len(space.settings)
    ideas = {first + i: name for i, (name, _) in enumerate(helping)}
    return SearchProblem(
        baseline=baseline,
        goal=goal,
        rules=rules,
        program=program,
        worth=goal_value_of(goal.objective),
        space=space,
        ideas=ideas,
        excluded=dict(excluded),
        settings=tuple(settings),
        seeds=seeds,
    )


def _allowed_machines(
    baseline: Baseline, rules: Iterable[Rule]
) -> tuple[list[Machine], Counter[str]]:
    """Machines that the limits on hardware leave, and how many each limit leaves out."""
    of_hardware = [rule for rule in rules if rule.of_hardware]
    offered, excluded = [], Counter[str]()
    for machine in baseline.machines:
        names = broken(of_hardware, RuledOffer(machine=machine, count=1, figures={}))
        # A machine that another limit leaves out too is not one that a port would gain.
        excluded.update([name for name in names if name != PORTING] or names)
        if not names:
            offered.append(machine)
    return offered, excluded


def _program(baseline: Baseline, goal: Goal) -> Program | None:
    """Return the accelerator software of the job's program; None for a job on processors."""
    if not any(baseline.gpus(machine) for machine in baseline.machines):
        return None
    own = baseline.own if baseline.gpus(baseline.own) else replace(baseline.own, stack="")
    return program_of(baseline.scenario.job.software.framework, own, goal)


def _is_on_axes(baseline: Baseline, seeds: Iterable[Settings], settings: Settings) -> bool:
    machine = baseline.machine(str(settings[MACHINE]))
    return any(keeps_pins(baseline, machine, settings, seed) for seed in seeds)


HELPER_LIMITS = frozenset({"clouds", "regions"})
"""Limits that machines which only prepare batches must keep too."""


def _helper_machines(baseline: Baseline, rules: Iterable[Rule]) -> tuple[Machine, ...]:
    """Return machines that may prepare batches: limits on accelerators do not apply to them."""
    kept = [rule for rule in rules if rule.name in HELPER_LIMITS]
    return tuple(
        machine
        for machine in baseline.machines
        if not broken(kept, RuledOffer(machine=machine, count=1, figures={}))
    )


FIRST_PER_WANTED: Final = 1
"""Candidates that are predicted for each one wanted before any is ruled out."""


class SearchProgress:
    """Progress of a search of several requests.

    Parameters
    ----------
    tell : callable, optional
        Called with the finished share, and how far the request of the moment is; what it has
        counted are predictions of all requests so far.
    """

    def __init__(self, tell: Callable[[float, Standing], None] | None = None) -> None:
        self._tell = tell
        self._done = self._share = 0.0
        self._predicted = self._stored = 0
        self._last: Standing | None = None

    @property
    def predicted(self) -> int:
        """Predictions made so far, by all requests together."""
        return 0 if self._last is None else self._last.predicted

    def begin(self, share: float) -> None:
        """The requests that follow are so much of what is left."""
        self._done += self._share
        self._share = share * (1.0 - self._done)

    def next(self) -> None:
        """Another request begins; it counts from zero."""
        if self._last is not None:
            self._predicted, self._stored = self._last.predicted, self._last.stored

    def told(self, standing: Standing) -> None:
        """Report the progress of the current request."""
        self._last = replace(
            standing,
            predicted=self._predicted + standing.predicted,
            stored=self._stored + standing.stored,
        )
        if self._tell is not None:
            self._tell(self._done + self._share * standing.done, self._last)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBackend:
    """The predictor of requests.

    `bounds` tells what is known without any prediction, `progress` takes the share of the whole
    that follows. `missing` are the keys of wanted candidates without a prediction.
    """

    of: Callable[[Request], tuple[Outcome, ...]]
    bounds: Callable[[Request], dict[int, Bounded]]
    progress: SearchProgress = field(default_factory=SearchProgress)
    missing: set[str] = field(default_factory=set)


def search_backend(
    workers: Workers,
    store: Store | None,
    tell: Callable[[float, Standing], None] | None = None,
    *,
    stored_only: bool = False,
) -> SearchBackend:
    """Return a backend that predicts all that could still be wanted.

    Parameters
    ----------
    workers : Workers
        Who reads candidates and predicts them.
    store : Store, optional
        What it has is not predicted again.
    tell : callable, optional
        Called with the finished share.
    stored_only : bool
        Predict nothing; what the store does not have is `missing`.
    """
    progress, missing = SearchProgress(tell), set[str]()

    def of(request: Request) -> tuple[Outcome, ...]:
        progress.next()
        wanted = replace(request, stored_only=stored_only)
        found = explore(wanted, workers=workers, store=store, progress=progress.told)
        missing.update(one.key for one in found if one.reason == NOT_STORED)
        return found

    def bounds(request: Request) -> dict[int, Bounded]:
        progress.next()
        wanted = replace(request, stored_only=stored_only)
        return bounds_of(wanted, workers=workers, store=store, progress=progress.told)

    return SearchBackend(of=of, bounds=bounds, progress=progress, missing=missing)


@dataclass(slots=True, kw_only=True)
class Search:
    """A search that goes on: candidates, and what is known of each so far.

    `judge` says how a candidate's figures count; `bounded` is known of candidates at once, from
    the first question about all of them on.
    """

    reader: CandidateReader
    goal: Goal
    candidates: tuple[Candidate, ...]
    backend: SearchBackend
    known: dict[int, Outcome]
    judge: Judge | None = None
    seed: int = 0
    bounded: dict[int, Bounded] | None = None

    @staticmethod
    def of(problem: SearchProblem, backend: SearchBackend, *, seed: int) -> Search:
        """A search that knows nothing yet."""
        return Search(
            reader=problem.baseline.reader,
            goal=problem.goal,
            candidates=tuple(
                Candidate(index=index, settings=one) for index, one in enumerate(problem.settings)
            ),
            backend=backend,
            known={},
            judge=problem.counted,
            seed=seed,
        )

    def bound(self, share: float) -> None:
        """Know of all candidates at once what no prediction is needed for; a share of the work."""
        self.backend.progress.begin(share)
        self.bounded = self.backend.bounds(self._request(self.candidates, (self.goal.objective,)))

    def best_of(
        self,
        candidates: Sequence[Candidate],
        *,
        top: int = 1,
        close: float = 0.0,
        within_limits: bool = True,
    ) -> None:
        """Make sure that the best of these under the goal are predicted, if any may be best.

        Parameters
        ----------
        candidates : sequence of Candidate
            Which ones.
        top : int
            Number of them.
        close : float
            Share by which another one may be better all the same.
        within_limits : bool
            Also apply the limits on time and cost, not only on memory.
        """
        where = limits_as_text(self.goal.limits) if within_limits else self._memory()
        request = self._request(candidates, (self.goal.objective,))
        request = replace(
            request, top=top, margin=-close, first=FIRST_PER_WANTED * top, where=where
        )
        self._learn(request)

    def front(self, candidates: Sequence[Candidate], *, close: float = 0.0) -> None:
        """The front of these in time and cost within the limits on memory.

        What is ahead of it by no more than a share `close` may be missing.
        """
        request = self._request(candidates, TIME_AND_COST)
        self._learn(replace(request, margin=-close, where=self._memory()))

    def all_of(self, candidates: Sequence[Candidate]) -> None:
        """Predict all of these."""
        self._learn(replace(self._request(candidates, (self.goal.objective,)), exhaustive=True))

    def meeting(self, candidates: Sequence[Candidate], objective: Objective, where: str) -> None:
        """The best of these that meet a condition, by an objective."""
        request = self._request(candidates, (objective,))
        self._learn(replace(request, top=1, first=FIRST_PER_WANTED, where=where))

    def _request(
        self, candidates: Sequence[Candidate], objectives: tuple[Objective, ...]
    ) -> Request:
        return Request(
            reader=self.reader,
            candidates=tuple(candidates),
            objectives=objectives,
            seed=self.seed,
            intervals=True,
            judge=self.judge,
            bounded=self.bounded,
        )

    def _learn(self, request: Request) -> None:
        if not request.candidates:
            return
        for outcome in self.backend.of(request):
            before = self.known.get(outcome.candidate.index)
            if before is None or before.status is not Status.PREDICTED:
                self.known[outcome.candidate.index] = outcome

    def _memory(self) -> str:
        return limits_as_text(replace(self.goal.limits, deadline=None, budget=None))


def limits_as_text(limits: Limits) -> str:
    """The limits that need figures as a condition; what may not fit is not recommended.

    Examples
    --------
    >>> limits_as_text(Limits(deadline=60.0, gpu_memory_margin=0.25)).split(" and ")[1::3]
    ['not gpu_memory_bytes.total > 0.75 * gpu_memory_bytes.capacity', 'total_time_s <= 60.0']
    """
    margins = (
        ("host_ram_bytes", limits.ram_margin),
        ("gpu_memory_bytes", limits.gpu_memory_margin),
    )
    parts = [
        f"not {what}.total > {1.0 - margin!r} * {what}.capacity"  # what has none keeps it
        for what, margin in margins
    ]
    parts += [f"not {name} == '{Verdict.UNCERTAIN.value}'" for name in ("fits.host", "fits.gpu")]
    parts += [f"({limits.where})"] if limits.where else []
    parts += [] if limits.deadline is None else [f"{TIME} <= {limits.deadline!r}"]
    parts += [] if limits.budget is None else [f"{MONEY} <= {limits.budget!r}"]
    return " and ".join(parts)
