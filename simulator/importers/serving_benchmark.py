"""Importer of results of the benchmark clients of vLLM and SGLang: measured runs of a service.

``vllm bench serve --save-result`` writes one JSON object per run, ``sglang.bench_serving`` one per
line. Both have the same names: ``mean_ttft_ms``, ``median_tpot_ms``, ``output_throughput``,
``completed``, ``total_input_tokens``, ``request_rate`` (``inf``: all at once), ``max_concurrency``;
end-to-end latency is ``e2el`` in vLLM and ``e2e_latency`` in SGLang. Structure: vllm-project/vllm
vllm/benchmarks/serve.py, sgl-project/sglang python/sglang/bench_serving.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from simulator.errors import Problem
from simulator.importers.foreign import changed, parse_json, read_text, refuse
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


def read(path: Path) -> list[MeasuredRun]:
    """Read the runs of a result file.

    Raises
    ------
    InputError
        If the file is not a benchmark result, or runs lack required values; with all problems.
    """
    text = read_text(path, WANTED)
    runs = _objects(text, str(path))
    refuse([problem for n, run in enumerate(runs) for problem in _problems(run, str(path), n)])
    return [_run(run, path, n) for n, run in enumerate(runs) if isinstance(run, Mapping)]


def _objects(text: str, origin: str) -> list[object]:
    """Parse the file as one JSON object, or as one object per line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) == 1:
            return [parse_json(text, origin)]
        return [parse_json(line, f"{origin}, line {n}") for n, line in enumerate(lines, 1)]


def _problems(run: object, origin: str, number: int) -> Iterator[Problem]:
    where = f"{origin}, run {number + 1}"
    if not isinstance(run, Mapping):
        hint = "vllm bench serve --save-result, sglang.bench_serving --output-file"
        yield Problem(origin=where, message=f"is not {WANTED}", hint=hint)
        return
    for name in _NEEDED:
        value = _number(run, name)
        if value is None or value <= 0.0:
            message = "is missing" if value is None else "is not above 0"
            yield Problem(origin=where, key=name, message=message)
    if not _measured(run):
        hint = "mean_ttft_ms, median_tpot_ms, output_throughput"
        yield Problem(origin=where, message="has none of the figures that are read", hint=hint)


def _number(run: Mapping[object, object], name: str) -> float | None:
    """Return a value as a number (``inf`` may be text); None if it is missing or not a number."""
    value = run.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _measured(run: Mapping[object, object]) -> dict[str, float]:
    """Return the metrics of a run in SI units, under their names in ``--json``."""
    found = {}
    for metric, names in _LATENCIES.items():
        for statistic, prefix in _STATISTICS.items():
            values = (_number(run, f"{prefix}_{name}_ms") for name in names)
            value = next((one for one in values if one), None)
            if value is not None and 0.0 < value < math.inf:
                found[f"{metric}.{statistic}"] = _MILLI * value
    rate = _number(run, "output_throughput")
    if rate is not None and 0.0 < rate < math.inf:
        found["output_tokens_per_s"] = rate
    return found


def _run(run: Mapping[object, object], path: Path, number: int) -> MeasuredRun:
    count = int(_number(run, "completed") or 1.0)
    prompt, output = (
        max(1, round((_number(run, name) or 0.0) / count))
        for name in ("total_input_tokens", "total_output_tokens")
    )
    overrides = (
        *_arrivals(run),
        f"load.requests={count}",
        f"load.prompt={{ tokens = {prompt} }}",
        f"load.output={{ tokens = {output} }}",
    )
    measured = _measured(run)
    summary = [f"{key} = {value}" for key, _, value in (each.partition("=") for each in overrides)]
    summary += [f"{name} = {value:.6g}" for name, value in measured.items()]
    return MeasuredRun(
        id=path.stem if number == 0 else f"{path.stem}~{number + 1}",
        overrides=overrides,
        measured=measured,
        source=Source(reference=path.name, date=changed(path)),
        summary=tuple(summary),
        warnings=("all requests are assumed to have the mean length: a result holds only sums",),
    )


def _arrivals(run: Mapping[object, object]) -> Iterator[str]:
    """Yield ``[load]`` overrides for the arrivals: fixed concurrency, fixed rate, or at once."""
    rate, clients = _number(run, "request_rate"), _number(run, "max_concurrency")
    if clients:
        yield "load.arrivals=closed"
        yield f"load.concurrency={int(clients)}"
    elif rate is not None and math.isfinite(rate):
        yield "load.arrivals=poisson"
        yield f"load.rate={rate:g} /s"
    else:
        yield "load.arrivals=at-once"


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
