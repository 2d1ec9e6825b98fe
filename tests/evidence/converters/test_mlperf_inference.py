"""MLPerf Inference: systems as replicas, and rows of which too little is stated."""

from __future__ import annotations

from converters import TableRow
from converters.mlperf_inference import convert

PLAIN = {
    "id": "5.1-0001",
    "submitter": "A",
    "category": "closed",
    "platform": "p",
    "model": "llama2-70b-99",
    "scenario": "Offline",
    "nodes": "2",
    "accelerator": "NVIDIA H100-SXM-80GB",
    "accelerators_per_node": "8",
    "weight_dtype": "fp8",
    "software": "TensorRT 10.11, CUDA 12.9",
    "result": "64000",
    "source": "s",
}


def cells(*changes: dict[str, str]) -> list[dict[str, str]]:
    """Rows that differ from a plain one, converted together."""
    given = [{**PLAIN, **change} for change in changes]
    return convert([TableRow(line=number, cells=each) for number, each in enumerate(given)])


def test_a_system_is_so_many_replicas_as_hold_the_weights_in_half_their_memory() -> None:
    """69 GB of weights take two H100 or one B200; the result is divided among the replicas."""
    two, one = cells({}, {"accelerator": "NVIDIA B200-SXM-180GB", "weight_dtype": "fp4"})
    assert (two["serving.tensor"], two["replicas"]) == ("2", "8")
    assert two["measured.saturation.output_tokens_per_s"] == "8000"
    assert (one["serving.tensor"], one["replicas"], one["hardware.gpu"]) == (
        *("1", "16"),
        "gpu/b200-sxm-180gb",
    )


def test_runs_for_two_accuracy_targets_count_once() -> None:
    """The stricter target is left out if the other is there, and stays where it is alone."""
    both = cells({}, {"model": "llama2-70b-99.9"})
    (alone,) = cells({"model": "llama2-70b-99.9"})
    assert ["exclude" in row for row in both] == [False, True]
    assert "exclude" not in alone


def test_rows_that_state_too_little_are_kept_with_the_reason() -> None:
    """Two kinds of accelerators, an unknown engine or format, and models without tokens."""
    mixed = "AMD Instinct MI300X 192GB HBM3 (x32), AMD Instinct MI325X 256GB HBM3e (x16)"
    found = cells(
        {"accelerator": mixed},
        {"software": "PyTorch 2.8"},
        {"weight_dtype": "UNSET"},
        {"model": "retinanet"},
    )
    words = (
        "accelerator of the catalogue",
        "engine is unknown",
        "number format",
        "writes no tokens",
    )
    for row, word in zip(found, words, strict=True):
        assert word in row["exclude"]
