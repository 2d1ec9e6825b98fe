"""`evidence/convert.py` on a small table of language-model runs without a precedent."""

from __future__ import annotations

from pathlib import Path

import pytest

import convert
from converters.llm_training import COLUMNS
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario

RUNS = [
    {
        "id": "mine-1",
        "series": "mine",
        "model": "Llama-13B",
        "layers": "40",
        "hidden": "5120",
        "heads": "40",
        "kv_heads": "40",
        "ffn_hidden": "13824",
        "vocab": "32000",
        "seq_len": "4096",
        "gpu": "A100-80",
        "gpus_total": "64",
        "tp": "2",
        "pp": "2",
        "dp": "16",
        "micro_batch": "1",
        "global_batch": "256",
        "precision": "bf16",
        "software": "Megatron-LM fork of ours",
        "step_time_s_equiv": "12.5",
        "tier": "A",
    },
]
OTHERS = [
    {"id": "mine-2", "software": "an engine of ours", "tp": "1", "pp": "1", "dp": "64"},
    {"id": "mine-3", "gpu": "a device of ours"},
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three runs of a series that is in no shipped table."""
    runs = [RUNS[0], *({**RUNS[0], **changes} for changes in OTHERS)]
    columns = [*COLUMNS.required, "kv_heads", "ffn_hidden", "tier"]
    lines = [",".join(columns), *(",".join(run.get(c, "") for c in columns) for run in runs)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def test_an_unknown_series_converts_and_says_what_was_assumed(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows become scenarios with the generic software of their framework, which is reported."""
    assert convert.main(["llm_training", str(table), "-o", str(tmp_path / "mine")]) == 0
    out = capsys.readouterr().out
    assert "3 rows, 1 left out, 0 anchors, 0 fit, 3 test" in out
    assert "assumed: generic software of megatron-core (mine-1)" in out
    assert "left out: no machine of the catalogue has 'a device of ours' (mine-3)" in out
    first, second, _ = load_set(str(tmp_path / "mine.toml")).rows
    scenario = load_scenario(first.base, overrides=first.overrides)
    assert scenario.job.software.framework == "megatron-core"
    assert scenario.job.train.accumulation == 16
    assert second.labels["assumed"] == "generic software of fsdp"


def test_an_unknown_table_is_told_without_a_traceback(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong name ends with exit code 2, one message and no file."""
    assert convert.main(["llm_trainig", str(table), "-o", str(tmp_path / "mine")]) == 2
    assert "did you mean 'llm_training'?" in capsys.readouterr().err
    assert not list(tmp_path.glob("mine*"))
