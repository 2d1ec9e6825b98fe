"""Tables of training on many devices: NVIDIA's examples and MLPerf Training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from converters import TableRow, mlperf_training, nvidia_examples_training

HEADING = "Training performance: NVIDIA DGX A100 (8x A100 80GB)"
EXAMPLE = {
    "source": "NVIDIA/DeepLearningExamples:PyTorch/Some/README.md",
    "line": "10",
    "framework": "PyTorch",
    "model": "ConvNets/resnet50v1.5",
    "gpu": "A100-80GB",
    "n_gpus": "1",
    "precision": "AMP",
    "batch_per_gpu": "256",
    "batch_resolved": "256",
    "accum": "",
    "seq_len": "",
    "throughput": "2000",
    "unit": "img/s",
    "column": "Throughput - AMP",
    "heading": HEADING,
    "other": "",
}
RESULT = {
    "tier": "A",
    "version": "v3.1",
    "submitter": "NVIDIA",
    "system": "eos_n1",
    "nodes": "1",
    "accel_per_node": "8",
    "accelerators": "8",
    "accelerator": "NVIDIA H100-SXM5-80GB",
    "benchmark": "bert",
    "global_batch_size": "768",
    "grad_accum": "1",
    "throughput_e2e": "7000",
    "throughput_train_logged": "7759",
}


def rows(base: Mapping[str, str], *changes: Mapping[str, str]) -> list[TableRow]:
    """Rows of a table, each with some cells of its own."""
    return [TableRow(line=i + 2, cells={**base, **one}) for i, one in enumerate(changes)]


def examples(*changes: Mapping[str, str]) -> list[dict[str, str]]:
    """Rows of NVIDIA's examples, converted."""
    return nvidia_examples_training.convert(rows(EXAMPLE, *changes))


def results(*changes: Mapping[str, str]) -> list[dict[str, str]]:
    """Rows of MLPerf Training, converted."""
    return mlperf_training.convert(rows(RESULT, *changes))


def sizes(*numbers: int, accum: Sequence[str] = ()) -> list[dict[str, str]]:
    """The same example on several numbers of GPUs, accumulated so often."""
    found = [{"n_gpus": f"{number}"} for number in numbers]
    for one, times in zip(found, accum, strict=False):
        one["accum"] = times
    return found


def test_the_row_on_one_gpu_is_the_anchor() -> None:
    """On one machine and on two, with the GPUs of each; judged by throughput."""
    one, eight, sixteen = examples(*sizes(1, 8, 16))
    assert [row["anchor"] for row in (one, eight, sixteen)] == ["yes", "", ""]
    assert len({row["series"] for row in (one, eight, sixteen)}) == 1
    assert (eight["hardware.gpus"], eight["hardware.count"]) == ("8", "1")
    assert (sixteen["hardware.gpus"], sixteen["hardware.count"]) == ("8", "2")
    assert one["measured.throughput_samples_per_s"] == "2000"
    assert one["measured.step_time_s.mean"] == ""


def test_another_batch_is_another_group() -> None:
    """A row whose batch has no run on one GPU is left out, with the reason."""
    *_, other = examples(*sizes(1, 8), {"n_gpus": "8", "batch_resolved": "128"})
    assert other["exclude"].startswith("no row on one GPU")


def test_a_series_of_strong_scaling_is_fitted_to_its_two_smallest() -> None:
    """Accumulated fewer times on more GPUs: judged by step time, two anchors."""
    found = examples(*sizes(8, 1, 64, 16, accum=("8", "64", "1", "4")))
    assert [row["anchor"] for row in found] == ["yes", "yes", "", ""]
    assert {row["kind"] for row in found} == {"strong scaling"}
    assert {row["model.step_time_batch"] for row in found} == {"256"}
    assert found[0]["measured.step_time_s.mean"] == f"{256 * 8 * 8 / 2000:.7g}"


def test_batches_that_are_accumulated_are_merged() -> None:
    """64 batches of 256 become 4 of 4,096: as many samples in a step."""
    found = examples(*sizes(1, 8, 64, accum=("64", "8", "1")))
    assert (found[0]["train.batch_size"], found[0]["train.accumulation"]) == ("4096", "4")
    assert (found[2]["train.batch_size"], found[2]["train.accumulation"]) == ("256", "1")


@pytest.mark.parametrize(
    ("precision", "accumulated", "expected"),
    [
        ("AMP", "64 , 32", 64),
        ("FP32", "64 , 32", 32),
        ("TF32", "64 and 32", 64),
        ("AMP", "8192 and 8192; 64 and 32", 32),
    ],
)
def test_which_of_two_figures_is_a_rows_own(
    precision: str, accumulated: str, expected: int
) -> None:
    """TensorFlow's tables put mixed precision first, those with "and" last."""
    same = {"precision": precision, "accum": accumulated}
    found = examples({**same, "n_gpus": "1"}, {**same, "n_gpus": "8"})
    samples = int(found[0]["train.batch_size"]) * int(found[0]["train.accumulation"])
    assert samples == 256 * expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "NewNet"}, "the parameters of NewNet are not known"),
        ({"gpu": "T4"}, "no machine is known with 'T4'"),
        ({"precision": "INT8"}, "the precision 'INT8' is not known"),
        ({"n_gpus": ""}, "the number of GPUs is not stated"),
        ({"n_gpus": "12"}, "GPUs are not spread evenly over machines"),
        ({"batch_per_gpu": "", "batch_resolved": ""}, "the batch size is not stated"),
    ],
)
def test_why_an_example_is_left_out(change: Mapping[str, str], reason: str) -> None:
    """Each with its own reason, next to rows that are not."""
    *_, odd = examples(*sizes(1, 8), {"n_gpus": "8", **change})
    assert odd["exclude"] == reason


def test_rows_that_nothing_tells_apart_are_left_out() -> None:
    """Two models in one table without their names."""
    found = examples(*sizes(1, 1, 8, 8))
    assert all(row["exclude"].startswith("several rows") for row in found)


def test_the_machine_follows_from_the_heading() -> None:
    """A DGX-2 holds 16, a DGX-1 with the same GPUs 8."""
    same = {"gpu": "V100-32GB", "n_gpus": "16"}
    small = {"gpu": "V100-32GB"}
    there = {"heading": "NVIDIA DGX-2 (16x V100 32GB)"}
    found = examples({**small, **there}, {**same, **there}, small, same)
    machines = [(row["hardware.machine"], row["hardware.count"]) for row in found]
    assert machines[1] == ("node/dgx-2", "1")
    assert machines[3] == ("node/dgx-1v", "2")


def test_the_two_smallest_results_are_anchors() -> None:
    """Of three sizes; of two only the smallest. Odd runs are predicted, not fitted to."""
    large = {"accelerators": "64", "nodes": "8", "global_batch_size": "4608"}
    larger = {"accelerators": "512", "nodes": "64", "global_batch_size": "5120"}
    assert [row["anchor"] for row in results(larger, {}, large)] == ["", "yes", "yes"]
    assert [row["anchor"] for row in results({}, large)] == ["yes", ""]
    assert [row["anchor"] for row in results({"tier": "X"}, large, larger)] == ["", "yes", ""]


def test_a_step_is_the_global_batch_over_the_logged_throughput() -> None:
    """Of the whole run where nothing was logged."""
    large = {"accelerators": "64", "nodes": "8", "global_batch_size": "4608"}
    logged, whole = results({}, {**large, "throughput_train_logged": ""})
    assert float(logged["measured.step_time_s.mean"]) == pytest.approx(768 / 7759, rel=1e-6)
    assert float(whole["measured.step_time_s.mean"]) == pytest.approx(4608 / 7000, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"accelerators": "0"}, "trained on cores"),
        ({"tp": "4"}, "one model is spread over several accelerators"),
        ({"benchmark": "gnn"}, "the parameters of gnn are not known"),
        ({"accelerator": "TPU-v5p"}, "no machine is known with 'TPU-v5p'"),
        ({"global_batch_size": "4"}, "less than a sample for each accelerator"),
        ({"accel_per_node": "10", "accelerators": "10"}, "its machines are not of a known kind"),
        ({"benchmark": "ssd"}, "the only size of its benchmark and accelerator"),
    ],
)
def test_why_a_result_is_left_out(change: Mapping[str, str], reason: str) -> None:
    """Each with its own reason."""
    large = {"accelerators": "64", "nodes": "8", "global_batch_size": "4608"}
    *_, odd = results({}, large, change)
    assert odd["exclude"].startswith(reason)


@pytest.mark.parametrize(
    ("convert", "base", "changes"),
    [
        (nvidia_examples_training, EXAMPLE, sizes(1, 8, 16)),
        (nvidia_examples_training, EXAMPLE, sizes(8, 1, 64, accum=("8", "64", "1"))),
        (
            mlperf_training,
            RESULT,
            [{}, {"accelerators": "64", "nodes": "8", "global_batch_size": "4608"}],
        ),
    ],
)
def test_what_was_measured_feeds_its_own_figure_only(
    convert: object, base: Mapping[str, str], changes: Sequence[Mapping[str, str]]
) -> None:
    """With other throughputs all cells but the measured ones are the same."""
    module = convert
    before = module.convert(rows(base, *changes))  # type: ignore[attr-defined] # a converter
    names = ("throughput", "throughput_e2e", "throughput_train_logged", "latency")
    other = [{**one, **dict.fromkeys(names, f"{7 + i}")} for i, one in enumerate(changes)]
    after = module.convert(rows(base, *other))  # type: ignore[attr-defined] # likewise
    for one, two in zip(before, after, strict=True):
        told = {key for key in one if key.startswith("measured.")}
        assert {k: v for k, v in one.items() if k not in told} == {
            k: v for k, v in two.items() if k not in told
        }
        assert any(one[key] != two[key] for key in told)
