"""``plan compare`` of services."""

from __future__ import annotations

import json
import re

import pytest

from simulator.cli.main import main
from simulator.cli.output import Exit

CHAT = "llama3-8b-chat-h100"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and messages of ``plan compare``."""
    code = main(["compare", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_report_has_keys_figures_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """What tells two services apart, what that does with its uncertainty, what a request costs."""
    code, out, err = run(capsys, CHAT, f"{CHAT}:serving.weights=fp8")
    assert (code, err) == (Exit.FINE, "")
    assert f"[2] {CHAT} with serving.weights=fp8" in out
    assert "serving.weights  bf16  fp8" in out
    # the intervals of both, below the two figures
    assert re.search(r"TTFT p99 .* ms .* ms .*\n +\d+-\d+ ms +\d+-\d+ ms", out)
    assert "[2] vs [1]: same price at" in out
    assert max(map(len, out.splitlines())) <= 100


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """All figures of both with their intervals, and the ratios."""
    code, out, _ = run(capsys, CHAT, f"{CHAT}:serving.weights=fp8", "--format", "json")
    found = json.loads(out)
    first, other = found["services"]
    assert code == Exit.FINE
    assert found["differences"] == {"serving.weights": ["bf16", "fp8"]}
    assert first["beside_first"] is None
    assert other["beside_first"]["price_ratio"] == pytest.approx(1.0)
    assert other["beside_first"]["saving"] > 0.1
    assert set(first["interval"]) <= set(first["figures"])


def test_in_other_forms(capsys: pytest.CaptureFixture[str]) -> None:
    """CSV has all figures in SI units, Markdown those of the report."""
    _, csv, _ = run(capsys, CHAT, f"{CHAT}:load.rate=5 /s", "--format", "csv")
    _, page, _ = run(capsys, CHAT, f"{CHAT}:load.rate=5 /s", "--format", "markdown")
    assert csv.startswith(f"what,name,[1] {CHAT},[2] {CHAT} with load.rate=5 /s\n")
    assert "\nmetric,first_token_s.p99," in csv
    assert "| load.rate |" in page


def test_one_that_is_beyond_saturation_has_no_latency(capsys: pytest.CaptureFixture[str]) -> None:
    """Its column has dashes, its verdict says why, and the exit code is 1."""
    code, out, _ = run(capsys, CHAT, f"{CHAT}:load.rate=500 /s")
    assert code == Exit.DOES_NOT_FIT
    assert "Overloaded: capacity 19 requests/s" in out
    assert next(line for line in out.splitlines() if "TPOT p50" in line).endswith(" -")


def test_models_in_one_pass_have_no_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    """Cores beside an accelerator by latency, rate and cost of requests."""
    code, out, _ = run(capsys, "image-classifier-cpu", "image-classifier-t4")
    assert code == Exit.FINE
    assert "token" not in out
    assert "1,000 requests" in out


def test_a_service_beside_a_job_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing could be said of both."""
    code, _, err = run(capsys, CHAT, "resnet50-imagenet-p4d")
    assert code == Exit.BAD_INPUT
    assert "cannot compare jobs with services" in err
