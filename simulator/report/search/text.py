"""A sweep for people: how its candidates fared, the Pareto front, and the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from simulator.report.format.table import Table
from simulator.report.labels import setting_called
from simulator.report.numbers import metric_figure
from simulator.report.text import columns, count, percent, printable, section, wrapped
from simulator.results.metrics import JOB_METRICS
from simulator.schema.goal import Objective, Sense
from simulator.studies.search.findings import MAX_SHOWN, Findings, Reason, column_names, row
from simulator.studies.search.outcome import Outcome, Status

REASONS: Final = 3
"""Reasons told of those that were left out; the rest are counted."""
BESIDE: Final = (
    *("total_time_s", "cost.usd_to_train", "throughput_samples_per_s"),
    *("accelerator_utilization", "bottleneck"),
)
"""Metrics that stand in every table."""

_HEADS: Final = {
    "total_time_s": "total",
    "cost.usd_to_train": "cost",
    "throughput_samples_per_s": "samples/s",
    "accelerator_utilization": "busy",
    "bottleneck": "bottleneck",
}
_METRICS: Final = {metric.name: metric for metric in JOB_METRICS}
_WORDS: Final = {
    Status.PREDICTED: "predicted",
    Status.SCREENED: "screened out",
    Status.INFEASIBLE: "infeasible",
    Status.REFUSED: "refused",
    Status.FAILED: "failed",
    Status.BUG: "met a bug of ours",
}


def as_text(found: Findings, name: str) -> str:
    """The report of a sweep of the scenario `name`."""
    over = ", ".join(f"{printable(key)} ({n:,})" for key, n in found.values.items())
    lines = wrapped(f"{name}: {len(found.outcomes):,} candidates over {over or 'nothing'}")
    lines += wrapped(fates_text(found))
    if found.idle:
        keys = ", ".join(map(printable, found.idle))
        lines += wrapped(f"without effect here: {keys} (all values give the same figures)")
    for status in (Status.INFEASIBLE, Status.REFUSED, Status.FAILED, Status.BUG):
        lines += section(_WORDS[status].capitalize(), list(reason_lines(found.reasons(status))))
    lines += section(f"Pareto front: {_against(found.objectives)}", _front(found))
    if found.best:
        lines += section(f"Best {len(found.best)} by {told(found.objectives[0])}", _best(found))
    lines += section("Prices of", [line for text in found.prices for line in wrapped(text)])
    return "\n".join(lines)


def _nothing(found: Findings) -> str:
    """Why the front is empty."""
    if not found.counts[Status.PREDICTED]:
        return "nothing can run"
    names = ", ".join(printable(objective.metric) for objective in found.objectives)
    return f"no candidate has a figure for {names}; plan explain says what is not known"


def nothing_found(found: Findings) -> str:
    """Why there is no answer, in a line."""
    if found.counts[Status.PREDICTED]:
        return _nothing(found)
    parts = [
        f"{n:,} {_WORDS[status]}, most often: {found.reasons(status)[0].text}"
        for status, n in found.counts.items()
        if n and status not in {Status.PREDICTED, Status.SCREENED}
    ]
    return f"no candidate can run; {'; '.join(parts) or 'there is none'}"


def all_candidates(found: Findings) -> Table:
    """Every candidate with status, reason and figures; the columns of the frame."""
    names = column_names(found.outcomes)
    return Table(head=names, rows=tuple(row(outcome, names) for outcome in found.outcomes))


def best_candidates(found: Findings) -> Table:
    """The front, and behind it the best that were asked for: for documents."""
    shown = [place.outcome for place in found.front]
    shown += [outcome for outcome in found.best if outcome not in shown]
    names = _metrics(found.objectives)
    return Table(
        head=("candidate", *found.values, *names),
        rows=tuple(
            (
                outcome.candidate.index,
                *(outcome.candidate.settings.get(key) for key in found.values),
                *(_cell(outcome, name) for name in names),
            )
            for outcome in shown
        ),
    )


def _cell(outcome: Outcome, name: str) -> str | float | int | None:
    value = outcome.figures.get(name)
    return value if isinstance(value, str | float | int) else None


def fates_text(found: Findings) -> str:
    """How the candidates fared, such as ``6 predicted, 2 infeasible``."""
    return ", ".join(f"{n:,} {_WORDS[status]}" for status, n in found.counts.items() if n)


def reason_lines(reasons: Sequence[Reason]) -> Iterator[str]:
    """The commonest reasons with how often each was met; the rest is counted."""
    for reason in reasons[:REASONS]:
        yield from wrapped(f"{reason.count:,} x {reason.text}")
    rest = reasons[REASONS:]
    if rest:
        yield f"{sum(reason.count for reason in rest):,} for {len(rest):,} other reasons"


def _against(objectives: Sequence[Objective]) -> str:
    return " against ".join(told(objective) for objective in objectives)


def told(objective: Objective, called: str = "") -> str:
    """An objective in words; the metric by its name, or as it is `called`."""
    way = "most" if objective.sense is Sense.MAXIMIZE else "least"
    return f"{way} {called or printable(objective.metric)}"


def _front(found: Findings) -> list[str]:
    places = found.front[:MAX_SHOWN]
    lines = _rows([place.outcome for place in places], found) if places else [_nothing(found)]
    equal = sum(len(place.equal) for place in found.front)
    if len(found.front) > MAX_SHOWN:
        lines.append(f"{len(found.front) - MAX_SHOWN:,} more are in --json, --csv and --parquet")
    if equal:
        lines.append(f"exactly as good as one of these: {equal:,} more")
    if found.margin:
        lines.append(f"also within {percent(found.margin)} of the front: {len(found.near):,}")
    return lines


def _best(found: Findings) -> list[str]:
    return _rows(found.best, found)


def _rows(outcomes: Sequence[Outcome], found: Findings) -> list[str]:
    """Candidates with what varies and the main metrics."""
    keys, names = tuple(found.values), _metrics(found.objectives)
    kept = [name for name in names if any(o.figures.get(name) is not None for o in outcomes)]
    head = ("candidate", *_short(keys), *(_HEADS.get(name, printable(name)) for name in kept))
    rows = [
        (
            str(outcome.candidate.index),
            *(setting_called(key, outcome.candidate.settings.get(key, "")) for key in keys),
            *(_figure(outcome, name) for name in kept),
        )
        for outcome in outcomes
    ]
    sides = "".join("<" if _is_text(rows, column) else ">" for column in range(len(head)))
    return columns([head, *rows], sides)


def _figure(outcome: Outcome, name: str) -> str:
    value = outcome.figures.get(name)
    if value is None:
        return "-"
    if name == "throughput_samples_per_s" and isinstance(value, float):
        return count(value)
    return metric_figure(name, value)


def _is_text(rows: Sequence[Sequence[str]], column: int) -> bool:
    return not all(row[column][:1] in "0123456789$-." for row in rows)


def _metrics(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Metrics of a table: those that are objectives first."""
    asked = [objective.metric for objective in objectives if objective.metric in _METRICS]
    return tuple(dict.fromkeys((*asked, *BESIDE)))


def _short(keys: Sequence[str]) -> tuple[str, ...]:
    """Keys without their section where that leaves them distinct."""
    last = [key.rpartition(".")[2] for key in keys]
    return tuple(
        name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)
    )
