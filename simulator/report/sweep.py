"""The report of ``plan sweep``: Pareto front, best and rejected candidates, files of all."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from simulator.errors import PlanError
from simulator.report.document import Document, Section, Table, as_csv, grid, notes, section
from simulator.report.labels import metric_called, setting_called, settings_called
from simulator.report.numbers import metric_figure, service_figure
from simulator.report.text import count, percent, printable
from simulator.results.metrics import JOB_METRICS, SOLVER, Value
from simulator.schema.goal import Objective, Sense
from simulator.studies.search.findings import MAX_SHOWN, Findings, Reason, column_names, frame, row
from simulator.studies.search.outcome import Outcome, Status
from simulator.version import __version__

SCHEMA: Final = 1
MAX_REASONS: Final = 3
"""Maximum number of reasons for rejections to list; others are counted."""
MAIN_METRICS: Final = (
    *("total_time_s", "cost.usd_to_train", "throughput_samples_per_s"),
    *("accelerator_utilization", "bottleneck"),
)
"""Metrics of every table of candidates."""

_HEADS: Final = {
    "total_time_s": "run time",
    "cost.usd_to_train": "cost",
    "throughput_samples_per_s": "samples/s",
    "accelerator_utilization": "busy",
    "bottleneck": "bottleneck",
}
_METRICS: Final = {metric.name: metric for metric in JOB_METRICS}
_FATES: Final = {
    Status.PREDICTED: "simulated",
    Status.SCREENED: "screened out",
    Status.INFEASIBLE: "infeasible",
    Status.REFUSED: "refused",
    Status.FAILED: "failed",
    Status.BUG: "hit a bug in plan",
}


def document(found: Findings | Sequence[Outcome], name: str) -> Document:
    """Return a sweep of the job or service `name` as a document."""
    if not isinstance(found, Findings):
        return _variants(found)
    over = ", ".join(f"{printable(key)} ({n:,})" for key, n in found.values.items())
    idle = ", ".join(map(printable, found.idle))
    best = found.best
    return Document(
        title=f"{name}: {len(found.outcomes):,} configurations over {over or 'nothing'}",
        question=(
            ("Result", fates_text(found)),
            ("No effect", f"{idle} (all values give the same figures)" if idle else ""),
        ),
        sections=(
            *rejections(found),
            *section(_front_title(found.objectives), *_front(found)),
            *section(
                f"Best {len(best)} by {objective_text(found.objectives[0])}",
                _candidates(best, found) if best else None,
            ),
            *section("Prices", notes(found.prices)),
        ),
        data=lambda: as_object(found, name),
        table=lambda: all_candidates(found),
    )


def rejections(found: Findings) -> tuple[Section, ...]:
    """Return sections with the most frequent reasons for not predicting candidates, by status."""
    return tuple(
        part
        for status in (Status.INFEASIBLE, Status.REFUSED, Status.FAILED, Status.BUG)
        for part in section(_FATES[status].capitalize(), notes(reason_texts(found.reasons(status))))
    )


def _empty(found: Findings) -> str:
    """Describe why the Pareto front is empty."""
    if not found.counts[Status.PREDICTED]:
        return "no configuration can run"
    names = ", ".join(printable(objective.metric) for objective in found.objectives)
    return f"{names} is unknown for all configurations; plan explain shows what is missing"


def none_found(found: Findings | Sequence[Outcome]) -> tuple[str, ...]:
    """Return sentences on why a sweep has no result; empty for a service, whose report says so."""
    if not isinstance(found, Findings):
        return ()
    if found.counts[Status.PREDICTED]:
        return (_empty(found),)
    parts = [
        f"{n:,} {_FATES[status]}, most often: {found.reasons(status)[0].text}"
        for status, n in found.counts.items()
        if n and status not in {Status.PREDICTED, Status.SCREENED}
    ]
    return (f"no candidate can run; {'; '.join(parts) or 'there is none'}",)


def all_candidates(found: Findings) -> Table:
    """Return a row for each candidate with status, reason and metrics, as in the data frame."""
    names = column_names(found.outcomes)
    return Table(head=names, rows=tuple(row(outcome, names) for outcome in found.outcomes))


def best_candidates(found: Findings) -> Table:
    """Return the candidates of the Pareto front, then the best ones that ``--top`` requested."""
    shown = [place.outcome for place in found.front]
    shown += [outcome for outcome in found.best if outcome not in shown]
    names = _shown_metrics(found.objectives)
    return Table(
        head=("candidate", *found.values, *names),
        rows=tuple(
            (
                outcome.candidate.index,
                *(outcome.settings.get(key) for key in found.values),
                *(_plain_value(outcome, name) for name in names),
            )
            for outcome in shown
        ),
    )


def _plain_value(outcome: Outcome, name: str) -> str | float | int | None:
    value = outcome.figures.get(name)
    return value if isinstance(value, str | float | int) else None


def fates_text(found: Findings) -> str:
    """Describe the number of candidates by status, such as ``6 simulated, 2 infeasible``."""
    return ", ".join(f"{n:,} {_FATES[status]}" for status, n in found.counts.items() if n)


def reason_texts(reasons: Sequence[Reason]) -> Iterator[str]:
    """Yield the most frequent reasons with their counts, and the number of others."""
    for reason in reasons[:MAX_REASONS]:
        yield f"{reason.count:,} x {reason.text}"
    rest = reasons[MAX_REASONS:]
    if rest:
        yield f"{sum(reason.count for reason in rest):,} for {len(rest):,} other reasons"


def _front_title(objectives: Sequence[Objective]) -> str:
    texts = " and ".join(map(objective_text, objectives))
    return f"Pareto front: {texts}" if len(objectives) > 1 else f"Best: {texts}"


def objective_text(objective: Objective) -> str:
    """Describe an objective, such as ``lowest run time``."""
    way = "highest" if objective.sense is Sense.MAXIMIZE else "lowest"
    return f"{way} {printable(metric_called(objective.metric))}"


def _front(found: Findings) -> tuple[Any, ...]:
    places = found.front[:MAX_SHOWN]
    texts = [] if places else [_empty(found)]
    equal = sum(len(place.equal) for place in found.front)
    if len(found.front) > MAX_SHOWN:
        texts.append(f"{len(found.front) - MAX_SHOWN:,} more are in --json, --csv and --parquet")
    if equal:
        others = "1 other is" if equal == 1 else f"{equal:,} others are"
        texts.append(f"{others} exactly as good as one of these")
    if found.margin:
        texts.append(f"within {percent(found.margin)} of the front: {len(found.near):,}")
    table = _candidates([place.outcome for place in places], found) if places else None
    return table, notes(texts)


def _candidates(outcomes: Sequence[Outcome], found: Findings) -> Table:
    """Return a table of candidates with the keys that vary and the main metrics."""
    keys, names = tuple(found.values), _shown_metrics(found.objectives)
    kept = [name for name in names if any(o.figures.get(name) is not None for o in outcomes)]
    head = ("candidate", *_short(keys), *(_HEADS.get(name, printable(name)) for name in kept))
    rows = tuple(
        (
            str(outcome.candidate.index),
            *(setting_called(key, outcome.settings.get(key, "")) for key in keys),
            *(_figure(outcome, name) for name in kept),
        )
        for outcome in outcomes
    )
    return Table(head=head, rows=rows, align=sides_of(rows))


def _figure(outcome: Outcome, name: str) -> str:
    value = outcome.figures.get(name)
    if value is None:
        return "-"
    if name == "throughput_samples_per_s" and isinstance(value, float):
        return count(value)
    return metric_figure(name, value)


def sides_of(rows: Sequence[Sequence[str]]) -> str:
    """Return the alignment of columns of text: those that look like numbers to the right."""
    return "".join(
        ">" if all(text[:1] in "0123456789$-." for text in column) else "<"
        for column in zip(*rows, strict=True)
    )


def _shown_metrics(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Return the metrics of a table, objectives first."""
    asked = [objective.metric for objective in objectives if objective.metric in _METRICS]
    return tuple(dict.fromkeys((*asked, *MAIN_METRICS)))


def _short(keys: Sequence[str]) -> tuple[str, ...]:
    """Return keys without their section if they remain distinct."""
    last = [key.rpartition(".")[2] for key in keys]
    return tuple(
        name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)
    )


def csv_text(found: Findings) -> str:
    """Return all candidates as CSV, with the columns of the data frame."""
    return f"{as_csv(all_candidates(found))}\n"


_TOKENS: Final = {
    "first_token_s.p50": "TTFT p50",
    "first_token_s.p99": "TTFT p99",
    "per_token_s.p50": "TPOT p50",
    "per_token_s.p99": "TPOT p99",
    "output_tokens_per_s": "tokens/s",
    "slo.attainment": "within SLO",
    "saturation.headroom": "headroom",
    "cost.usd_per_million_output_tokens": "1M out",
}
"""Column heads of metrics of variants, for services that generate tokens."""
_BATCHES: Final = {
    "end_to_end_s.p50": "latency p50",
    "end_to_end_s.p99": "latency p99",
    "requests_per_s": "requests/s",
    "slo.attainment": "within SLO",
    "saturation.headroom": "headroom",
    "utilization.accelerator": "busy",
    "cost.usd_per_thousand_requests": "1,000 req",
}
"""Column heads of metrics of variants, for models that answer in one pass."""


def _variants(found: Sequence[Outcome]) -> Document:
    """Return variants of a service as a document, with a row for each."""
    mistakes = (
        ": ".join(filter(None, (settings_called(one.settings), one.reason)))
        for one in found
        if one.reason
    )
    # Metrics of services are numbers only.
    figures = [cast("Mapping[str, float | None]", one.figures) for one in found]
    of_tokens = any("cost.usd_per_million_tokens" in one for one in figures)
    heads = _TOKENS if of_tokens else _BATCHES
    keys = tuple(dict.fromkeys(key for one in found for key in one.settings))
    names = tuple(dict.fromkeys(name for one in figures for name in one))
    rows = [
        (
            *(setting_called(key, one.settings.get(key, "")) for key in keys),
            *(service_figure(name, own.get(name)) for name in heads),
        )
        for one, own in zip(found, figures, strict=True)
    ]
    cells = tuple(
        (*map(one.settings.get, keys), *map(own.get, names))
        for one, own in zip(found, figures, strict=True)
    )
    return Document(
        sections=(
            *section("", grid((*_short(keys), *heads.values()), rows, sides_of(rows))),
            *section("Rejected", notes(mistakes)),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "variants": [
                {"settings": dict(v.settings), **dict(v.figures), "mistake": v.reason or None}
                for v in found
            ],
        },
        table=lambda: Table(head=(*keys, *names), rows=cells),
    )


def check_parquet() -> None:
    """Check before a long computation that Parquet files can be written.

    Raises
    ------
    PlanError
        If pyarrow is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        msg = "--parquet needs the package 'pyarrow': pip install 'plan-simulator[parquet]'"
        raise PlanError(msg)


def parquet_bytes(found: Findings) -> bytes:
    """Return the data frame as Parquet; columns of mixed types are text.

    Raises
    ------
    PlanError
        If pyarrow is not installed.
    """
    check_parquet()
    table = frame(found.outcomes)
    for name in table.columns:
        kinds = {type(value) for value in table[name].dropna()}
        if len(kinds) > 1 and not kinds <= {int, float}:
            table[name] = table[name].map(str, na_action="ignore")
    content = io.BytesIO()
    table.to_parquet(content, engine="pyarrow")
    return content.getvalue()


def as_object(found: Findings, name: str) -> dict[str, Any]:
    """Return a sweep of `name` as a JSON-serializable dict, in SI units; null: not finite."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "scenario": name,
        "objectives": [
            {"metric": objective.metric, "sense": str(objective.sense)}
            for objective in found.objectives
        ],
        "keys": list(found.values),
        "counts": {str(status): n for status, n in found.counts.items()},
        "solvers": {SOLVER: found.counts[Status.PREDICTED]},
        "without_effect": list(found.idle),
        "front": [
            {"candidate": place.outcome.candidate.index, "equal": list(place.equal)}
            for place in found.front
        ],
        "best": [outcome.candidate.index for outcome in found.best],
        "near": list(found.near),
        "prices": list(found.prices),
        "candidates": [_candidate(outcome) for outcome in found.outcomes],
    }
    return tree


def _candidate(outcome: Outcome) -> dict[str, Any]:
    return {
        "candidate": outcome.candidate.index,
        "settings": outcome.settings,
        "status": str(outcome.status),
        "reason": outcome.reason,
        "metrics": {name: _plain(value) for name, value in outcome.figures.items()},
        "interval": {
            name: {point: _plain(value) for point, value in band.items()}
            for name, band in outcome.intervals.items()
        },
    }


def _plain(value: Value) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
