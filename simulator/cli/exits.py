"""What the exit code of ``plan`` says."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every verb; the last two are those a shell gives such an end."""

    FINE = 0
    DOES_NOT_FIT = 1
    BAD_INPUT = 2
    OUR_BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141
