"""Figures of a service that measured runs have, by their dotted path: unit and meaning.

`results.serving` holds all that a prediction of a service says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.units import SECOND, Unit

TOKEN: Final = Unit("tokens", "tokens")
TOKEN_PER_SECOND: Final = Unit("tokens/s", "tokens per second")
_LATENCIES: Final = {
    "first_token_s": "From sending a request to its first token",
    "per_token_s": "Time of an answer's further tokens over their number",
    "end_to_end_s": "From sending a request to its last token",
}


def measured_of_services() -> Iterator[tuple[str, Unit, str]]:
    """Name, unit and meaning of each: latencies are better low, rates high."""
    for name, doc in _LATENCIES.items():
        for statistic in ("mean", "p50", "p90", "p99"):
            yield f"{name}.{statistic}", SECOND, f"{doc}, {statistic} of requests."
    yield "output_tokens_per_s", TOKEN_PER_SECOND, "Tokens of answers over the time of the run."
    doc = "Tokens of answers that the replicas write a second while requests always wait."
    yield "saturation.output_tokens_per_s", TOKEN_PER_SECOND, doc
