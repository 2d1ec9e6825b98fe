"""Results of serving benchmarks: loads and figures, and a set that plan validate predicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.importers import serving_benchmark
from simulator.reading.measured.measurement_set import parse_set

VLLM = {
    "backend": "vllm",
    "completed": 80,
    "total_input_tokens": 80_000,
    "total_output_tokens": 16_000,
    "request_rate": "inf",
    "max_concurrency": 8,
    "output_throughput": 640.0,
    "mean_ttft_ms": 90.0,
    "median_tpot_ms": 12.0,
    "p99_e2el_ms": 3000.0,
}
SGLANG = {
    **{name: VLLM[name] for name in ("completed", "total_input_tokens", "total_output_tokens")},
    "request_rate": 2.5,
    "max_concurrency": None,
    "mean_e2e_latency_ms": 2000.0,
}


def written(path: Path, text: str) -> Path:
    """A file with this text."""
    path.write_text(text, encoding="utf-8")
    return path


def test_a_closed_loop_of_vllm(tmp_path: Path) -> None:
    """Clients, lengths per request, and latencies in seconds."""
    (run,) = serving_benchmark.read(written(tmp_path / "a.json", json.dumps(VLLM)))
    assert "load.concurrency=8" in run.overrides
    assert "load.prompt={ tokens = 1000 }" in run.overrides
    assert run.measured == {
        "first_token_s.mean": pytest.approx(0.09),
        "per_token_s.p50": pytest.approx(0.012),
        "end_to_end_s.p99": pytest.approx(3.0),
        "output_tokens_per_s": 640.0,
    }


def test_lines_of_sglang(tmp_path: Path) -> None:
    """One run a line, at a rate, with SGLang's name of the whole latency."""
    lines = "\n".join([json.dumps(SGLANG), json.dumps({**SGLANG, "request_rate": "inf"})])
    first, second = serving_benchmark.read(written(tmp_path / "b.jsonl", lines))
    assert "load.rate=2.5 /s" in first.overrides
    assert "load.arrivals=at-once" in second.overrides
    assert first.measured == {"end_to_end_s.mean": pytest.approx(2.0)}
    assert (first.id, second.id) == ("b", "b~2")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "is not a result of a serving benchmark"),
        (json.dumps({**VLLM, "completed": 0}), "completed: is below 1, found 0"),
        (json.dumps({**VLLM, "completed": 1e-310}), "completed: is not a possible number"),
        (json.dumps({**VLLM, "total_input_tokens": "nan"}), "total_input_tokens: is not a finite"),
        ("[" * 2000, "is nested too deeply"),
        (json.dumps(VLLM).replace("80000", "9" * 5000), "a number of thousands of digits"),
        (json.dumps({"completed": 3}), "total_input_tokens: is missing"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """With what is wrong, and where."""
    with pytest.raises(InputError, match=told):
        serving_benchmark.read(written(tmp_path / "c.json", text))


def test_runs_become_a_set_of_services(tmp_path: Path) -> None:
    """Its rows are those of the service, judged by what was measured."""
    runs = serving_benchmark.read(written(tmp_path / "a.json", json.dumps(VLLM)))
    toml, rows = serving_benchmark.set_files(runs, "serving-run", "mine")
    found = parse_set(toml, rows, "mine.toml", tmp_path)
    assert found.serves
    assert found.metrics == serving_benchmark.METRICS
    assert found.rows[0].measured["first_token_s.mean"] == pytest.approx(0.09)
