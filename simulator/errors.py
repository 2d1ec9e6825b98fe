"""What can go wrong, as one tree.

::

    PlanError                 anything a user can correct; the command line exits with 2
    ├── UnitError             a quantity that does not parse or has the wrong dimension
    ├── InputError            one or more problems in files or options, reported together
    │   └── each entry is a `Problem`: where, what was found, what is allowed
    ├── UnknownName           a profile, model, scenario or metric that does not exist
    └── NotModelled           a valid request that the model does not cover

Any other exception is a bug of `plan` and exits with 70; `BrokenInvariant` is raised for the bugs
that `plan` detects itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from simulator.records import dataclass

MAX_PROBLEMS: Final = 20
"""Maximum number of problems that an error prints."""
MAX_NAME: Final = 80
"""Maximum length of a key, a name or a value of the user's in a message [characters]."""
_LONG_NAME: Final = re.compile(rf"[^\s/\\]{{{MAX_NAME + 1},}}")


class PlanError(Exception):
    """An error that the user can correct; its text is the whole message shown."""


class UnitError(PlanError):
    """A quantity that cannot be parsed or has the wrong dimension."""


class NotModelled(PlanError):  # noqa: N818 - reads as the sentence it prints
    """A valid request that the model does not cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error in the user's input, with everything needed to correct it.

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
        key = f" {_cut(self.key)}:" if self.key else ""
        return f"{where}:{key} {self.told}"

    @property
    def told(self) -> str:
        """Message, found value and hint, without origin and key."""
        named = self.found is None or _repeats(self.message, self.found)
        found = "" if named else f", found {_cut(self.found or '')}"
        hint = f"; {self.hint}" if self.hint else ""
        return cut_names(f"{self.message}{found}{hint}")


def _repeats(message: str, found: str) -> bool:
    """Return True if a message names the text that was found."""
    name = found[1:-1]
    quoted = found[:1] in {"'", '"'} and len(name) > 1
    return quoted and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) is not None


def cut_names(text: str) -> str:
    """Cut the words of a message that are longer than `MAX_NAME`; parts of paths count singly."""
    return _LONG_NAME.sub(lambda name: _cut(name[0]), text)


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}..."


class InputError(PlanError):
    """All problems of the user's input at once.

    Parameters
    ----------
    problems : tuple of Problem
        At least one.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in first_problems(problems)))


def first_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the first `MAX_PROBLEMS` problems, and one that counts the others if there are any."""
    if len(problems) <= MAX_PROBLEMS + 1:
        return tuple(problems)
    shown = problems[:MAX_PROBLEMS]
    message = f"has {len(problems) - MAX_PROBLEMS:,} more problems"
    return (*shown, Problem(origin=shown[-1].origin, message=message))


class UnknownName(PlanError):  # noqa: N818 - reads as the sentence it prints
    """An unknown name; the message offers the nearest known one."""


class StepProgramError(ImportError):
    """An inconsistent step program: a stage without a slot, or slots out of order."""


class BrokenInvariant(Exception):  # noqa: N818 - reads as the sentence it prints
    """A prediction that violates an invariant: an internal error, never shown as an answer."""
