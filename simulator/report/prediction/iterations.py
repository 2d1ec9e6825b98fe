"""The explanation of a service: the parts of an iteration, and the times of a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import BatchPass, ForwardPass, Iteration, batch_pass
from simulator.report.document import Document, Section, Table, grid, notes, section
from simulator.report.numbers import significant
from simulator.report.prediction.job import SCHEMA
from simulator.report.text import percent
from simulator.results.serving import ServicePrediction
from simulator.schema.serving import Service
from simulator.schema.software import ServingFigures
from simulator.serving.load import mean_context
from simulator.units import BYTE, SECOND, show


def document(prediction: ServicePrediction) -> Document:
    """Return the parts of an iteration as a document; batch times for models without tokens."""
    service = prediction.service
    if service.one_pass is None:
        from simulator.predict import pass_of

        return _iterations_document(prediction, pass_of(service))
    return _batches_document(
        prediction, batch_pass(service.one_pass, service.serving.max_batched_tokens)
    )


def _iterations_document(prediction: ServicePrediction, work: ForwardPass) -> Document:
    service, figures = prediction.service, _figures(prediction.service)
    found = iterations(prediction)
    return Document(
        title=f"{service.name}: time of an iteration on a replica",
        sections=(
            *(part for label, each in found.items() for part in _iteration(label, each, work)),
            *section("Requests", notes(_request(prediction))),
            *section("KV cache", notes(_cache(prediction, work))),
            *section("Assumptions", notes(_sources(figures))),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "iterations": [
                {"holds": label, "seconds": work.seconds(each), "parts": parts(work, each)}
                for label, each in found.items()
            ],
            "figures": {
                name: {"value": getattr(figures, name), "source": source.reference}
                for name, source in figures.sources.items()
            },
        },
        table=lambda: Table(
            head=("iteration", "part", "seconds"),
            rows=tuple(
                (label, name, time)
                for label, each in found.items()
                for name, time in parts(work, each).items()
            ),
        ),
    )


def iterations(prediction: ServicePrediction) -> dict[str, Iteration]:
    """Return typical iterations by label: decoding alone, and with the prefill of a prompt."""
    load, answered = prediction.service.load, prediction.answered
    decoding = 1 if answered is None else max(1, round(answered.batch))
    prompt = max(1, round(load.prompt.mean))
    context = decoding * mean_context(load)
    answers = Iteration(decoding=decoding, context_tokens=context)
    both = Iteration(
        prefill_tokens=prompt,
        prefill_pairs=float(causal_pairs(prompt, 0)),
        first_tokens=1,
        decoding=decoding,
        context_tokens=context,
    )
    return {
        f"{decoding:,} requests decode": answers,
        f"the same with a prompt of {prompt:,} tokens": both,
    }


def parts(work: ForwardPass, each: Iteration) -> dict[str, float]:
    """Return the times of the parts of an iteration, whose sum is its time [s].

    Each part is the time of an iteration with only this part, minus that of an empty iteration.
    """
    empty = work.seconds(Iteration())
    tokens = work.seconds(Iteration(prefill_tokens=each.prefill_tokens + each.decoding))
    sampled = work.seconds(Iteration(first_tokens=each.first_tokens + each.decoding))
    scores = work.seconds(Iteration(prefill_pairs=each.prefill_pairs))
    cache = work.seconds(Iteration(context_tokens=each.context_tokens))
    return {
        "launches and the engine": empty,
        "weights and products of the layers": tokens - empty,
        "attention of prompts": scores - empty,
        "reading keys and values": cache - empty,
        "scores of tokens, and sampling": sampled - empty,
    }


def _figures(service: Service) -> ServingFigures:
    if service.figures is None:
        msg = "a service that writes tokens has figures of its engine"
        raise TypeError(msg)
    return service.figures


_PARTS: Final = {
    "launches and the engine": "launches and engine",
    "weights and products of the layers": "weights and GEMMs of the layers",
    "attention of prompts": "attention of prefill",
    "reading keys and values": "reading the KV cache",
    "scores of tokens, and sampling": "logits and sampling",
}
"""Labels of the parts of an iteration, by their names in ``--json``."""


def _iteration(label: str, each: Iteration, work: ForwardPass) -> tuple[Section, ...]:
    whole = work.seconds(each)
    rows = [
        (_PARTS[name], show(time, SECOND), percent(time / whole))
        for name, time in parts(work, each).items()
        if time > 0.0
    ]
    return section(f"{label}: {show(whole, SECOND)}", grid(("part", "time", "share"), rows, "<>>"))


def _request(prediction: ServicePrediction) -> Iterator[str]:
    service, answered = prediction.service, prediction.answered
    serving, load = service.serving, service.load
    overhead = serving.request_overhead + serving.prompt_overhead * load.prompt.mean
    before, lag = show(overhead, SECOND), significant(serving.reply_lag, 2)
    yield f"Network and tokenization take {before} on average before the scheduler has a request."
    yield f"A token reaches the client {lag} iterations after it was computed."
    if answered is None:
        return
    batch, wait = significant(answered.batch, 3), show(answered.wait.mean, SECOND)
    yield f"The mean wait until the first iteration is {wait}, network and tokenization included."
    yield f"On average {batch} requests decode in an iteration, and each token takes one iteration."


def _cache(prediction: ServicePrediction, work: ForwardPass) -> Iterator[str]:
    memory = prediction.memory
    serving, load = prediction.service.serving, prediction.service.load
    size = show(work.kv_bytes_per_token, BYTE)
    yield f"{size} per token and device: {memory.cache_tokens:,} tokens per replica."
    within = memory.cache_tokens / (load.prompt.mean + load.output.mean)
    yield (
        f"That holds {significant(within, 3)} mean requests; the engine runs at most "
        f"{serving.max_sequences:,}."
    )


def _sources(figures: ServingFigures) -> Iterator[str]:
    """Yield each source once, with the values that it gives."""
    by_source: dict[str, list[str]] = {}
    for name, source in figures.sources.items():
        cited = f"{source.reference}, {source.date}"
        by_source.setdefault(cited, []).append(f"{name} {getattr(figures, name):.3g}")
    for cited, names in by_source.items():
        yield f"{', '.join(names)}: {cited}"


BATCH_HEAD: Final = ("samples", "seconds", "samples_per_s")


def _batches_document(prediction: ServicePrediction, work: BatchPass) -> Document:
    service = prediction.service
    cells = tuple(_batches(service.serving.max_batched_tokens, work))
    rows = [(f"{n:,}", show(time, SECOND), significant(rate, 3)) for n, time, rate in cells]
    return Document(
        title=f"{service.name}: time of a batch of {service.model.name} on a device",
        sections=(
            *section("", grid(("samples", "time", "samples/s"), rows, ">>>")),
            *section("Requests", notes(_batch_request(prediction))),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "scenario": service.name,
            "batches": [dict(zip(BATCH_HEAD, row, strict=True)) for row in cells],
        },
        table=lambda: Table(head=BATCH_HEAD, rows=cells),
    )


def _batches(most: int, work: BatchPass) -> Iterator[tuple[int, float, float]]:
    """Yield size, time [s] and samples/s of batches: powers of two up to `most`, and `most`."""
    size = 1
    while True:
        time = work.seconds(Iteration(prefill_tokens=size))
        yield size, time, size / time
        if size == most:
            return
        size = min(most, 2 * size)


def _batch_request(prediction: ServicePrediction) -> Iterator[str]:
    serving, answered = prediction.service.serving, prediction.answered
    if serving.host_time:
        time, threads = show(serving.host_time, SECOND), serving.host_threads
        yield f"Preprocessing takes {time} on one of {threads:g} host threads."
    if answered is not None:
        wait, batch = show(answered.wait.mean, SECOND), significant(answered.batch, 3)
        yield f"The mean wait for a batch is {wait}; batches hold {batch} samples on average."
