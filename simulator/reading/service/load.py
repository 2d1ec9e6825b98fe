"""The ``[load]`` section as the requests of a service: arrivals, lengths, traces, traffic, inputs.

Requests of a trace are recorded in a CSV file. The job that reads the inputs of requests from a
store writes the answers back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np

from simulator.errors import InputError, Problem
from simulator.memo import cached
from simulator.reading.document import Document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import from_document, to_scenario
from simulator.reading.service.sections import Arrivals, InputsSection, LoadSection, ServiceFile
from simulator.reading.table import Line, Table, capped, read_table
from simulator.records import dataclass
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import Scenario
from simulator.schema.serving import (
    ClosedLoop,
    Lengths,
    Load,
    OpenLoop,
    RateCurve,
    Trace,
    Traffic,
)
from simulator.units import BYTE, HOUR, Bytes, PerSecond, show

OWN: Final = ("arrival_s", "prompt_tokens", "output_tokens")
CLOCKED: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
"""Columns of the traces of Azure/AzurePublicDataset, AzureLLMInferenceTrace, 2023."""


def read_requests(path: Path) -> Trace:
    """Read a trace, in the order of its arrivals, which start at 0.

    Parameters
    ----------
    path : pathlib.Path
        A CSV file with the columns `OWN`, or `CLOCKED`, whose times are dates.

    Raises
    ------
    InputError
        With all its mistakes: missing columns, times that are not numbers or decrease, lengths that
        are not whole numbers of at least one token.
    """
    table = read_table(path)
    names = CLOCKED if set(CLOCKED) <= set(table.columns) else OWN
    missing = [name for name in names if name not in table.columns]
    if missing:
        hint = f"columns: {', '.join(OWN)}"
        raise InputError(tuple(table.about(name, "is missing", hint=hint) for name in missing))
    problems = list[Problem]()
    arrivals = _arrival_times(table, names[0], problems)
    prompts = [_tokens(table, line, names[1], problems) for line in table.lines]
    outputs = [_tokens(table, line, names[2], problems) for line in table.lines]
    if problems:
        raise InputError(capped(problems))
    begin = arrivals[0]
    return Trace(
        arrivals=tuple(time - begin for time in arrivals),
        prompts=tuple(prompts),
        outputs=tuple(outputs),
        origin=str(path),
    )


def _arrival_times(table: Table, name: str, problems: list[Problem]) -> list[float]:
    times = [moment(line.cells[name]) for line in table.lines]
    problems += _wrong_times(table, name, times)
    return times


def _wrong_times(table: Table, name: str, times: list[float]) -> Iterator[Problem]:
    before = -math.inf
    for line, time in zip(table.lines, times, strict=True):
        if not math.isfinite(time) or time < 0.0:
            yield table.problem(line, name, "is not a time of an arrival", "seconds, 0 or more")
        elif time < before:
            hint = "sort the trace by its arrivals"
            yield table.problem(line, name, "is earlier than the arrival before it", hint)
        else:
            before = time


def moment(text: str) -> float:
    """Return seconds, from a number or a date with a time of day; NaN for any other text.

    Examples
    --------
    >>> moment("12.5"), moment("1970-01-01 00:01:00.5"), moment("soon")
    (12.5, 60.5, nan)
    """
    try:
        return float(text)
    except ValueError:
        pass
    whole, _, part = text.partition(".")
    try:
        moment = datetime.fromisoformat(f"{whole}+00:00")
        return moment.timestamp() + float(f"0.{part or 0}")
    except ValueError:
        return math.nan


def _tokens(table: Table, line: Line, name: str, problems: list[Problem]) -> int:
    text = line.cells[name]
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    problems.append(
        table.problem(line, name, "is not a number of tokens", "a whole number above 0")
    )
    return 1


TEXT: Final = 4.0
"""Bytes of text per token: 3.94 characters of English (The Llama 3 Herd of Models, 2024, section
3.2)."""
STREAMED: Final = 300.0
"""Bytes of a streamed token: an event with its JSON. A guess, 2026-11-24, by the chunks of OpenAI's
interface, which serving engines follow."""
ANSWER: Final = 1000.0
"""Bytes of the answer of a model that answers in one pass, with its header. A guess, 2026-11-24."""


def traffic_of(given: LoadSection, load: Load, one_pass: Model | None) -> Traffic:
    """Return the bytes per token of a prompt and of an answer: as stated, else by default.

    Requests that all arrive at the start have no clients and no traffic.

    Parameters
    ----------
    given : LoadSection
        The section.
    load : Load
        The load of the section.
    one_pass : Model or None
        The model, if it answers in one pass: its clients send its input.
    """
    if given.arrivals is Arrivals.AT_ONCE:
        return Traffic()
    prompt, token = (TEXT, STREAMED) if one_pass is None else (one_pass.input_bytes, ANSWER)
    if given.request_bytes is not None:
        prompt = given.request_bytes / load.prompt.mean
    if given.answer_bytes is not None:
        token = given.answer_bytes / load.output.mean
    return Traffic(prompt_token=prompt, token=token)


def traffic_notes(given: LoadSection, load: Load, one_pass: Model | None) -> Iterator[Assumption]:
    """Yield assumptions about the bytes of requests and answers that are not stated."""
    if given.arrivals is Arrivals.AT_ONCE:
        return
    guess = Source(reference="a guess", date="2026-11-24", verified=False)
    if given.request_bytes is None:
        source, what = _sent(one_pass)
        value = _mean(load.prompt.mean * load.traffic.prompt_token)
        yield Assumption(what=f"{what} (load.request_bytes not given)", value=value, source=source)
    if given.answer_bytes is None:
        each = "an answer" if one_pass is not None else "tokens, each streamed in an event"
        what = f"bytes that a client gets for {each} (load.answer_bytes not given)"
        value = _mean(load.output.mean * load.traffic.token)
        yield Assumption(what=what, value=value, source=guess)


def _sent(one_pass: Model | None) -> tuple[Source, str]:
    if one_pass is not None:
        reference = "the size of the model's inputs; encoded pictures are smaller"
        return Source(reference=reference, date="2026-11-24"), "bytes of a request"
    reference = "3.94 characters of English a token: The Llama 3 Herd of Models, section 3.2"
    return Source(reference=reference, date="2024-07-31"), "bytes of a prompt"


def _mean(size: Bytes) -> str:
    return f"{show(size, BYTE, 2)} on average"


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
"""Required keys of each kind of arrivals."""
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
"""Example values of required keys, for hints."""
STEADY: Final = (Arrivals.POISSON, Arrivals.GAMMA, Arrivals.EVEN, Arrivals.CAMERAS)
"""Arrivals at one rate without end."""
_LENGTHS: Final = ("prompt", "output")
_PEOPLE: Final = ("users", "per_user")
"""Keys that replace a rate."""
_BYTES: Final = ("request_bytes", "answer_bytes")
"""Keys of the sizes of requests and answers."""
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
"""Optional keys of each kind of arrivals."""
_OWN: Final = (
    *("concurrency", "rate", "burstiness", "trace", "prompt", "output"),
    *("think", "curve", "period", "cameras", "frame_rate", "samples", "inputs", *_PEOPLE, *_BYTES),
)
"""Keys that apply to some kinds of arrivals only."""
DAY: Final = 24.0 * HOUR
OFFICE: Final = (
    *(0.10, 0.08, 0.06, 0.06, 0.08, 0.12, 0.20, 0.40, 0.70, 0.90, 1.00, 0.95),
    *(0.85, 0.90, 0.95, 0.90, 0.80, 0.60, 0.45, 0.35, 0.30, 0.25, 0.20, 0.15),
)
"""Rate of each hour of a day over that of the busiest, for users of one time zone at work. A guess,
2026-11-23; your own log is better."""


def means_something(kind: Arrivals, key: str, given: Mapping[str, object]) -> bool:
    """Return whether a key of a ``[load]`` table applies to this kind of arrivals.

    `users` who send at a stated rate do not apply to closed-loop arrivals.
    """
    if key == "users" and "per_user" in given and kind is Arrivals.CLOSED:
        return False
    lengths = () if kind is Arrivals.TRACE else (*_LENGTHS, "samples")
    return key not in _OWN or key in (*_NEEDS[kind], *_MAY[kind], *lengths)


def load_problems(
    given: LoadSection, document: Document, *, one_pass: bool = False
) -> Iterator[Problem]:
    """Yield required keys that are missing, and keys that do not apply to the arrivals.

    Requests to a model that answers in one pass have samples instead of lengths.
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
    """Return the required keys; `users` replaces a rate or concurrency.

    `needs` are the required keys without users.
    """
    if given.users is None and given.per_user is None:
        return needs
    people = {"rate": _PEOPLE, "concurrency": ("users",)}
    return tuple(one for name in needs for one in people.get(name, (name,)))


def load_notes(given: LoadSection) -> Iterator[Assumption]:
    """Yield the guessed defaults of a load."""
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
    """Return the load of a section without problems; `one_pass` is a model without tokens.

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
    """Return the load without traffic.

    `ways` is the process of its arrivals.
    """
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
    if given.users is not None and given.per_user is not None:
        return given.users * given.per_user
    return given.rate or math.inf


_INPUTS: Final = ("load", "inputs")
_KEYS: Final = {
    "hardware.storage": "store",
    "data.bytes_per_sample": "bytes",
    "input.workers": "readers",
    "data.client": "client",
    "input.output_bytes_per_sample": "answers",
}
"""Keys of the job that have another name in the service."""


def reading_of(file: ServiceFile, document: Document, known: Catalogue) -> Scenario | None:
    """Return the job that reads the inputs of requests; None if requests contain them.

    Parameters
    ----------
    file : ServiceFile
        The service. Its requests are the samples, the readers of a machine its workers, and the
        answers its output.
    document : Document
        The document of the service.
    known : Catalogue
        Profiles of machines and stores.

    Raises
    ------
    InputError
        If the store does not exist, or cannot be reached from the machines.
    """
    inputs = file.load.inputs
    if inputs is None:
        return None
    asked = _Asked(
        origin=document.origin,
        machine=file.hardware.machine,
        count=file.hardware.count,
        store=inputs.store,
        size=inputs.bytes,
        readers=inputs.readers,
        client=inputs.client,
        requests=file.load.requests or 1,
        answers=_written(file.load, inputs),
    )
    try:
        return _job(asked, known)
    except InputError as error:
        raise InputError(tuple(_own(one, document) for one in error.problems)) from None


def _written(load: LoadSection, inputs: InputsSection) -> Bytes:
    """Return the size of a mean answer that is written to the store [B]."""
    if inputs.answers is not None:
        return inputs.answers
    return 0.0 if load.output is None else TEXT * load.output.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Settings of the job that reads requests and writes answers."""

    origin: str
    machine: str
    count: int
    store: str
    size: Bytes
    readers: int
    client: str
    requests: int
    answers: Bytes


@cached(most=64, by_value=(_Asked,))
def _job(asked: _Asked, known: Catalogue) -> Scenario:
    hardware = {"machine": asked.machine, "count": asked.count, "storage": asked.store}
    data = {
        "schema": 1,
        "hardware": hardware,
        "data": {
            "samples": asked.requests,
            "bytes_per_sample": f"{asked.size} B",
            "cache": "none",
            "client": asked.client,
        },
        "input": {
            "workers": asked.readers,
            "output_bytes_per_sample": f"{asked.answers} B",
        },
        "train": {"mode": "prepare", "batch_size": 1},
    }
    document = Document(origin=asked.origin, data=data, lines={})
    return to_scenario(from_document(document, known, ()), "inputs")


def _own(problem: Problem, document: Document) -> Problem:
    key = _KEYS.get(problem.key or "")
    path = _INPUTS if key is None else (*_INPUTS, key)
    return document.problem(path, problem.message, hint=problem.hint, show=key is not None)
