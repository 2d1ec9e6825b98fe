"""Training steps of language models as rows of a measurement set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.tables import assert_keeps_rows, assert_reads_no_measurement, rows_of

from converters import TableRow
from converters.llm_training import configuration, convert

NAME = "llm_training"
SAMPLE = Path(__file__).parents[1] / "data" / "llm_training.csv"


@pytest.fixture
def rows() -> list[TableRow]:
    """Rows of every kind."""
    return rows_of(SAMPLE)


@pytest.fixture
def cells(rows: list[TableRow]) -> dict[str, dict[str, str]]:
    """What they are converted to, by id."""
    return {row["id"]: row for row in convert(rows)}


def test_nothing_measured_is_read(rows: list[TableRow]) -> None:
    """Other measured values change the measured cells and nothing else."""
    assert_reads_no_measurement(NAME, rows)
    assert_keeps_rows(NAME, rows)


def test_rows_that_cannot_be_predicted_say_why(cells: dict[str, dict[str, str]]) -> None:
    """Each reason is its own; no row is left out silently."""
    reasons = {name: row["exclude"] for name, row in cells.items() if "exclude" in row}
    assert reasons == {
        "b2": "layers, heads not stated",
        "b3": "tp x pp x cp x dp = 384, but 320 accelerators",
        "x1": "no machine of the catalogue has 'TPU v9'",
        "x3": "fine-tuning, of which part of the model is frozen",
    }


def test_a_series_never_seen_before_converts(cells: dict[str, dict[str, str]]) -> None:
    """Software known by its layout alone is taken as usual there, and the row says so."""
    assert cells["x2"]["assumed"] == "generic software of fsdp"
    assert cells["x2"]["software.framework"] == "fsdp"
    assert cells["x2"]["train.precision"] == "bf16"
    assert "assumed" not in cells["t1"]


def test_the_name_of_a_series_decides_nothing(rows: list[TableRow]) -> None:
    """Under another name a row converts to the same run, but for what counts and splits it."""
    named = [replace(row, cells={**row.cells, "series": f"run {i}"}) for i, row in enumerate(rows)]
    own = ("series", "family", "configuration", "split")
    for before, after in zip(convert(rows), convert(named), strict=True):
        assert {c: v for c, v in before.items() if c not in own} == {
            c: v for c, v in after.items() if c not in own
        }


def test_encoders_are_held_out(cells: dict[str, dict[str, str]]) -> None:
    """BERT scores its masked tokens, has its own shape, and nothing was fitted to it."""
    row = cells["e1"]
    assert (row["model.family"], row["model.shape.scored_share"]) == ("bert", "0.156")
    assert "model.shape.ffn" not in row
    assert row["split"] == "test"
    assert row["train.accumulation"] == "128"
    assert (row["software.framework"], row["model.shape.filled"]) == ("apex", "0.5625")


def test_encoders_in_full_width_say_so(cells: dict[str, dict[str, str]]) -> None:
    """Rows in tf32 compute in it, and are held out as the others are."""
    row = cells["e2"]
    assert (row["train.precision"], row["train.gradient_precision"]) == ("tf32", "fp32")
    assert row["split"] == "test"


def test_an_optimizer_on_the_host_is_said(cells: dict[str, dict[str, str]]) -> None:
    """ZeRO-3 with CPU Adam: parameters sharded, state in the host, memory in GiB, fitted to."""
    row = cells["stas-0002"]
    assert row["parallelism.offload_optimizer"] == "true"
    assert row["parallelism.sharding"] == "parameters"
    assert float(row["measured.gpu_memory_bytes.total"]) == pytest.approx(16.3 * 2**30)
    assert row["split"] == "fit"


def test_batches_follow_from_the_global_one(cells: dict[str, dict[str, str]]) -> None:
    """Micro-batches of a replica: global batch over replicas over the micro-batch."""
    row = cells["b1"]
    assert (row["train.batch_size"], row["train.accumulation"]) == ("2", "256")
    assert (row["hardware.gpus"], row["hardware.count"]) == ("8", "48")


def test_a_local_batch_is_cut_into_as_many_parts_as_stages(
    cells: dict[str, dict[str, str]],
) -> None:
    """Pipelines of torchtitan: 32 samples of a replica over 8 stages are 8 times 4."""
    row = cells["t2"]
    assert (row["train.batch_size"], row["train.accumulation"]) == ("4", "8")
    assert row["parallelism.interleave"] == "2"


def test_memory_is_in_the_unit_of_its_source(cells: dict[str, dict[str, str]]) -> None:
    """One source states GiB, the others GB."""
    assert float(cells["t1"]["measured.gpu_memory_bytes.total"]) == pytest.approx(82.4 * 2**30)
    assert float(cells["b1"]["measured.gpu_memory_bytes.total"]) == pytest.approx(37e9)


def test_series_that_are_kept_back_are_never_fitted_to(cells: dict[str, dict[str, str]]) -> None:
    """They say so themselves, for any hash of their configuration."""
    assert cells["k1"]["split"] == "test"
    assert "split" not in cells["b1"]


def test_a_configuration_is_what_describes_a_run(rows: list[TableRow]) -> None:
    """Repeats and batch sizes share it; shape, device, degrees and precision are in it."""
    first, *others = (configuration(row) for row in rows)
    assert first.startswith("kort5|48.0|6144.0|64.0|24576.0|51200.0|2048.0|A100-80|8.0|1.0")
    assert first not in others
