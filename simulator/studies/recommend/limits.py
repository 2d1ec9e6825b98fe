"""The limits of a goal as rules that a choice keeps or breaks."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.errors import UnknownName
from simulator.physics.footprint import Verdict
from simulator.reading.settings import setting_units
from simulator.results.expression import parse_expression
from simulator.results.metrics import Value
from simulator.schema.goal import Limits
from simulator.studies.recommend.choice import MONEY, TIME, number
from simulator.studies.recommend.machines import Machine, is_called, is_sold_in
from simulator.studies.recommend.software import Program
from simulator.units import SECOND, USD, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a rule looks at; `figures` hold the candidate's settings too, under their keys."""

    machine: Machine
    count: int
    figures: Mapping[str, Value]


Keeps = Callable[[Subject], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One limit: its name in the goal, how it reads, and whether a subject keeps it.

    `of_hardware`: known from the machine and how many there are, without any prediction.
    """

    name: str
    text: str
    keeps: Keeps
    of_hardware: bool = False


PORTING: Final = "porting"
"""The rule that a program runs on the accelerator as it is, or that the user would port it."""


def rules_of(limits: Limits, program: Program | None = None) -> tuple[Rule, ...]:
    """The rules of a goal, those of the hardware first; `program` is None for one on processors."""
    return (*_of_hardware(limits), *_of_program(program), *_of_figures(limits))


def broken(rules: Iterable[Rule], subject: Subject) -> tuple[str, ...]:
    """Names of the rules that a subject breaks."""
    return tuple(rule.name for rule in rules if not rule.keeps(subject))


def _of_hardware(limits: Limits) -> Iterator[Rule]:
    nodes = limits.most_nodes
    if nodes is not None:
        yield _hardware("nodes", f"nodes = {nodes}", lambda s: s.count <= nodes)
    if limits.clouds:
        yield _hardware("clouds", _named(limits.clouds), lambda s: s.machine.cloud in limits.clouds)
    if limits.regions:
        yield _hardware("regions", _named(limits.regions), lambda s: _in_regions(s, limits))
    if limits.gpus:
        yield _hardware("gpus", _named(limits.gpus), lambda s: _is_wanted(s, limits))
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


def _hardware(name: str, text: str, keeps: Keeps) -> Rule:
    words = text if text.startswith(name) else f"{name} = {text}"
    return Rule(name=name, text=words, keeps=keeps, of_hardware=True)


def _required(need: str) -> Rule:
    name = f"requires {need}"
    return Rule(
        name=name, text=name, keeps=lambda s: need in s.machine.capabilities, of_hardware=True
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names)


def _in_regions(subject: Subject, limits: Limits) -> bool:
    return any(is_sold_in(subject.machine.region, wanted) for wanted in limits.regions)


def _is_wanted(subject: Subject, limits: Limits) -> bool:
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
        yield Rule(name=name, text=text, keeps=_leaves(*what, margin))
    if limits.where:
        expression = parse_expression(limits.where, extra_names=setting_units())
        yield Rule(
            name="where",
            text=f"where {limits.where}",
            keeps=lambda s: expression.holds(s.figures),
        )


def _at_most(name: str, most: float) -> Keeps:
    def keeps(subject: Subject) -> bool:
        value = number(subject.figures, name)
        return value is not None and value <= most

    return keeps


def _leaves(what: str, verdict: str, margin: float) -> Keeps:
    """Whether it surely fits and leaves a share free; what has no such memory keeps the rule."""

    def keeps(subject: Subject) -> bool:
        if subject.figures.get(verdict) == Verdict.UNCERTAIN:
            return False
        needed = number(subject.figures, f"{what}.total")
        room = number(subject.figures, f"{what}.capacity")
        return needed is None or room is None or needed <= (1.0 - margin) * room

    return keeps


def check_regions(limits: Limits, machines: Sequence[Machine]) -> None:
    """Refuse regions for which no machine on offer has a price.

    Raises
    ------
    UnknownName
        Names the nearest region.
    """
    known = sorted({machine.region for machine in machines if machine.region})
    for wanted in limits.regions:
        if not any(is_sold_in(region, wanted) for region in known):
            close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.4)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"
            msg = f"goal.regions: no machine has a price for '{wanted}'; {hint}"
            raise UnknownName(msg)
