"""Search problem of a recommendation: scenario, goal, candidates, rules and predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

from simulator.equations.reliability import best_checkpoint_interval, time_with_interruptions
from simulator.errors import InputError, PlanError
from simulator.pipeline.checkpoints import blocking_time
from simulator.pipeline.program import check_modelled
from simulator.pipeline.run_length import lengths
from simulator.pipeline.topology import build
from simulator.records import dataclass
from simulator.results.metrics import Value
from simulator.schema.cost import Purchase
from simulator.schema.data_loading import Preparation
from simulator.schema.goal import Goal, Objective, Plain, Spot
from simulator.schema.scenario import Scenario
from simulator.studies.baseline import (
    MACHINE_KEYS,
    Baseline,
    Machine,
    keeps_pin,
    keeps_pins,
    pinned_seeds,
)
from simulator.studies.data_migration import Move, moves, with_copies
from simulator.studies.levers import COUNT, MACHINE, PURCHASE, STORE, Settings
from simulator.studies.levers.catalogue import RELIEF, SEARCH, candidates, relief
from simulator.studies.levers.lever import SearchPoint, Shortage, UnfitError
from simulator.studies.levers.machines import carried_cpu_times
from simulator.studies.recommend.limits import (
    PORTING,
    Program,
    Rule,
    RuledOffer,
    broken,
    check_regions,
    limits_as_text,
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
from simulator.studies.search.evaluate import Bounded
from simulator.studies.search.explore import (
    NOT_STORED,
    TIME_AND_COST,
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
    """Expected interruptions of a run on spot machines.

    `interval` is the work between two checkpoints and `write` the time of one [s], `losses` the
    number of interruptions; `stretch` is the run time relative to a run without them.
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
        Run whose checkpoint interval is used, or the optimal one if it writes none.
    spot : Spot
        Rate of interruptions of one machine, and time of a restart. Machines are interrupted
        independently, and the run stops if any of them is.
    total, step : float
        Run time and mean step time without interruptions [s].
    """
    if scenario.cost.purchase is not Purchase.SPOT:
        return None
    rate = spot.interruptions * sum(group.count for group in scenario.cluster.groups)
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
    """Return the time that training waits for one checkpoint [s]; 0 without a model."""
    return 0.0 if scenario.job.model is None else float(blocking_time(scenario, build(scenario)))


def with_losses(figures: Mapping[str, Value], lost: Interruption) -> dict[str, Value]:
    """Return the metrics of a run with the cost of interruptions; step times do not change."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A machine that is excluded from the search, and the reason."""

    machine: Machine
    reason: str


def space_of(
    baseline: Baseline, goal: Goal, machines: Sequence[Machine], seeds: Iterable[Settings] = ({},)
) -> tuple[tuple[Settings, ...], tuple[Refusal, ...]]:
    """Return the settings of all candidates of a search, and the machines excluded from it.

    The usual dimensions are machines, their number, storage, parallelism, batch, workers and
    purchase. Each dimension maps the settings so far to the settings that it may add. A dimension
    whose key the user searches adds nothing.

    Parameters
    ----------
    baseline : Baseline
        Scenario, and machines and stores on offer.
    goal : Goal
        Goal whose limit on machines bounds their number.
    machines : sequence of Machine
        Machines to search.
    seeds : iterable of settings
        Settings of the keys that the user searches; other dimensions are added to each.
    """
    found: dict[tuple[tuple[str, Plain], ...], Settings] = {}
    refused: dict[str, Refusal] = {}
    for seed in seeds:
        for machine in _named(machines, seed):
            try:
                points = list(
                    _on(SearchPoint(baseline=baseline, goal=goal, machine=machine, point=seed))
                )
            except PlanError as error:
                refused[machine.name] = Refusal(machine=machine, reason=_said(error))
                continue
            found |= {tuple(sorted(one.items())): one for one in points}
    return tuple(found.values()), tuple(refused.values())


def _named(machines: Sequence[Machine], seed: Settings) -> list[Machine]:
    return [machine for machine in machines if seed.get(MACHINE) in (None, machine.name)]


def _said(error: PlanError) -> str:
    """Return the first problem of an error without file and line, as settings are in no file."""
    if not isinstance(error, InputError):
        return str(error).splitlines()[0]
    first = error.problems[0]
    return f"{first.key}: {first.message}" + (f"; {first.hint}" if first.hint else "")


def _on(at: SearchPoint) -> Iterator[Settings]:
    """Yield candidates on one machine, dimension by dimension."""
    _check_device(at)
    _check_measured(at)
    _check_sold(at)
    begin = {MACHINE: at.machine.name, **carried_cpu_times(at.baseline, at.machine), **at.point}
    points: list[Settings] = [begin]
    for name in SEARCH:
        points = [
            {**point, **more}
            for point in points
            for more in candidates(
                name,
                SearchPoint(baseline=at.baseline, goal=at.goal, machine=at.machine, point=point),
            )
        ]
    if points:
        check_modelled(at.baseline.reader.read(points[0]).scenario)
    yield from points


def _check_device(at: SearchPoint) -> None:
    """Refuse to train a neural network on CPUs alone, whose speed is unknown."""
    job, baseline = at.baseline.scenario.job, at.baseline
    if at.machine.gpus or not baseline.gpus(baseline.own) or job.step_times is not None:
        return
    msg = "has no accelerator, and how fast its processors train this model is not known"
    raise UnfitError(msg)


def _check_measured(at: SearchPoint) -> None:
    """Refuse another accelerator if times were measured on the scenario's."""
    job, own = at.baseline.scenario.job, at.baseline.own.gpu
    if at.machine.gpu == own:
        return
    timed = job.step_times is not None and not at.sets("model.step_time")
    prepared = job.input.where is Preparation.DEVICE and not at.sets("input.device_time")
    for measured, key in ((timed, "model.step_times"), (prepared, "input.device_time")):
        if measured:
            msg = f"{key} holds for {own or 'the processors'}: nothing is known of another device"
            raise UnfitError(msg)


def _check_sold(at: SearchPoint) -> None:
    """Refuse a machine without a price for the scenario's way to buy, as bills are compared."""
    cost, sold = at.baseline.scenario.cost, at.machine.sold
    wanted = {at.point.get(PURCHASE, cost.purchase.value)}
    if at.goal.spot is not None:
        wanted.add(Purchase.SPOT.value)
    rented = cost.price is None and wanted != {Purchase.OWNED.value}
    if rented and sold and at.machine.name != at.baseline.own.name and not wanted & sold:
        msg = f"is sold as {' or '.join(sorted(sold))} only, as far as is known"
        raise UnfitError(msg)


def cpu_relief(
    shortage: Shortage, alternatives: Mapping[str, Settings]
) -> Iterator[tuple[str, Settings]]:
    """Yield candidates, by name, that give a job more CPUs or less CPU work.

    Parameters
    ----------
    shortage : Shortage
        CPU-bound job, with machines within the limits and possible helpers.
    alternatives : mapping
        Settings by name of remedies whose effect only the user knows.
    """
    baseline = shortage.baseline
    here: Settings = {
        MACHINE: baseline.own.name,
        COUNT: baseline.scenario.cluster.trainers.count,
    }
    for name, shown in RELIEF.items():
        yield from ((shown, {**here, **settings}) for settings in relief(name, shortage))
    yield from ((name, {**here, **settings}) for name, settings in alternatives.items())


_PLACEMENT_KEYS: Final = (MACHINE, STORE, "data.", "remote.", PREPARED_WHERE, "input.prepared")
"""Beginnings of the keys that say where the data lie, and how large they are."""
PlacementKey: TypeAlias = tuple[tuple[str, Plain], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProblem:
    """Search for one scenario and goal: candidates, and the rules that they are judged by.

    `worth` returns the value of the objective for metrics, `ideas` maps indices of candidates to
    the remedy that they try. `program` is the software of the job's program; None without
    accelerators.
    """

    baseline: Baseline
    goal: Goal
    rules: tuple[Rule, ...]
    worth: GoalValue
    refused: tuple[Refusal, ...]
    ideas: Mapping[int, str]
    excluded: Mapping[str, int]
    settings: tuple[Settings, ...]
    program: Program | None = None
    seeds: tuple[Settings, ...] = ({},)
    _copies: dict[PlacementKey, tuple[Move, ...]] = field(default_factory=dict, repr=False)

    @property
    def ports(self) -> tuple[str, ...]:
        """Software of machines that are excluded only because the program does not run on it."""
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
        """Return the machine of a candidate."""
        return self.baseline.machine(str(settings[MACHINE]))

    def judged(self, outcome: Outcome) -> Choice:
        """Evaluate an outcome: its metrics, its value and the limits that it violates."""
        settings = outcome.settings
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
        """Return the metrics of a candidate with copies of its data and losses on spot capacity."""
        if number(figures, TIME) is None:  # refused, or not predicted: it may not even be read
            return figures
        return with_copies(self._disturbed(candidate, figures), self.copies(candidate.settings))

    def copies(self, settings: Settings) -> tuple[Move, ...]:
        """Return the copies of the data that a candidate needs before it can run."""
        placed = tuple(sorted((k, v) for k, v in settings.items() if k.startswith(_PLACEMENT_KEYS)))
        if placed not in self._copies:
            baseline, machine = self.baseline, settings.get(MACHINE, self.baseline.own.name)
            chosen = baseline.reader.read(settings).scenario
            other = machine != baseline.own.name
            self._copies[placed] = moves(baseline.scenario, chosen, elsewhere=other)
        return self._copies[placed]

    def _disturbed(self, candidate: Candidate, figures: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return the metrics of a candidate with lost work and restarts on spot capacity."""
        spot, settings = self.goal.spot, candidate.settings
        total, step = number(figures, TIME), number(figures, "step_time_s.mean")
        if spot is None or PURCHASE not in settings or total is None or step is None:
            return figures
        scenario = self.baseline.reader.read(settings).scenario
        lost = interrupted(scenario, spot, total, step)
        return figures if lost is None else with_losses(figures, lost)

    def is_searched(self, settings: Settings) -> bool:
        """Return whether the settings of a candidate match those that the goal searches."""
        return _is_on_axes(self.baseline, self.seeds, settings)

    def needs_consent(self, settings: Settings) -> bool:
        """Return whether a candidate moves the preparation of samples, which needs consent."""
        own = self.baseline.scenario.job.input.where.value
        return settings.get(PREPARED_WHERE, own) != own

    def count(self, settings: Settings) -> int:
        """Return the number of training machines."""
        return int(settings[COUNT])

    def keeps(self, settings: Settings, key: str) -> bool:
        """Return whether a candidate satisfies the pin of a key: a fixed value."""
        value = self.goal.pins[key]
        return keeps_pin(self.baseline, self.machine(settings), settings, key, value)

    def pinned(self, choice: Choice, without: str = "") -> bool:
        """Return whether a choice satisfies all pins, except that of the key `without`."""
        pins = {key: value for key, value in self.goal.pins.items() if key != without}
        return keeps_pins(self.baseline, choice.machine, choice.settings, pins)


def define_problem(
    baseline: Baseline, goal: Goal, seeds: Iterable[Settings] = ({},)
) -> SearchProblem:
    """Prepare a search: its limits, its candidates, and remedies for a CPU-bound scenario.

    Parameters
    ----------
    baseline : Baseline
        Scenario, and machines and stores on offer.
    goal : Goal
        Objective and limits.
    seeds : iterable of settings
        Settings of the keys that the goal searches; one dict for each combination.

    Raises
    ------
    PlanError
        If the goal contains an unknown name.
    """
    seeds = tuple(seeds)
    check_regions(goal.limits, baseline.machines)
    program = _program(baseline, goal)
    rules = rules_of(goal.limits, program)
    offered, excluded = _allowed_machines(baseline, rules)
    given = {key: baseline.reader.given(key) for key in goal.pins}
    base = {key: value for key, value in given.items() if isinstance(value, str | int | float)}
    starts = list(pinned_seeds(goal.pins, seeds, base))
    points, refused = space_of(baseline, goal, offered, starts)
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
    settings = [now, *points, *(one for _, one in helping)]
    first = 1 + len(points)
    ideas = {first + i: name for i, (name, _) in enumerate(helping)}
    return SearchProblem(
        baseline=baseline,
        goal=goal,
        rules=rules,
        program=program,
        worth=goal_value_of(goal.objective),
        refused=refused,
        ideas=ideas,
        excluded=dict(excluded),
        settings=tuple(settings),
        seeds=seeds,
    )


def _allowed_machines(
    baseline: Baseline, rules: Iterable[Rule]
) -> tuple[list[Machine], Counter[str]]:
    """Return machines within the limits on hardware, and the number that each limit excludes."""
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
    """Return the accelerator software of the job's program; None for a job on CPUs."""
    if not any(baseline.gpus(machine) for machine in baseline.machines):
        return None
    own = baseline.own if baseline.gpus(baseline.own) else replace(baseline.own, stack="")
    return program_of(baseline.scenario.job.software.framework, own, goal)


def _is_on_axes(baseline: Baseline, seeds: Iterable[Settings], settings: Settings) -> bool:
    machine = baseline.machine(str(settings[MACHINE]))
    return any(keeps_pins(baseline, machine, settings, seed) for seed in seeds)


HELPER_LIMITS = frozenset({"clouds", "regions"})
"""Limits that apply to helpers, too."""


def _helper_machines(baseline: Baseline, rules: Iterable[Rule]) -> tuple[Machine, ...]:
    """Return machines that may be helpers: limits on accelerators do not apply to them."""
    kept = [rule for rule in rules if rule.name in HELPER_LIMITS]
    return tuple(
        machine
        for machine in baseline.machines
        if not broken(kept, RuledOffer(machine=machine, count=1, figures={}))
    )


FIRST_PER_WANTED: Final = 1
"""Candidates predicted for each wanted one before any is excluded."""


class SearchBackend:
    """Executor of the requests of a search, with a common progress.

    `missing` are the keys of wanted candidates that are not in the store, if nothing is predicted.

    Parameters
    ----------
    workers : Workers
        Workers that read and predict candidates.
    store : Store, optional
        Store of known outcomes.
    tell : callable, optional
        Called with the finished share of all requests and the progress of the current one, in which
        the numbers of predictions are those of all requests.
    stored_only : bool
        Predict nothing; use only outcomes in the store.
    """

    def __init__(
        self,
        workers: Workers,
        store: Store | None,
        tell: Callable[[float, Standing], None] | None = None,
        *,
        stored_only: bool = False,
    ) -> None:
        self.missing: set[str] = set()
        self._workers, self._store, self._stored_only = workers, store, stored_only
        self._tell = tell
        self._done = self._share = 0.0
        self._predicted = self._stored = 0
        self._last: Standing | None = None

    @property
    def predicted(self) -> int:
        """Number of predictions made so far by all requests."""
        return 0 if self._last is None else self._last.predicted

    def begin(self, share: float) -> None:
        """Set the share of the remaining work that the next requests take, for the progress."""
        self._done += self._share
        self._share = share * (1.0 - self._done)

    def outcomes(self, request: Request) -> tuple[Outcome, ...]:
        """Return the outcomes of all candidates of a request."""
        found = explore(
            self._next(request), workers=self._workers, store=self._store, progress=self._told
        )
        self.missing.update(one.key for one in found if one.reason == NOT_STORED)
        return found

    def bounds(self, request: Request) -> dict[int, Bounded]:
        """Return the bounds of the candidates of a request by index, without a prediction."""
        return bounds_of(
            self._next(request), workers=self._workers, store=self._store, progress=self._told
        )

    def _next(self, request: Request) -> Request:
        if self._last is not None:
            self._predicted, self._stored = self._last.predicted, self._last.stored
        return replace(request, stored_only=self._stored_only)

    def _told(self, standing: Standing) -> None:
        self._last = replace(
            standing,
            predicted=self._predicted + standing.predicted,
            stored=self._stored + standing.stored,
        )
        if self._tell is not None:
            self._tell(self._done + self._share * standing.done, self._last)


class Search:
    """State of a search: the candidates of a problem, and the outcomes known so far.

    `bounded` are the bounds of candidates by index, after `bound` was called.
    """

    def __init__(self, problem: SearchProblem, backend: SearchBackend, seed: int = 0) -> None:
        self._problem, self._seed = problem, seed
        self.backend = backend
        self.known: dict[int, Outcome] = {}
        self.bounded: dict[int, Bounded] | None = None
        self.candidates = tuple(
            Candidate(index=index, settings=one) for index, one in enumerate(problem.settings)
        )

    def bound(self, share: float) -> None:
        """Compute the bounds of all candidates; `share`: share of the work, for the progress."""
        self.backend.begin(share)
        self.bounded = self.backend.bounds(
            self._request(self.candidates, (self._problem.goal.objective,))
        )

    def best_of(
        self,
        candidates: Sequence[Candidate],
        *,
        top: int = 1,
        close: float = 0.0,
        within_limits: bool = True,
    ) -> None:
        """Predict the best of these candidates under the goal.

        Parameters
        ----------
        candidates : sequence of Candidate
            Candidates to search.
        top : int
            Number of best candidates.
        close : float
            Relative tolerance: a candidate better by less than this share may be missed.
        within_limits : bool
            Also apply the limits on time and cost, not only on memory.
        """
        where = limits_as_text(self._problem.goal.limits) if within_limits else self._memory()
        request = self._request(candidates, (self._problem.goal.objective,))
        request = replace(
            request, top=top, margin=-close, first=FIRST_PER_WANTED * top, where=where
        )
        self._learn(request)

    def front(self, candidates: Sequence[Candidate], *, close: float = 0.0) -> None:
        """Predict the Pareto front of these candidates in time and cost, within memory limits.

        Candidates better than the front by less than the share `close` may be missed.
        """
        request = self._request(candidates, TIME_AND_COST)
        self._learn(replace(request, margin=-close, where=self._memory()))

    def all_of(self, candidates: Sequence[Candidate]) -> None:
        """Predict all of these candidates."""
        self._learn(
            replace(self._request(candidates, (self._problem.goal.objective,)), exhaustive=True)
        )

    def meeting(self, candidates: Sequence[Candidate], objective: Objective, where: str) -> None:
        """Predict the best of these candidates that meets the condition `where`."""
        request = self._request(candidates, (objective,))
        self._learn(replace(request, top=1, first=FIRST_PER_WANTED, where=where))

    def _request(
        self, candidates: Sequence[Candidate], objectives: tuple[Objective, ...]
    ) -> Request:
        return Request(
            reader=self._problem.baseline.reader,
            candidates=tuple(candidates),
            objectives=objectives,
            seed=self._seed,
            intervals=True,
            judge=self._problem.counted,
            bounded=self.bounded,
        )

    def _learn(self, request: Request) -> None:
        if not request.candidates:
            return
        for outcome in self.backend.outcomes(request):
            before = self.known.get(outcome.candidate.index)
            if before is None or before.status is not Status.PREDICTED:
                self.known[outcome.candidate.index] = outcome

    def _memory(self) -> str:
        return limits_as_text(replace(self._problem.goal.limits, deadline=None, budget=None))
