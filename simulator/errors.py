"""What can go wrong, as one tree.

::

    PlanError                 anything a user can mend; the command line exits with 2
    ├── UnitError             a quantity that does not parse or has the wrong dimension
    ├── InputError            one or more problems in files or options, reported together
    │   └── each entry is a `Problem`: where, what was found, what is allowed
    ├── UnknownName           a profile, model, scenario or metric that does not exist
    └── NotModelled           a sound request that the model does not cover

Any other exception is a bug of `plan` and exits with 70; `BrokenInvariant` is raised for the bugs
that `plan` detects itself.
"""

from __future__ import annotations

from dataclasses import dataclass


class PlanError(Exception):
    """A mistake the user can mend; its text is the whole message shown."""


class UnitError(PlanError):
    """A quantity that cannot be read, or that measures something else."""


class NotModelled(PlanError):  # noqa: N818 - reads as the sentence it prints
    """A sound request that lies outside what the model describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in the user's input, with everything needed to mend it.

    `origin` is a file name or an option such as ``--set``; `key` the dotted path;
    `hint` what is allowed or the nearest valid name.
    """

    origin: str
    message: str
    line: int | None = None
    key: str | None = None
    found: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = self.origin if self.line is None else f"{self.origin}:{self.line}"
        key = f" {self.key}:" if self.key else ""
        return f"{where}:{key} {self.told}"

    @property
    def told(self) -> str:
        """What is wrong and what would be right, where it is clear of what."""
        found = f", found {self.found}" if self.found is not None else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.message}{found}{hint}"


class InputError(PlanError):
    """All problems of the user's input at once.

    Parameters
    ----------
    problems : tuple of Problem
        At least one.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class UnknownName(PlanError):  # noqa: N818 - reads as the sentence it prints
    """A name that nothing goes by; the message offers the nearest one that exists."""


class StepProgramError(ImportError):
    """A stage without a slot, or slots out of order: a mistake in the step program."""


class BrokenInvariant(Exception):  # noqa: N818 - reads as the sentence it prints
    """A prediction that contradicts itself: a bug of ours that must not pass for an answer."""
