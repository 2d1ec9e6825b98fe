"""Which accelerators a job's program runs on as it is, and where it would have to be ported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simulator.schema.goal import Goal
from simulator.schema.hardware.gpu import Stack
from simulator.studies.recommend.machines import Machine, is_called
from simulator.studies.recommend.pins import DEVICE

ANYWHERE: Final[Mapping[str, frozenset[str]]] = {"jax": frozenset({Stack.CUDA, Stack.TPU})}
"""Frameworks whose programs run on more than CUDA without a change to the program."""
USUAL: Final = frozenset[str]({Stack.CUDA})
"""What a program of any other framework is taken to be written for, beside its own machine."""
_WILD: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a job's program runs on: `stacks` as it is, `ported` if the user ports it.

    `gpus` are accelerators that the user wants by name, whatever they are programmed with.
    """

    stacks: frozenset[str]
    ported: frozenset[str] = frozenset()
    gpus: tuple[str, ...] = ()

    def runs_on(self, machine: Machine) -> bool:
        """Whether it runs there as it is; a machine without an accelerator needs no port."""
        return not machine.stack or machine.stack in self.stacks

    def may_run_on(self, machine: Machine) -> bool:
        """Whether it runs there as it is, or the user would port it."""
        wanted = any(is_called(machine.gpu, name) for name in self.gpus)
        return self.runs_on(machine) or machine.stack in self.ported or wanted


def program_of(framework: str, own: Machine, goal: Goal) -> Program:
    """What a job's program runs on.

    Parameters
    ----------
    framework : str
        What it is written with.
    own : Machine
        The machine of the scenario, where it runs already.
    goal : Goal
        Says to which stacks the user would port it, by name: in `porting`, in `requires`, or with
        an accelerator named without wildcards.

    Examples
    --------
    >>> from simulator.schema.goal import Objective, Sense
    >>> goal = Goal(objective=Objective(metric="total_time_s", sense=Sense.MINIMIZE))
    >>> program = program_of("pytorch", Machine(name="here", gpu="x", stack="cuda"), goal)
    >>> program.may_run_on(Machine(name="there", gpu="y", stack="neuron"))
    False
    """
    at_home = frozenset({own.stack}) if own.stack else frozenset[str]()
    pinned = [str(goal.pins[DEVICE])] if DEVICE in goal.pins else []
    named = [name for name in (*goal.limits.gpus, *pinned) if _WILD.isdisjoint(name)]
    return Program(
        stacks=ANYWHERE.get(framework.lower(), USUAL) | at_home,
        ported=frozenset({*goal.limits.porting, *goal.limits.requires}),
        gpus=tuple(named),
    )
