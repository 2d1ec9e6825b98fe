"""What the exit code of ``plan`` says."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from simulator.cli.output import complain

TOLD: Final = 3
"""Different bugs that are told one by one."""
TRACKER: Final = "the project's issue tracker (its address stands in the README)"
REPORT: Final = (
    "please report it, with the command, the scenario file and the files it builds on, in "
    f"{TRACKER}"
)


class Exit(IntEnum):
    """The exit codes of every verb; the last two are those a shell gives such an end."""

    FINE = 0
    DOES_NOT_FIT = 1
    BAD_INPUT = 2
    OUR_BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def ended(code: Exit, bugs: Sequence[str]) -> Exit:
    """How a study ends: as it would have, or with our bug where it met some and went on.

    Parameters
    ----------
    code : Exit
        Of its answer.
    bugs : sequence of str
        What it met, as its rows tell it.
    """
    if not bugs:
        return code
    different = list(dict.fromkeys(bugs))
    complain(
        f"{len(bugs):,} of the predictions met a bug in plan, not in your input; the answer rests "
        "on the others",
        *different[:TOLD],
        *([f"and {len(different) - TOLD:,} others"] if len(different) > TOLD else []),
        REPORT,
    )
    return Exit.OUR_BUG
