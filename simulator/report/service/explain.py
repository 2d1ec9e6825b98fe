"""Why a service answers as it does: what an iteration is made of, and what bounds a request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import ForwardPass, Iteration
from simulator.report.format.table import Table, as_columns, as_markdown
from simulator.report.numbers import significant
from simulator.report.prediction.json import SCHEMA
from simulator.report.text import percent, section, wrapped
from simulator.results.serving import ServicePrediction
from simulator.schema.workload.serving_figures import ServingFigures
from simulator.units import BYTE, SECOND, show

NONE: Final = Iteration()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A prediction, and the forward pass it rests on."""

    prediction: ServicePrediction
    work: ForwardPass


def iterations(found: Explained) -> dict[str, Iteration]:
    """Iterations by what they hold: those of answers alone, and one that also holds a prompt."""
    load, told = found.prediction.service.load, found.prediction.answered
    decoding = 1 if told is None else max(1, round(told.batch))
    prompt, output = max(1, round(load.prompt.mean)), max(1, round(load.output.mean))
    context = decoding * (prompt + 0.5 * output)
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


def parts(work: ForwardPass, one: Iteration) -> dict[str, float]:
    """Times of the parts of an iteration, which add up to it [s].

    Each part is the difference that it makes: an iteration with it less one without.
    """
    empty = work.seconds(NONE)
    tokens = work.seconds(Iteration(prefill_tokens=one.prefill_tokens + one.decoding))
    sampled = work.seconds(Iteration(first_tokens=one.first_tokens + one.decoding))
    scores = work.seconds(Iteration(prefill_pairs=one.prefill_pairs))
    cache = work.seconds(Iteration(context_tokens=one.context_tokens))
    return {
        "launches and the engine": empty,
        "weights and products of the layers": tokens - empty,
        "attention of prompts": scores - empty,
        "reading keys and values": cache - empty,
        "scores of tokens, and sampling": sampled - empty,
    }


class ExplainReport:
    """Its methods are those of `report.format.table.Report`."""

    def as_text(self, found: Explained) -> str:
        """The report."""
        service = found.prediction.service
        lines = wrapped(f"{service.name}: what an iteration on a replica takes", hang="")
        for called, one in iterations(found).items():
            whole = show(found.work.seconds(one), SECOND)
            lines += section(f"{called}: {whole}", _lines(found, one))
        lines += section("A request", list(_request(found)))
        lines += section("The cache", list(_cache(found)))
        lines += section("Rests on", list(_sources(found)))
        return "\n".join(lines)

    def as_object(self, found: Explained) -> dict[str, Any]:
        """The same for programs [s]."""
        work, figures = found.work, _figures(found)
        return {
            "schema": SCHEMA,
            "scenario": found.prediction.service.name,
            "iterations": [
                {"holds": called, "seconds": work.seconds(one), "parts": parts(work, one)}
                for called, one in iterations(found).items()
            ],
            "figures": {
                name: {"value": getattr(figures, name), "source": source.reference}
                for name, source in figures.sources.items()
            },
        }

    def as_table(self, found: Explained) -> Table:
        """A row for each part of each iteration [s]."""
        rows = tuple(
            (called, name, time)
            for called, one in iterations(found).items()
            for name, time in parts(found.work, one).items()
        )
        return Table(head=("iteration", "part", "seconds"), rows=rows)

    def as_page(self, found: Explained) -> str:
        """The table as Markdown."""
        return as_markdown(self.as_table(found))


def _figures(found: Explained) -> ServingFigures:
    figures = found.prediction.service.figures
    if figures is None:
        msg = "what writes tokens has figures of its engine"
        raise TypeError(msg)
    return figures


def _lines(found: Explained, one: Iteration) -> list[str]:
    whole = found.work.seconds(one)
    rows = tuple(
        (name, show(time, SECOND), percent(time / whole))
        for name, time in parts(found.work, one).items()
        if time > 0.0
    )
    return as_columns(Table(head=("part", "time", "share"), rows=rows))


def _request(found: Explained) -> Iterator[str]:
    service, told = found.prediction.service, found.prediction.answered
    serving, load = service.serving, service.load
    overhead = serving.request_overhead + serving.prompt_overhead * load.prompt.mean
    beside, lag = show(overhead, SECOND), significant(serving.reply_lag, 2)
    yield f"A mean one takes {beside} until the scheduler has it: network and tokenising."
    yield f"A token reaches the client {lag} iterations after it was computed."
    if told is None:
        return
    batch, wait = significant(told.batch, 3), show(told.wait.mean, SECOND)
    yield f"It waits {wait} in the mean until its first iteration, that time included."
    yield f"On average {batch} requests decode in an iteration: each token takes as long as one."


def _cache(found: Explained) -> Iterator[str]:
    memory, work = found.prediction.memory, found.work
    serving, load = found.prediction.service.serving, found.prediction.service.load
    yield (
        f"{show(work.kv_bytes_per_token, BYTE)} a token on each device: "
        f"{memory.cache_tokens:,} tokens a replica."
    )
    within = memory.cache_tokens / (load.prompt.mean + load.output.mean)
    yield (
        f"That is {significant(within, 3)} mean requests; the engine runs "
        f"{serving.max_sequences:,} at most."
    )


def _sources(found: Explained) -> Iterator[str]:
    """Figures of the engine, each source once with what it stands for."""
    figures = _figures(found)
    by_source: dict[str, list[str]] = {}
    for name, source in figures.sources.items():
        said = f"{source.reference}, {source.date}"
        by_source.setdefault(said, []).append(f"{name} {getattr(figures, name):.3g}")
    for said, names in by_source.items():
        yield from wrapped(f"{', '.join(names)}: {said}")
