"""Importer of request logs of a service: a trace to simulate, and its measured latencies.

A CSV file with a line for each request: arrival time, prompt tokens, output tokens and latency;
optionally the time to first token. Column names are those of engines, gateways and public traces.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from simulator.errors import InputError, Problem
from simulator.importers.foreign import changed
from simulator.importers.result import MeasuredRun, measurement_set
from simulator.reading.hardware.profile_text import quote
from simulator.reading.service.load import OWN, moment
from simulator.reading.table import capped, read_table
from simulator.records import dataclass
from simulator.schema.provenance import Source

COLUMNS: Final = {
    "arrival": ("arrival", "arrival_s", "arrival_time", "timestamp", "TIMESTAMP", "start"),
    "input": ("input", "input_tokens", "prompt_tokens", "ContextTokens"),
    "output": ("output", "output_tokens", "completion_tokens", "GeneratedTokens"),
    "latency": ("latency", "latency_s", "end_to_end_s", "e2e", "e2e_s"),
    "ttft": ("ttft", "ttft_s"),
}
"""Quantities and their possible column names; error messages name the first."""
_OPTIONAL: Final = "ttft"
_MIN_REQUESTS: Final = 100
"""Minimum number of requests for a 99th percentile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """Requests in order of arrival: times since the first [s], lengths [tokens], and latencies.

    `measured` maps metrics of a service to their values in SI units.
    """

    arrivals: tuple[float, ...]
    prompts: tuple[int, ...]
    outputs: tuple[int, ...]
    measured: Mapping[str, float]
    source: Source

    @property
    def summary(self) -> list[str]:
        """Lines of text that summarize the log."""
        span = self.arrivals[-1] - self.arrivals[0]
        prompt, output = np.mean(self.prompts), np.mean(self.outputs)
        lines = [
            f"requests = {len(self.arrivals)}, over {span:.6g} s",
            f"tokens of a prompt = {prompt:.4g}, of an answer = {output:.4g} (means)",
        ]
        return [*lines, *(f"{name} = {value:.6g}" for name, value in self.measured.items())]


def read(path: Path) -> RequestLog:
    """Read a request log.

    Raises
    ------
    InputError
        With all problems: missing columns, invalid times, lengths that are not positive integers.
    """
    table = read_table(path)
    names = {
        what: next((name for name in known if name in table.columns), None)
        for what, known in COLUMNS.items()
    }
    missing = [what for what, name in names.items() if name is None and what != _OPTIONAL]
    if missing:
        raise InputError(
            tuple(
                table.about(what, "is missing", hint=f"or one of {', '.join(COLUMNS[what][1:])}")
                for what in missing
            )
        )
    problems: list[Problem] = []

    def column(
        what: str, value_of: Callable[[str], float], wrong: str, least: float = 0.0
    ) -> np.ndarray:
        """Return the numbers of a column; an empty array if there is no such column."""
        name, values = names[what], []
        for line in table.lines if name is not None else ():
            value = value_of(line.cells[str(name)])
            if not (math.isfinite(value) and value >= least):
                problems.append(table.problem(line, str(name), wrong))
                value = least
            values.append(value)
        return np.array(values)

    arrivals = column("arrival", moment, "is not a time of an arrival")
    prompts = column("input", _whole, "is not a number of tokens", 1.0)
    outputs = column("output", _whole, "is not a number of tokens", 1.0)
    latencies = column("latency", moment, "is not a time in seconds")
    first = column(_OPTIONAL, moment, "is not a time in seconds")
    if problems:
        raise InputError(capped(problems))
    order = np.argsort(arrivals, kind="stable")
    return RequestLog(
        arrivals=tuple(float(arrivals[at] - arrivals[order[0]]) for at in order),
        prompts=tuple(int(prompts[at]) for at in order),
        outputs=tuple(int(outputs[at]) for at in order),
        measured=dict(_measured(outputs, latencies, first)),
        source=Source(reference=path.name, date=changed(path)),
    )


def _whole(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() else math.nan


def _measured(
    outputs: np.ndarray, latencies: np.ndarray, first: np.ndarray
) -> Iterator[tuple[str, float]]:
    """Yield metrics of the log under the names that predictions have."""
    for name, times in (("end_to_end_s", latencies), ("first_token_s", first)):
        if len(times):
            yield f"{name}.mean", float(np.mean(times))
            yield f"{name}.p50", float(np.median(times))
            if len(times) >= _MIN_REQUESTS:
                yield f"{name}.p99", float(np.quantile(times, 0.99))
    several = outputs > 1
    if len(first) and several.any():
        each = (latencies - first)[several] / (outputs - 1)[several]
        yield "per_token_s.p50", float(np.median(each))


def service_files(log: RequestLog, base: str, name: str) -> dict[str, str]:
    """Return the files for a log by name: trace, service with this load, and measurement set.

    Parameters
    ----------
    log : RequestLog
        The log.
    base : str
        Service file that the new one extends.
    name : str
        Name of the measurement set and prefix of the other files.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(OWN)
    writer.writerows(zip(log.arrivals, log.prompts, log.outputs, strict=True))
    service, trace = f"{name}-service.toml", f"{name}-trace.csv"
    load = ["schema = 1", f"extends = {quote(base)}", f"name = {quote(f'{name}-service')}", ""]
    load += ["[load]", 'arrivals = "trace"', f"trace = {quote(trace)}", ""]
    run = MeasuredRun(id=name, overrides=(), measured=log.measured, source=log.source)
    toml, rows = measurement_set(
        [run],
        base=service,
        name=name,
        title="a log of requests",
        source=f"{log.source.reference}, {log.source.date}",
        date=f"{datetime.now(tz=UTC):%Y-%m-%d}",
        metrics=log.measured,
        mode="serve",
    )
    return {
        trace: text.getvalue(),
        service: "\n".join(load),
        f"{name}.csv": rows,
        f"{name}.toml": toml,
    }
