"""Workloads of DLIO and MLPerf Storage as scenarios."""

from __future__ import annotations

import itertools
import math
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.importing import DATA, call, check_prefix, refused

from simulator.importers import dlio
from simulator.physics.footprint import checkpoint_bytes
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.studies.unused_keys import unused_in

Refused = Callable[..., list[str]]
HERE = {"machine": "node/benchmark-client", "storage": "storage/nvme-gen4"}


def sections(name: str) -> dict[str, Any]:
    """The sections read from a sample."""
    return tomllib.loads(dlio.read(DATA / name).text)


def variant(folder: Path, old: str, new: str) -> Path:
    """The unet3d sample with one text replaced."""
    text = (DATA / "dlio-unet3d-v2.yaml").read_text(encoding="utf-8")
    assert old in text
    path = folder / "workload.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_workload_of_version_2() -> None:
    """Files, batch, workers and compute time as written; sizes vary by 1/sqrt(2) of it."""
    found = sections("dlio-unet3d-v2.yaml")
    assert found["data"]["samples"] == 168
    assert found["data"]["bytes_per_sample"] == "146.601 MB"
    assert found["data"]["size_spread"]["relative_deviation"] == pytest.approx(
        68341808 / math.sqrt(2) / 146600628, rel=1e-3
    )
    assert found["model"]["step_times"] == [{"batch_size": 7, "time": "323 ms"}]
    assert found["input"] == {
        "loader": "pytorch",
        "workers": 4,
        "prefetch": 1,
        "persistent_workers": True,
        "drop_last": True,
        "output_bytes_per_sample": "2.09715 MB",
    }
    assert "hardware" not in found


def test_a_workload_of_version_1() -> None:
    """The older keys, many samples a file, and TensorFlow's queue of two batches."""
    found = sections("dlio-resnet50-v1.yaml")
    assert found["data"]["samples"] == 1024 * 1251
    assert found["data"]["layout"] == "shards"
    assert found["data"]["shard_size"] == "143.44 MB"
    assert found["input"]["loader"] == "tf.data"
    assert found["input"]["prefetch"] == 2
    assert found["train"] == {"batch_size": 400, "epochs": 5}


def test_the_configuration_of_a_run() -> None:
    """A Hydra dump: nested, exponents without a point, distributions, everything unusual said."""
    fragment = dlio.read(DATA / "dlio-run-config-invented.yaml")
    found = tomllib.loads(fragment.text)
    assert found["data"]["bytes_per_sample"] == "100 kB"
    assert found["input"]["prefetch"] == 4
    assert found["input"]["augment"] == "1 ms"
    assert found["model"]["step_times"] == [{"batch_size": 16, "time": "50 ms"}]
    said = "\n".join(fragment.warnings)
    for part in ("varies", "preprocess_time", "checkpoints", "evaluation", "100 steps"):
        assert part in said


@pytest.mark.parametrize(
    "name", ["dlio-unet3d-v2.yaml", "dlio-resnet50-v1.yaml", "dlio-run-config-invented.yaml"]
)
def test_with_a_machine_it_is_a_scenario(name: str, tmp_path: Path) -> None:
    """What is written loads: emulated accelerators on each of the hosts."""
    path = tmp_path / "scenario.toml"
    path.write_text(dlio.read(DATA / name, **HERE, accelerators=4, hosts=2).text, encoding="utf-8")
    scenario = load_scenario(str(path))
    assert scenario.ranks == 8
    gpu = scenario.cluster.trainers.host.gpu
    assert gpu is not None
    assert gpu.emulated


def test_the_summary_tells_the_rate() -> None:
    """7 samples every 323 ms are 21.7 a second, 3.18 GB/s."""
    said = " ".join(dlio.read(DATA / "dlio-unet3d-v2.yaml").summary)
    assert "21.7 samples/s, 3.177 GB/s" in said
    assert "passes at 90%" in said


@pytest.mark.parametrize("time", ["0", "1.0e-12"])
def test_no_time_is_no_endless_rate(time: str, tmp_path: Path) -> None:
    """An accelerator that takes no time limits nothing; `inf` samples are not printed."""
    path = variant(tmp_path, "computation_time: 0.323", f"computation_time: {time}")
    said = " ".join(dlio.read(path).summary)
    assert "takes 7 samples as soon as they are there: it never limits" in said
    assert "inf" not in said


@pytest.mark.parametrize(
    ("threads", "queue", "ahead"), [(4, 2, 1), (1, 2, 2), (2, 9, 5), (4, 0, 2), (0, 2, None)]
)
def test_batches_ahead_of_each_worker(
    threads: int, queue: int, ahead: int | None, tmp_path: Path
) -> None:
    """prefetch_factor = ceil(prefetch_size / read_threads); 2 for 0; none without workers."""
    path = variant(
        tmp_path, "read_threads: 4", f"read_threads: {threads}\n  prefetch_size: {queue}"
    )
    found = tomllib.loads(dlio.read(path).text)["input"]
    assert found.get("prefetch") == ahead


def test_what_is_assumed_is_said(tmp_path: Path) -> None:
    """DLIO's defaults are named where they are taken."""
    path = variant(tmp_path, "  record_length_bytes: 146600628\n", "")
    said = " ".join(dlio.read(path).warnings)
    assert "dataset.record_length_bytes = 65536" in said
    assert "reader.prefetch_size = 2" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("computation_time: 0.323", "other: 1", "train: has no 'computation_time'"),
        ("computation_time: 0.323", "computation_time: -0.323", "computation_time: is negative"),
        ("computation_time: 0.323", "computation_time: .nan", "is not a finite number"),
        ("computation_time: 0.323", "computation_time: 32300", "is longer than ten minutes"),
        ("computation_time: 0.323", "computation_time: fast", "is not a number, found 'fast'"),
        ("batch_size: 7", "batch_size: 0", "reader.batch_size: is below 1, found 0"),
        ("batch_size: 7", "batch_size: 7.5", "reader.batch_size: is not a whole number"),
        ("data_loader: pytorch", "data_loader: torch", "has an unknown 'data_loader'"),
        ("num_files_train: 168", "num_files_train: [1]", "num_files_train: is not a number"),
        ("  train: True", "  train: False", "doesn't train"),
        ("framework: pytorch", "framework: [", "is not valid YAML"),
        ("framework: pytorch", "framework: !!python/object:os.x {}", "is not valid YAML"),
        ("dataset:\n", "dataset: 3\nother:\n", "dataset: is not a section, found 3"),
        ("au: 0.90", "au: 90", "metric.au: is above 1, found 90"),
    ],
)
def test_one_message_says_what_is_wrong(old: str, new: str, message: str, tmp_path: Path) -> None:
    """Each mistake is one message."""
    lines = refused("dlio", variant(tmp_path, old, new))
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.parametrize("text", ["a: 1\n", "3\n", "- 1\n", "just text\n"])
def test_other_yaml_is_refused(text: str, tmp_path: Path) -> None:
    """YAML of another kind is not a workload."""
    path = tmp_path / "other.yaml"
    path.write_text(text, encoding="utf-8")
    assert ["is not a DLIO workload" in line for line in refused("dlio", path)] == [True]


def test_aliases_that_multiply_do_no_harm(tmp_path: Path) -> None:
    """A file whose aliases represent billions of entries is refused at once."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    names = "abcdefghijk"
    for before, name in itertools.pairwise(names):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join([*lines, "train: *k", ""]), encoding="utf-8")
    said = refused("dlio", path)
    assert all(len(line) < 500 for line in said)


def test_options_without_a_machine_are_refused() -> None:
    """Accelerators belong to a machine."""
    outcome = call("dlio", DATA / "dlio-unet3d-v2.yaml", "--accelerators", "4")
    assert outcome.code == 2
    assert "--machine, which is missing" in outcome.err


def test_a_machine_that_is_not_there_is_refused() -> None:
    """A scenario is not built on names that lead nowhere."""
    workload = DATA / "dlio-unet3d-v2.yaml"
    assert "node/none" in refused("dlio", workload, "--machine", "node/none")[0]
    found = refused("dlio", workload, "--machine", "node/dgx-a100-80gb", "--storage", "storage/x")
    assert "storage/x" in found[0]


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_prefix_is_read_or_refused(share: float) -> None:
    """A file cut off anywhere never ends in a traceback."""
    content = (DATA / "dlio-unet3d-v2.yaml").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        check_prefix(content[: int(share * len(content))], Path(folder), "dlio")


LLAMA = DATA / "dlio-llama3-8b-invented.yaml"


def test_a_checkpoint_workload_writes_one_in_every_step(tmp_path: Path) -> None:
    """Ten checkpoints of 8 ranks: 12 bytes of each of 8.03e9 parameters (fp32, two moments).

    A step computes one token, so that it takes as long as its checkpoint.
    """
    fragment = dlio.read(LLAMA, machine="p5.48xlarge", storage=HERE["storage"], accelerators=8)
    path = tmp_path / "scenario.toml"
    path.write_text(fragment.text, encoding="utf-8")
    scenario = load_scenario(str(path))
    prediction = predict(scenario, intervals=False)
    assert scenario.ranks == 8
    assert scenario.job.train.checkpoint_every_steps == 1
    assert prediction.total_steps == 10
    assert float(checkpoint_bytes(scenario)) == pytest.approx(12 * 8.03e9, rel=0.01)
    assert prediction.timing.split.checkpoint > 0.9 * prediction.timing.step_time.mean
    assert any("read back" in warning for warning in fragment.warnings)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("transformer:\n", "other:\n", "without model.transformer"),
        ("hidden_size: 4096", "hidden: 4096", "has no 'hidden_size'"),
        ("zero_stage: 3", "zero_stage: 4", "is above 3, found 4"),
        ("model_datatype: fp16", "model_datatype: int3", "has an unknown 'model_datatype'"),
        ("num_layers: 32", "num_layers: many", "is not a number, found 'many'"),
        ("num_checkpoints_write: 10", "num_checkpoints_write: 0", "is below 1, found 0"),
    ],
)
def test_a_damaged_checkpoint_workload(
    tmp_path: Path, problems: Refused, old: str, new: str, said: str
) -> None:
    """One message for each problem."""
    path = tmp_path / "w.yaml"
    text = LLAMA.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert any(said in message for message in problems(dlio.read, path))


@pytest.mark.parametrize("threads", [0, 1, 4])
@pytest.mark.parametrize("loader", ["pytorch", "tensorflow"])
@pytest.mark.parametrize("files", [168, 5000])
def test_no_key_without_effect_is_written(
    tmp_path: Path, threads: int, loader: str, files: int
) -> None:
    """With a machine, what simulate would call without effect is left out."""
    text = (DATA / "dlio-unet3d-v2.yaml").read_text()
    for old, new in (
        ("read_threads: 4", f"read_threads: {threads}"),
        ("data_loader: pytorch", f"data_loader: {loader}"),
        ("num_files_train: 168", f"num_files_train: {files}"),
    ):
        text = text.replace(old, new)
    (tmp_path / "w.yaml").write_text(text)
    place = ("--machine", HERE["machine"], "--storage", HERE["storage"], "--accelerators", "4")
    outcome = call("dlio", tmp_path / "w.yaml", *place)
    assert outcome.code == 0, outcome
    assert unused_in(outcome.out) == ()
