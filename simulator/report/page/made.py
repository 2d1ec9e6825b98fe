"""How a page came to be: when, by which command, from which seed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What stands at the top of a page, so that it can be made again.

    `date` is a day such as 2026-11-23, `command` what was typed; either is empty where nobody
    knows. `seed` is that of the simulations; `asked` are the scenarios with their settings as
    they were typed, one for each that is answered, so that commands on the page work.
    """

    date: str = ""
    command: str = ""
    seed: int | None = None
    asked: tuple[str, ...] = ()
