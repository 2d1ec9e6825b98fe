"""The [load] section as the requests of a service."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from simulator.errors import Problem
from simulator.files.document import Document
from simulator.files.request_trace import read_requests
from simulator.files.serving_sections import Arrivals, LengthTable, LoadSection
from simulator.scenario.serving import ClosedLoop, Lengths, Load, OpenLoop, Spread, Trace

_NEEDS: Final = {
    Arrivals.CLOSED: ("concurrency", "prompt", "output"),
    Arrivals.POISSON: ("rate", "prompt", "output"),
    Arrivals.GAMMA: ("rate", "burstiness", "prompt", "output"),
    Arrivals.EVEN: ("rate", "prompt", "output"),
    Arrivals.AT_ONCE: ("requests", "prompt", "output"),
    Arrivals.TRACE: ("trace",),
}
"""Keys that each kind of arrivals needs."""
_OWN: Final = ("concurrency", "rate", "burstiness", "trace", "prompt", "output")
"""Keys that mean something with some kinds of arrivals only."""


def load_problems(given: LoadSection, document: Document) -> Iterator[Problem]:
    """Keys that its arrivals lack, and those that mean nothing with them."""
    kind = given.arrivals
    for name in _NEEDS[kind]:
        if getattr(given, name) is None:
            message = f"is missing: {kind.value} arrivals need it"
            yield document.problem(("load", name), message)
    for name in _OWN:
        if name not in _NEEDS[kind] and getattr(given, name) is not None:
            message = f"means nothing with {kind.value} arrivals"
            yield document.problem(("load", name), message, hint="leave it out")
    if given.think and kind is not Arrivals.CLOSED:
        hint = "it is of the clients of a closed loop"
        message = f"means nothing with {kind.value} arrivals"
        yield document.problem(("load", "think"), message, hint=hint)
    if given.prompt is not None and given.shared_prefix >= given.prompt.tokens:
        hint = "at least one token of a prompt is its own"
        yield document.problem(("load", "shared_prefix"), "is as long as a prompt", hint=hint)


def load_of(given: LoadSection, document: Document) -> Load:
    """The load of a section without problems.

    Raises
    ------
    InputError
        If its trace has mistakes.
    """
    ways = _arrivals(given, document)
    if isinstance(ways, Trace):
        prompt = Lengths(tokens=float(np.mean(ways.prompts)))
        output = Lengths(tokens=float(np.mean(ways.outputs)))
    else:
        prompt, output = _lengths(given.prompt), _lengths(given.output)
    return Load(
        arrivals=ways,
        prompt=prompt,
        output=output,
        requests=given.requests,
        shared_prefix=given.shared_prefix,
    )


def _arrivals(given: LoadSection, document: Document) -> ClosedLoop | OpenLoop | Trace:
    kind = given.arrivals
    if kind is Arrivals.TRACE:
        origin = Path(document.where(("load", "trace"))[0])
        folder = origin.parent if origin.suffix == ".toml" else Path()
        return read_requests(folder / (given.trace or ""))
    if kind is Arrivals.CLOSED:
        return ClosedLoop(concurrency=given.concurrency or 1, think=given.think)
    if kind is Arrivals.AT_ONCE:
        return OpenLoop(rate=math.inf)
    shapes = {Arrivals.GAMMA: given.burstiness or 1.0, Arrivals.EVEN: math.inf}
    return OpenLoop(rate=given.rate or math.inf, burstiness=shapes.get(kind, 1.0))


def _lengths(given: LengthTable | None) -> Lengths:
    if given is None:
        return Lengths(tokens=1.0)
    deviation = given.deviation if given.spread is Spread.LOGNORMAL else 0.0
    return Lengths(tokens=given.tokens, spread=given.spread, ratio=given.ratio, deviation=deviation)
