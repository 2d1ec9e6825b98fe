"""``plan import`` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.import_ import FORMATS
from simulator.cli.output import Exit

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""

DATA = Path(__file__).parents[1] / "importers" / "data"
FIO = str(DATA / "fio-3.33-invented.json")
NCCL = str(DATA / "nccl-2.17.6-all-reduce-invented.txt")
SMI = (str(DATA / "topo-8-h100-invented.txt"), str(DATA / "smi-550-8-h100-invented.xml"))
SCENARIO = "resnet50-imagenet-p4d"


def test_formats_are_listed(plan: Run) -> None:
    """The table of formats is the list under Commands."""
    text = plan("import", "--help").out
    assert all(f"  {name} " in text for name in FORMATS)


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_has_help(plan: Run, name: str) -> None:
    """Each format says what its file is."""
    outcome = plan("import", name, "--help")
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    assert outcome.out.startswith(f"Usage: plan import {name} ")


def test_a_misspelt_format(plan: Run) -> None:
    """The nearest one is offered."""
    outcome = plan("import", "nccl-test", "x")
    assert outcome.code == Exit.BAD_INPUT
    assert "unknown format 'nccl-test'; did you mean 'nccl-tests'?" in outcome.err


def test_a_profile_is_printed(plan: Run) -> None:
    """Without -o the TOML goes to standard output."""
    outcome = plan("import", "fio", FIO)
    assert outcome.code == Exit.FINE
    assert outcome.out.startswith("# Measured with fio-3.33: fio-3.33-invented.json.\nschema = 1\n")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("storage", ("fio", FIO)),
        ("link", ("nccl-tests", NCCL, "--over", "nvlink4")),
        ("node", ("nvidia-smi", *SMI, "--ram", "2 TiB")),
    ],
)
def test_a_profile_is_written_and_shown(
    plan: Run, tmp_path: Path, kind: str, arguments: tuple[str, ...]
) -> None:
    """What is written is found by the catalogue, every figure with a source and a date."""
    (tmp_path / kind).mkdir()
    path = tmp_path / kind / "mine.toml"
    outcome = plan("import", *arguments, "-o", str(path))
    assert outcome.code == Exit.FINE
    assert f"see it with: plan hardware show {kind}/mine --profiles {tmp_path}" in outcome.out
    shown = plan("hardware", "show", f"{kind}/mine", "--profiles", str(tmp_path))
    assert (shown.code, shown.err) == (Exit.FINE, "")
    assert Path(arguments[1]).name in shown.out.replace("\n      ", "")


def test_elsewhere_it_says_where_profiles_belong(plan: Run, tmp_path: Path) -> None:
    """A file outside a folder of its kind is written, with advice."""
    outcome = plan("import", "fio", FIO, "-o", str(tmp_path / "mine.toml"))
    assert outcome.code == Exit.FINE
    assert "move it to PROFILES/storage/mine.toml" in outcome.out


def test_a_storage_profile_serves_a_scenario(plan: Run, tmp_path: Path) -> None:
    """The imported store is what the job reads from, and what limits it."""
    (tmp_path / "storage").mkdir()
    path = tmp_path / "storage" / "mine.toml"
    slow = json.loads(Path(FIO).read_text(encoding="utf-8").partition("\n")[2])
    for job in slow["jobs"]:
        for key in ("io_bytes", "bw_bytes", "bw", "iops", "total_ios"):
            job["read"][key] /= 20
    evidence = tmp_path / "slow.json"
    evidence.write_text(json.dumps(slow), encoding="utf-8")
    assert plan("import", "fio", str(evidence), "-o", str(path)).code == Exit.FINE
    outcome = plan(
        *("simulate", SCENARIO, "--set", "hardware.storage=storage/mine"),
        *("--set", "data.cache=none"),
        *("--profiles", str(tmp_path), "--json"),
    )
    assert outcome.code == Exit.FINE
    assert json.loads(outcome.out)["bottleneck"] == "storage"


def test_a_machine_serves_a_scenario(plan: Run, tmp_path: Path) -> None:
    """The imported machine runs a job."""
    (tmp_path / "node").mkdir()
    path = tmp_path / "node" / "mine.toml"
    assert plan("import", "nvidia-smi", *SMI, "--ram", "2 TiB", "-o", str(path)).code == Exit.FINE
    outcome = plan(
        *("simulate", "gpt2-tokens-h100", "--set", "hardware.machine=node/mine"),
        *("--set", "hardware.storage=storage/nvme-gen4", "--profiles", str(tmp_path), "--json"),
    )
    assert (outcome.code, outcome.err) == (Exit.FINE, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fio", FIO),
        ("nccl-tests", NCCL),
        ("nvidia-smi", *SMI, "--ram", "2 TiB"),
        ("mlperf-training", str(DATA / "mlperf-epochs-invented.log"), "--base", SCENARIO),
    ],
)
def test_broken_evidence_writes_nothing(
    plan: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A file cut in half: one message, exit 2, the old output untouched, no file beside it."""
    whole = Path(arguments[1]).read_bytes()
    half = tmp_path / "half"
    half.write_bytes(whole[: len(whole) // 2])
    output = tmp_path / "out.toml"
    output.write_text("old", encoding="utf-8")
    outcome = plan("import", arguments[0], str(half), *arguments[2:], "-o", str(output))
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert len(outcome.err.splitlines()) == 1
    assert outcome.err.startswith(f"plan: {half}")
    assert output.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half", "out.toml"]


def test_an_impossible_rate_is_never_written(plan: Run, tmp_path: Path) -> None:
    """What no profile may hold is refused with the evidence's name."""
    text = Path(FIO).read_text(encoding="utf-8")
    text = text.replace('"bw_bytes" : 1048576000, "bw" : 1024000', '"bw_bytes" : 1e26')
    text = text.replace('"io_bytes" : 1048576000', '"io_bytes" : 0')
    evidence = tmp_path / "fast.json"
    evidence.write_text(text, encoding="utf-8")
    outcome = plan("import", "fio", str(evidence), "-o", str(tmp_path / "out.toml"))
    assert outcome.code == Exit.BAD_INPUT
    assert f"{evidence}: achievable_read_bandwidth.value: is too large to be meant" in outcome.err
    assert not (tmp_path / "out.toml").exists()


def test_the_output_is_checked_first(plan: Run, tmp_path: Path) -> None:
    """A folder that does not exist is said before the evidence is read."""
    outcome = plan("import", "fio", "missing.json", "-o", str(tmp_path / "no" / "out.toml"))
    assert outcome.code == Exit.BAD_INPUT
    assert "lies in a folder that does not exist" in outcome.err


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--ram", "2", "--ram: has no unit"),
        ("--ram", "-2 TiB", "--ram: has to be above zero"),
        ("--network", "2 TiB", "--network: measures bytes where bytes per second is needed"),
    ],
)
def test_quantities_need_units(plan: Run, option: str, text: str, message: str) -> None:
    """Options are read like keys of a scenario."""
    outcome = plan("import", "nvidia-smi", *SMI, "--ram", "2 TiB", option, text)
    assert outcome.code == Exit.BAD_INPUT
    assert message in outcome.err


def test_utilization_beside_a_scenario(plan: Run) -> None:
    """Counts of GPUs and cores come from the scenario."""
    log = str(DATA / "cloudwatch-invented.json")
    outcome = plan("import", "utilization", log, "--scenario", SCENARIO)
    assert outcome.code == Exit.FINE
    assert "predicted: resnet50-imagenet-p4d" in outcome.out
    rows = [line.split() for line in outcome.out.splitlines() if line.startswith("CPU: busy")]
    assert rows[0][2] == "44.2%"
    assert rows[0][-1] == "points"


def test_utilization_as_json(plan: Run) -> None:
    """Warnings stay off standard output."""
    log = str(DATA / "nvidia-smi-invented.csv")
    outcome = plan("import", "utilization", log, "--json")
    assert json.loads(outcome.out)["utilization"]["power"]["devices"] == 2
    assert "warning" in outcome.err


def test_set_needs_beside(plan: Run) -> None:
    """A key without a scenario changes nothing."""
    outcome = plan("import", "utilization", "x", "--set", "input.workers=8")
    assert outcome.code == Exit.BAD_INPUT
    assert "--scenario" in outcome.err


def test_mlperf_logs_become_a_set(plan: Run, tmp_path: Path) -> None:
    """Two files that read back, or a message on the key that contradicts the scenario."""
    log = str(DATA / "mlperf-epochs-invented.log")
    output = tmp_path / "mine"
    outcome = plan("import", "mlperf-training", log, "--base", SCENARIO, "-o", str(output))
    assert outcome.code == Exit.FINE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "mine.toml"]
    assert "21,352.8 samples/s while training" in outcome.out
    alone = plan("import", "mlperf-training", log, "--base", SCENARIO)
    assert alone.code == Exit.BAD_INPUT
    assert "belong together" in alone.err
