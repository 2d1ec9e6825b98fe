"""A service that extends another by the factors that measured runs of it told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulator.reading.hardware.profile_text import quote

DIGITS: Final = 4
"""Significant digits of a factor."""


def fitted_service(base: str, settings: Mapping[str, float], rows: int) -> str:
    """The file of a service as `base` has it, with fitted settings.

    Examples
    --------
    >>> print(fitted_service("chat.toml", {"calibration.compute": 1.25}, 3).splitlines()[-1])
    compute = 1.25
    """
    lines = [
        f"# Written by plan calibrate: what {rows} measured runs tell of this service.",
        "schema = 1",
        'mode = "serve"',
        f"extends = {quote(base)}",
        "",
        "[calibration]",
    ]
    lines += [f"{key.partition('.')[2]} = {value:.{DIGITS}g}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"
