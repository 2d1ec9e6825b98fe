"""What people call the figures of a running job, and how they write their values."""

from __future__ import annotations

from typing import Final

from simulator.errors import UnitError
from simulator.units import PERCENT, Unit, parse, parse_count

NAMES: Final = {
    "utilization": "accelerator_utilization",
    "samples/s": "throughput_samples_per_s",
    "images/s": "throughput_samples_per_s",
    "throughput": "throughput_samples_per_s",
    "step": "step_time_s.mean",
    "step_time": "step_time_s.mean",
    "epoch": "epoch_time_s",
    "tokens/s": "tokens_per_s",
}
"""Figures that people see of a running job, by what they call them."""


SERVICE_NAMES: Final = {
    "ttft": "first_token_s.mean",
    "first_token": "first_token_s.mean",
    "tpot": "per_token_s.mean",
    "per_token": "per_token_s.mean",
    "e2e": "end_to_end_s.mean",
    "end_to_end": "end_to_end_s.mean",
    "tokens/s": "output_tokens_per_s",
    "output_tokens/s": "output_tokens_per_s",
}
"""The same of a service: means over requests, where a column does not say."""


def figure_value(text: str, unit: Unit | None) -> float | None:
    """Return a share in per cent, a quantity with its unit, or a plain number; None if it is none.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> figure_value("45%", None), figure_value("120 ms", SECOND), figure_value("3,900", None)
    (0.45, 0.12, 3900.0)
    """
    if text.endswith("%"):
        share = parse_count(text.removesuffix("%"))
        return None if share is None else share / PERCENT
    plain = parse_count(text)
    if plain is not None or unit is None:
        return plain
    try:
        return parse(text, unit)
    except UnitError:
        return None
