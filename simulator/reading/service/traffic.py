"""What requests and answers of a [load] take on the network between clients and machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.reading.service.sections import Arrivals, LoadSection
from simulator.schema.serving import Load, Traffic
from simulator.schema.workload.models import Model
from simulator.uncertainty.provenance import Assumption, Source
from simulator.units import BYTE, Bytes, show

TEXT: Final = 4.0
"""Bytes of text for each token: 3.94 characters of English (The Llama 3 Herd of Models, 2024,
section 3.2)."""
STREAMED: Final = 300.0
"""Bytes that bring a client one token: an event of its own with its JSON around it. A guess,
2026-11-24, by the chunks of OpenAI's interface, which serving engines follow."""
ANSWER: Final = 1000.0
"""Bytes of the answer of a model that answers in one pass, with its head. A guess, 2026-11-24."""


def traffic_of(given: LoadSection, load: Load, one_pass: Model | None) -> Traffic:
    """Bytes for each token of a prompt and of an answer; what is given wins.

    Requests that are all there from the start come from no client.

    Parameters
    ----------
    given : LoadSection
        The section.
    load : Load
        The same, read.
    one_pass : Model or None
        The model, where it answers in one pass: its clients send what it takes in.
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
    """What is taken for the bytes of requests and answers where the file says nothing."""
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
