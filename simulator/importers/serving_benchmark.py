"""Importer of results of the benchmark clients of vLLM and SGLang: measured runs of a service.

``vllm bench serve --save-result`` writes one JSON object per run, ``sglang.bench_serving`` one per
line. Both have the same names: ``mean_ttft_ms``, ``median_tpot_ms``, ``output_throughput``,
``completed``, ``total_input_tokens``, ``request_rate`` (``inf``: all at once), ``max_concurrency``;
end-to-end latency is ``e2el`` in vLLM and ``e2e_latency`` in SGLang. Structure: vllm-project/vllm
vllm/benchmarks/serve.py, sgl-project/sglang python/sglang/bench_serving.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from simulator.errors import Problem
from simulator.importers.foreign import Entry, changed, parse_json, read_text, refuse
from simulator.importers.result import MeasuredRun, measurement_set
from simulator.schema.provenance import Source

WANTED: Final = "a result of a serving benchmark"
METRICS: Final = ("per_token_s.p50", "first_token_s.mean", "output_tokens_per_s")
"""Metrics to validate, if they were measured."""

_MILLI: Final = 1e-3
_LATENCIES: Final = {
    "first_token_s": ("ttft",),
    "per_token_s": ("tpot",),
    "end_to_end_s": ("e2el", "e2e_latency"),
}
_STATISTICS: Final = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
_NEEDED: Final = ("completed", "total_input_tokens", "total_output_tokens")
_AT_ONCE: Final = ("inf", "Infinity")
_MIN_RATE: Final = 1e-9
_MAX_COUNT: Final = 5e14
"""Bounds of the rate of arrivals [/s], and of numbers of requests, clients and tokens."""


def read(path: Path) -> list[MeasuredRun]:
    """Read the runs of a result file.

    Raises
    ------
    InputError
        If the file is not a benchmark result, or runs lack required values; with all problems.
    """
    problems: list[Problem] = []
    runs = [
        _run(Entry(data, f"{path}, run {number}", problems=problems), path, number)
        for number, data in enumerate(_objects(read_text(path, WANTED), str(path)), 1)
    ]
    refuse(problems)
    return [run for run in runs if run is not None]


def _objects(text: str, origin: str) -> list[object]:
    """Parse the file as one JSON object, or as one object per line."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    first = lines[0][1].strip()
    if len(lines) > 1 and first.startswith("{") and first.endswith("}"):
        return [parse_json(line, f"{origin}, line {number}") for number, line in lines]
    return [parse_json(text, origin)]


def _run(run: Entry, path: Path, number: int) -> MeasuredRun | None:
    """Return one run; report problems and return None if it is not a result."""
    if not run.is_mapping():
        hint = "vllm bench serve --save-result, sglang.bench_serving --output-file"
        run.fault(f"is not {WANTED}", hint=hint)
        return None
    completed, prompt, output = (_needed(run, name) for name in _NEEDED)
    arrivals, measured = tuple(_arrivals(run)), _measured(run)
    if not measured:
        hint = "mean_ttft_ms, median_tpot_ms, output_throughput"
        run.fault("has none of the figures that are read", hint=hint)
    if completed is None or prompt is None or output is None:
        return None
    overrides = (
        *arrivals,
        f"load.requests={completed:.0f}",
        f"load.prompt={{ tokens = {max(1, round(prompt / completed))} }}",
        f"load.output={{ tokens = {max(1, round(output / completed))} }}",
    )
    summary = [f"{key} = {value}" for key, _, value in (each.partition("=") for each in overrides)]
    summary += [f"{name} = {value:.6g}" for name, value in measured.items()]
    return MeasuredRun(
        id=path.stem if number == 1 else f"{path.stem}~{number}",
        overrides=overrides,
        measured=measured,
        source=Source(reference=path.name, date=changed(path)),
        summary=tuple(summary),
        warnings=("all requests are assumed to have the mean length: a result holds only sums",),
    )


def _needed(run: Entry, name: str) -> float | None:
    found = run.get(name)
    if found is None:
        Entry(None, run.origin, (name,), run.problems).fault("is missing")
    return None if found is None else found.number(1.0, _MAX_COUNT)


def _measured(run: Entry) -> dict[str, float]:
    """Return the metrics of a run in SI units, under their names in ``--json``."""
    found = {}
    for metric, names in _LATENCIES.items():
        for statistic, prefix in _STATISTICS.items():
            values = [run.measured_at(f"{prefix}_{name}_ms") for name in names]
            value = next((value for value in values if value), None)
            if value is not None:
                found[f"{metric}.{statistic}"] = _MILLI * value
    rate = run.measured_at("output_throughput")
    if rate:
        found["output_tokens_per_s"] = rate
    return found


def _arrivals(run: Entry) -> Iterator[str]:
    """Yield ``[load]`` overrides for the arrivals: fixed concurrency, fixed rate, or at once."""
    clients = run.number_at("max_concurrency", most=_MAX_COUNT)
    rate = run.get("request_rate")
    if clients:
        yield "load.arrivals=closed"
        yield f"load.concurrency={max(1, int(clients))}"
    elif rate is None or str(rate.value) in _AT_ONCE:
        yield "load.arrivals=at-once"
    else:
        yield "load.arrivals=poisson"
        yield f"load.rate={rate.number(_MIN_RATE, _MAX_COUNT) or 1.0:g} /s"


def set_files(runs: Sequence[MeasuredRun], base: str, name: str) -> tuple[str, str]:
    """Return a measurement set of the runs, predicted from the service `base`: its TOML and CSV."""
    judged = [metric for metric in METRICS if any(metric in run.measured for run in runs)]
    return measurement_set(
        runs,
        base=base,
        name=name,
        title="runs of a serving benchmark",
        source="results of the benchmark client",
        date=f"{datetime.now(tz=UTC):%Y-%m-%d}",
        metrics=judged or sorted(runs[0].measured),
        mode="serve",
    )
