"""Limits of a goal as rules that a candidate meets or violates; software that a job runs on."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from simulator.errors import UnknownName
from simulator.physics.footprint import Verdict
from simulator.reading.settings import setting_units
from simulator.records import dataclass
from simulator.results.expression import parse_expression
from simulator.results.metrics import Value
from simulator.schema.accelerators import Stack
from simulator.schema.goal import Goal, Limits
from simulator.studies.baseline import Machine, is_called, is_sold_in
from simulator.studies.levers import GPU_KEY
from simulator.studies.recommend.ranking import MONEY, TIME, number
from simulator.units import SECOND, USD, show

PORTABLE_FRAMEWORKS: Final[Mapping[str, frozenset[str]]] = {
    "jax": frozenset({Stack.CUDA, Stack.TPU})
}
"""Frameworks whose programs run on more than CUDA without a change to the program."""
DEFAULT_STACKS: Final = frozenset[str]({Stack.CUDA})
"""What a program of any other framework is assumed to run on, in addition to its own machine."""
_WILDCARDS: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Accelerator software that a job's program runs on.

    `stacks`: without changes; `ported`: after a port that the user would make. `gpus` are
    accelerators that the user requests by name, with any software.
    """

    stacks: frozenset[str]
    ported: frozenset[str] = frozenset()
    gpus: tuple[str, ...] = ()

    def runs_on(self, machine: Machine) -> bool:
        """Return whether the program runs on a machine without a port."""
        return not machine.stack or machine.stack in self.stacks

    def may_run_on(self, machine: Machine) -> bool:
        """Return whether the program runs on a machine, or the user would port it."""
        wanted = any(is_called(machine.gpu, name) for name in self.gpus)
        return self.runs_on(machine) or machine.stack in self.ported or wanted


def program_of(framework: str, own: Machine, goal: Goal) -> Program:
    """Return the accelerator software that a job's program runs on.

    Parameters
    ----------
    framework : str
        Framework of the program, such as ``pytorch``.
    own : Machine
        Machine of the scenario, on which the program runs.
    goal : Goal
        Goal with the software that the user would port to: in `porting`, in `requires`, or of an
        accelerator named without wildcards.

    Examples
    --------
    >>> from simulator.schema.goal import Objective, Sense
    >>> goal = Goal(objective=Objective(metric="total_time_s", sense=Sense.MINIMIZE))
    >>> program = program_of("pytorch", Machine(name="here", gpu="x", stack="cuda"), goal)
    >>> program.may_run_on(Machine(name="there", gpu="y", stack="neuron"))
    False
    """
    at_home = frozenset({own.stack}) if own.stack else frozenset[str]()
    pinned = [str(goal.pins[GPU_KEY])] if GPU_KEY in goal.pins else []
    named = [name for name in (*goal.limits.gpus, *pinned) if _WILDCARDS.isdisjoint(name)]
    return Program(
        stacks=PORTABLE_FRAMEWORKS.get(framework.lower(), DEFAULT_STACKS) | at_home,
        ported=frozenset({*goal.limits.porting, *goal.limits.requires}),
        gpus=tuple(named),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledOffer:
    """A candidate that rules are applied to; `figures` are its metrics and settings by name."""

    machine: Machine
    count: int
    figures: Mapping[str, Value]


Check = Callable[[RuledOffer], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One limit of a goal: its name, its text for the user, and a check whether an offer meets it.

    `of_hardware`: the check needs only the machine and its number, no prediction.
    """

    name: str
    text: str
    keeps: Check
    of_hardware: bool = False


PORTING: Final = "porting"
"""Rule that a program runs on the accelerator, or that the user would port it."""


def rules_of(limits: Limits, program: Program | None = None) -> tuple[Rule, ...]:
    """Return the rules of a goal, those on hardware first; `program` is None for a job on CPUs."""
    return (*_of_hardware(limits), *_of_program(program), *_of_figures(limits))


def broken(rules: Iterable[Rule], subject: RuledOffer) -> tuple[str, ...]:
    """Return the names of the rules that an offer violates."""
    return tuple(rule.name for rule in rules if not rule.keeps(subject))


def _of_hardware(limits: Limits) -> Iterator[Rule]:
    nodes = limits.nodes
    if nodes is not None:
        yield _hardware("nodes", f"nodes = {nodes}", lambda s: s.count <= nodes)
    if limits.clouds:
        yield _hardware(
            "clouds", _joined(limits.clouds), lambda s: s.machine.cloud in limits.clouds
        )
    if limits.regions:
        yield _hardware("regions", _joined(limits.regions), lambda s: _in_regions(s, limits))
    if limits.gpus:
        yield _hardware("gpus", _joined(limits.gpus), lambda s: _is_wanted(s, limits))
    for need in limits.requires:
        yield _required(need)


def _of_program(program: Program | None) -> Iterator[Rule]:
    if program is not None:
        written = " or ".join(sorted(program.stacks))
        text = f"a program written for {written} that is not ported"
        yield Rule(
            name=PORTING,
            text=text,
            keeps=lambda s: program.may_run_on(s.machine),
            of_hardware=True,
        )


def _hardware(name: str, text: str, keeps: Check) -> Rule:
    words = text if text.startswith(name) else f"{name} = {text}"
    return Rule(name=name, text=words, keeps=keeps, of_hardware=True)


def _required(need: str) -> Rule:
    name = f"requires {need}"
    return Rule(
        name=name, text=name, keeps=lambda s: need in s.machine.capabilities, of_hardware=True
    )


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names)


def _in_regions(subject: RuledOffer, limits: Limits) -> bool:
    return any(is_sold_in(subject.machine.region, wanted) for wanted in limits.regions)


def _is_wanted(subject: RuledOffer, limits: Limits) -> bool:
    return any(is_called(subject.machine.gpu, wanted) for wanted in limits.gpus)


def _of_figures(limits: Limits) -> Iterator[Rule]:
    if limits.deadline is not None:
        text = f"deadline = {show(limits.deadline, SECOND)}"
        yield Rule(name="deadline", text=text, keeps=_at_most(TIME, limits.deadline))
    if limits.budget is not None:
        text = f"budget = {show(limits.budget, USD)}"
        yield Rule(name="budget", text=text, keeps=_at_most(MONEY, limits.budget))
    margins = (
        ("ram_margin", "host RAM", ("host_ram_bytes", "fits.host"), limits.ram_margin),
        (
            "gpu_memory_margin",
            "GPU memory",
            ("gpu_memory_bytes", "fits.gpu"),
            limits.gpu_memory_margin,
        ),
    )
    for name, where, what, margin in margins:
        text = f"{name} = {margin:.0%}" if margin > 0.0 else f"all of it in {where}"
        yield Rule(name=name, text=text, keeps=_leaves_margin(*what, margin))
    if limits.where:
        expression = parse_expression(limits.where, extra_names=setting_units())
        yield Rule(
            name="where",
            text=f"where {limits.where}",
            keeps=lambda s: expression.holds(s.figures),
        )


def _at_most(name: str, most: float) -> Check:
    def keeps(subject: RuledOffer) -> bool:
        value = number(subject.figures, name)
        return value is not None and value <= most

    return keeps


def _leaves_margin(what: str, verdict: str, margin: float) -> Check:
    """Return a check that a memory surely fits with a free share; met without such memory."""

    def keeps(subject: RuledOffer) -> bool:
        if subject.figures.get(verdict) == Verdict.UNCERTAIN:
            return False
        needed = number(subject.figures, f"{what}.total")
        room = number(subject.figures, f"{what}.capacity")
        return needed is None or room is None or needed <= (1.0 - margin) * room

    return keeps


def check_regions(limits: Limits, machines: Sequence[Machine]) -> None:
    """Raise an error for regions in which no machine on offer has a price.

    Raises
    ------
    UnknownName
        If there is such a region; the message names the nearest one.
    """
    known = sorted({machine.region for machine in machines if machine.region})
    for wanted in limits.regions:
        if not any(is_sold_in(region, wanted) for region in known):
            close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.4)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"
            msg = f"goal.regions: no machine has a price for '{wanted}'; {hint}"
            raise UnknownName(msg)


def limits_as_text(limits: Limits) -> str:
    """Return the limits that need a prediction as a condition; it excludes uncertain memory too.

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
