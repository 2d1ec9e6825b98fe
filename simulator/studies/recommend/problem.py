"""One scenario and goal, prepared: what is looked at, and how it is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from simulator.results.metrics import Value
from simulator.schema.goal import Goal, Plain
from simulator.studies.recommend import pins as pinning
from simulator.studies.recommend.baseline import COUNT, MACHINE, PURCHASE, STORE, Ground, Settings
from simulator.studies.recommend.choice import PREPARES, TIME, Choice, number
from simulator.studies.recommend.limits import (
    PORTING,
    Rule,
    Subject,
    broken,
    check_regions,
    rules_of,
)
from simulator.studies.recommend.machines import Machine
from simulator.studies.recommend.moving import Move, moves, with_copies
from simulator.studies.recommend.ranking import Worth, worth_of
from simulator.studies.recommend.remedies import remedies
from simulator.studies.recommend.software import Program, program_of
from simulator.studies.recommend.space import Space, space_of
from simulator.studies.recommend.spot import interrupted, with_losses
from simulator.studies.search.outcome import Candidate, Outcome, Status

_PLACING: Final = (MACHINE, STORE, "data.", "remote.", PREPARES, "input.prepared")
"""Beginnings of the keys that say where the data lie, and how large they are."""
Placed: TypeAlias = tuple[tuple[str, Plain], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One scenario and goal, prepared: what is looked at, and how it is judged.

    `program` is what the job's program runs on; None where it uses no accelerator.
    """

    ground: Ground
    goal: Goal
    rules: tuple[Rule, ...]
    worth: Worth
    space: Space
    ideas: Mapping[int, str]
    excluded: Mapping[str, int]
    settings: tuple[Settings, ...]
    program: Program | None = None
    seeds: tuple[Settings, ...] = ({},)
    _copies: dict[Placed, tuple[Move, ...]] = field(default_factory=dict, repr=False)

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
                    for machine in self.ground.machines
                    if not self.program.may_run_on(machine)
                    and not broken(others, Subject(machine=machine, count=1, figures={}))
                }
            )
        )

    def machine(self, settings: Settings) -> Machine:
        """The machine of a candidate."""
        return self.ground.machine(str(settings[MACHINE]))

    def judged(self, outcome: Outcome) -> Choice:
        """A candidate's outcome as the goal sees it."""
        settings = outcome.candidate.settings
        machine, count = self.machine(settings), self.count(settings)
        figures = self.counted(outcome.candidate, outcome.figures)
        subject = Subject(machine=machine, count=count, figures={**settings, **figures})
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
        placed = tuple(sorted((k, v) for k, v in settings.items() if k.startswith(_PLACING)))
        if placed not in self._copies:
            ground, machine = self.ground, settings.get(MACHINE, self.ground.own.name)
            chosen = ground.reader.read(settings).scenario
            other = machine != ground.own.name
            self._copies[placed] = moves(ground.scenario, chosen, elsewhere=other)
        return self._copies[placed]

    def _disturbed(self, candidate: Candidate, figures: Mapping[str, Value]) -> Mapping[str, Value]:
        """A candidate's figures with lost work and restarts in them where it is spot capacity."""
        spot, settings = self.goal.spot, candidate.settings
        total, step = number(figures, TIME), number(figures, "step_time_s.mean")
        if spot is None or PURCHASE not in settings or total is None or step is None:
            return figures
        scenario = self.ground.reader.read(settings).scenario
        lost = interrupted(scenario, spot, total, step)
        return figures if lost is None else with_losses(figures, lost)

    def is_searched(self, settings: Settings) -> bool:
        """Whether a candidate lies on the axes that the goal names itself."""
        return _lies_on(self.ground, self.seeds, settings)

    def needs_consent(self, settings: Settings) -> bool:
        """Whether a candidate changes how samples are prepared, which the user must want."""
        own = self.ground.scenario.job.preprocessing.where.value
        return settings.get(PREPARES, own) != own

    def count(self, settings: Settings) -> int:
        """How many machines of it train."""
        return int(settings[COUNT])

    def keeps(self, settings: Settings, key: str) -> bool:
        """Whether a candidate keeps one of the pins."""
        value = self.goal.pins[key]
        return pinning.keeps(self.ground, self.machine(settings), settings, key, value)

    def pinned(self, choice: Choice, without: str = "") -> bool:
        """Whether a choice keeps the pins, one of them left out."""
        pins = {key: value for key, value in self.goal.pins.items() if key != without}
        return pinning.keeps_all(self.ground, choice.machine, choice.settings, pins)


def inquire(ground: Ground, goal: Goal, seeds: Iterable[Settings] = ({},)) -> Inquiry:
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
    check_regions(goal.limits, ground.machines)
    program = _program(ground, goal)
    rules = rules_of(goal.limits, program)
    offered, excluded = _offered(ground, rules)
    given = {key: ground.reader.given(key) for key in goal.pins}
    base = {key: value for key, value in given.items() if isinstance(value, str | int | float)}
    starts = list(pinning.seeds_of(goal.pins, seeds, base))
    space = space_of(ground, goal, offered, starts)
    now: Settings = {
        MACHINE: ground.own.name,
        COUNT: ground.scenario.cluster.trainers.count,
    }
    pinned = {key: value for key, value in goal.pins.items() if key not in pinning.OF_MACHINE}
    helping = [
        (name, {**pinned, **one})
        for name, one in remedies(ground, tuple(offered), _beside(ground, rules), goal.alternatives)
        if _lies_on(ground, seeds, one)
    ]
    settings = [now, *space.settings, *(one for _, one in helping)]
    first = 1 + len(space.settings)
    ideas = {first + i: name for i, (name, _) in enumerate(helping)}
    return Inquiry(
        ground=ground,
        goal=goal,
        rules=rules,
        program=program,
        worth=worth_of(goal.objective),
        space=space,
        ideas=ideas,
        excluded=dict(excluded),
        settings=tuple(settings),
        seeds=seeds,
    )


def _offered(ground: Ground, rules: Iterable[Rule]) -> tuple[list[Machine], Counter[str]]:
    """Machines that the limits on hardware leave, and how many each limit leaves out."""
    of_hardware = [rule for rule in rules if rule.of_hardware]
    offered, excluded = [], Counter[str]()
    for machine in ground.machines:
        names = broken(of_hardware, Subject(machine=machine, count=1, figures={}))
        # A machine that another limit leaves out too is not one that a port would gain.
        excluded.update([name for name in names if name != PORTING] or names)
        if not names:
            offered.append(machine)
    return offered, excluded


def _program(ground: Ground, goal: Goal) -> Program | None:
    """What the job's program runs on; a job that processors do has no such rule."""
    if not any(ground.gpus(machine) for machine in ground.machines):
        return None
    own = ground.own if ground.gpus(ground.own) else replace(ground.own, stack="")
    return program_of(ground.scenario.job.software.framework, own, goal)


def _lies_on(ground: Ground, seeds: Iterable[Settings], settings: Settings) -> bool:
    """Whether all keys of some point have its values, as set or as the file says."""
    machine = ground.machine(str(settings[MACHINE]))
    return any(pinning.keeps_all(ground, machine, settings, seed) for seed in seeds)


ANYWHERE = frozenset({"clouds", "regions"})
"""Limits that machines which only prepare batches must keep too."""


def _beside(ground: Ground, rules: Iterable[Rule]) -> tuple[Machine, ...]:
    """Machines that may prepare batches beside: limits on accelerators are not about them."""
    kept = [rule for rule in rules if rule.name in ANYWHERE]
    return tuple(
        machine
        for machine in ground.machines
        if not broken(kept, Subject(machine=machine, count=1, figures={}))
    )
