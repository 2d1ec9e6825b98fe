"""The day it is: asked for here alone, so that nothing below the command line depends on it."""

from __future__ import annotations

from datetime import UTC, date, datetime


def today() -> date:
    """The day it is, in UTC."""
    return datetime.now(tz=UTC).date()
