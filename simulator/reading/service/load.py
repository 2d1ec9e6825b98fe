"""The [load] section as the requests of a service."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from simulator.errors import Problem
from simulator.reading.document import Document
from simulator.reading.service.request_trace import read_requests
from simulator.reading.service.sections import Arrivals, LoadSection
from simulator.reading.service.traffic import traffic_of
from simulator.schema.serving import (
    ClosedLoop,
    Lengths,
    Load,
    OpenLoop,
    RateCurve,
    Trace,
)
from simulator.schema.workload.models import Model
from simulator.uncertainty.provenance import Assumption, Source
from simulator.units import HOUR, PerSecond

_NEEDS: Final = {
    Arrivals.CLOSED: ("concurrency", "prompt", "output"),
    Arrivals.POISSON: ("rate", "prompt", "output"),
    Arrivals.GAMMA: ("rate", "burstiness", "prompt", "output"),
    Arrivals.EVEN: ("rate", "prompt", "output"),
    Arrivals.DAILY: ("rate", "prompt", "output"),
    Arrivals.CAMERAS: ("cameras", "frame_rate", "prompt", "output"),
    Arrivals.AT_ONCE: ("requests", "prompt", "output"),
    Arrivals.TRACE: ("trace",),
}
"""Keys that each kind of arrivals needs."""
_EXAMPLES: Final = {
    "concurrency": "32",
    "rate": "10 /s",
    "burstiness": "0.5",
    "requests": "1000",
    "cameras": "8",
    "frame_rate": "10 /s",
    "trace": "requests.csv",
    "per_user": "20 /day",
    "users": "1000",
}
"""Values of keys that are missing, as they may be written."""
STEADY: Final = (Arrivals.POISSON, Arrivals.GAMMA, Arrivals.EVEN, Arrivals.CAMERAS)
"""Arrivals that go on for ever at one rate."""
_LENGTHS: Final = ("prompt", "output")
_PEOPLE: Final = ("users", "per_user")
"""Keys that stand for a rate."""
_BYTES: Final = ("request_bytes", "answer_bytes")
"""Keys of what clients send and get."""
_MAY: Final = {
    Arrivals.CLOSED: ("think", "users", *_BYTES),
    Arrivals.POISSON: (*_PEOPLE, *_BYTES),
    Arrivals.GAMMA: (*_PEOPLE, *_BYTES),
    Arrivals.EVEN: (*_PEOPLE, *_BYTES),
    Arrivals.DAILY: ("curve", "period", *_PEOPLE, *_BYTES),
    Arrivals.CAMERAS: _BYTES,
    Arrivals.AT_ONCE: ("inputs",),
    Arrivals.TRACE: _BYTES,
}
"""Keys beside them that mean something with a kind of arrivals."""
_OWN: Final = (
    *("concurrency", "rate", "burstiness", "trace", "prompt", "output"),
    *("think", "curve", "period", "cameras", "frame_rate", "samples", "inputs", *_PEOPLE, *_BYTES),
)
"""Keys that mean something with some kinds of arrivals only."""
DAY: Final = 24.0 * HOUR
OFFICE: Final = (
    *(0.10, 0.08, 0.06, 0.06, 0.08, 0.12, 0.20, 0.40, 0.70, 0.90, 1.00, 0.95),
    *(0.85, 0.90, 0.95, 0.90, 0.80, 0.60, 0.45, 0.35, 0.30, 0.25, 0.20, 0.15),
)
"""The rate of each hour of a day over that of the busiest: people of one time zone at work.

A guess, 2026-11-23; a log of one's own is better.
"""


def means_something(kind: Arrivals, key: str, given: Mapping[str, object]) -> bool:
    """Whether a key of a [load] table was meant for arrivals of a kind.

    Users with a rate of their own are not those of a closed loop.
    """
    if key == "users" and "per_user" in given and kind is Arrivals.CLOSED:
        return False
    lengths = () if kind is Arrivals.TRACE else (*_LENGTHS, "samples")
    return key not in _OWN or key in (*_NEEDS[kind], *_MAY[kind], *lengths)


def load_problems(
    given: LoadSection, document: Document, *, one_pass: bool = False
) -> Iterator[Problem]:
    """Keys that its arrivals lack, and those that mean nothing with them.

    Requests to a model that answers in one pass have samples in place of lengths.
    """
    kind = given.arrivals
    needs = tuple(name for name in _NEEDS[kind] if not (one_pass and name in _LENGTHS))
    for name in _lacking(given, needs):
        if getattr(given, name) is None:
            message = f"is missing: {kind.value} arrivals need it"
            value = _EXAMPLES.get(name)
            hint = None if value is None else f"such as --set 'load.{name}={value}'"
            yield document.problem(("load", name), message, hint=hint)
    for name in _OWN:
        wanted = (*needs, *_MAY[kind], *(("samples",) if one_pass else ()))
        if name not in wanted and getattr(given, name) not in (None, 0.0):
            of_lengths = name in ("samples", *_LENGTHS)
            kind_of = "this kind of model" if of_lengths else f"{kind.value} arrivals"
            path = ("load", name)
            yield document.problem(path, f"means nothing with {kind_of}", hint="leave it out")
    if given.curve is not None and not any(given.curve):
        hint = "one share at least is above 0"
        yield document.problem(("load", "curve"), "has no arrivals at all", hint=hint)
    if given.prompt is not None and given.shared_prefix >= given.prompt.tokens:
        hint = "at least one token of a prompt is its own"
        yield document.problem(("load", "shared_prefix"), "is as long as a prompt", hint=hint)


def _lacking(given: LoadSection, needs: tuple[str, ...]) -> tuple[str, ...]:
    """What the arrivals need beside what users stand for."""
    if given.users is None and given.per_user is None:
        return needs
    people = {"rate": _PEOPLE, "concurrency": ("users",)}
    return tuple(one for name in needs for one in people.get(name, (name,)))


def load_notes(given: LoadSection) -> Iterator[Assumption]:
    """What a load leaves to defaults that somebody made up."""
    if given.arrivals is Arrivals.DAILY and given.curve is None:
        source = Source(reference="a guess", date="2026-11-23", verified=False)
        what = "how the load changes over the day (load.curve not given)"
        yield Assumption(what=what, value="people of one time zone at work", source=source)
    inputs = given.inputs
    if inputs is not None and not inputs.states("readers"):
        source = Source(reference="a guess", date="2026-11-24", verified=False)
        what = "requests that a machine reads at a time (load.inputs.readers not given)"
        yield Assumption(what=what, value=str(inputs.readers), source=source)


def load_of(given: LoadSection, document: Document, one_pass: Model | None = None) -> Load:
    """The load of a section without problems, at a model that answers in `one_pass` or another.

    Raises
    ------
    InputError
        If its trace has mistakes.
    """
    load = _load(given, _arrivals(given, document), one_pass=one_pass is not None)
    return replace(load, traffic=traffic_of(given, load, one_pass))


def _load(
    given: LoadSection, ways: ClosedLoop | OpenLoop | RateCurve | Trace, *, one_pass: bool
) -> Load:
    """The load without its bytes."""
    if one_pass:
        # A sample is a token of a prompt, and the answer is one token: see Serving.
        samples = given.samples or 1
        if isinstance(ways, Trace):
            count = len(ways.arrivals)
            ways = replace(ways, prompts=(samples,) * count, outputs=(1,) * count)
        one = Lengths(tokens=1.0)
        prompt = Lengths(tokens=float(samples))
        return Load(
            arrivals=ways, prompt=prompt, output=one, requests=given.requests, users=given.users
        )
    if isinstance(ways, Trace):
        prompt = Lengths(tokens=float(np.mean(ways.prompts)))
        output = Lengths(tokens=float(np.mean(ways.outputs)))
    else:
        usual = Lengths(tokens=1.0)
        prompt, output = given.prompt or usual, given.output or usual
    return Load(
        arrivals=ways,
        prompt=prompt,
        output=output,
        requests=given.requests,
        users=given.users,
        shared_prefix=given.shared_prefix,
        prefix_hit_rate=given.prefix_hit_rate,
    )


def _arrivals(given: LoadSection, document: Document) -> ClosedLoop | OpenLoop | RateCurve | Trace:
    kind = given.arrivals
    if kind is Arrivals.TRACE:
        origin = Path(document.where(("load", "trace"))[0])
        folder = origin.parent if origin.suffix == ".toml" else Path()
        return read_requests(folder / (given.trace or ""))
    if kind is Arrivals.CLOSED:
        return ClosedLoop(concurrency=given.users or given.concurrency or 1, think=given.think)
    if kind is Arrivals.CAMERAS:
        cameras = given.cameras or 1
        rate = cameras * (given.frame_rate or math.inf)
        return OpenLoop(rate=rate, burstiness=math.inf, sources=cameras)
    if kind is Arrivals.DAILY:
        shares = tuple(given.curve or OFFICE)
        # The rate is that of the peak, whatever the largest share is called; that of users is the
        # mean.
        curve = RateCurve(
            rate=_rate(given),
            shares=tuple(share / max(shares) for share in shares),
            period=given.period or DAY,
        )
        return curve if given.users is None else replace(curve, rate=curve.rate**2 / curve.mean)
    if kind is Arrivals.AT_ONCE:
        return OpenLoop(rate=math.inf)
    shapes = {Arrivals.GAMMA: given.burstiness or 1.0, Arrivals.EVEN: math.inf}
    return OpenLoop(rate=_rate(given), burstiness=shapes.get(kind, 1.0))


def _rate(given: LoadSection) -> PerSecond:
    """Requests a second: those of the users, where they are given, win over a rate."""
    if given.users is not None and given.per_user is not None:
        return given.users * given.per_user
    return given.rate or math.inf
