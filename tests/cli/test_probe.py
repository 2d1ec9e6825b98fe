"""``plan probe``: a real, short probe of this machine, and what it refuses."""

from __future__ import annotations

import json
import multiprocessing
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from simulator import torch as door
from simulator.cli.output import Exit
from simulator.errors import PlanError
from simulator.probe import run as probing
from simulator.probe.loader import Settings, Timed
from simulator.probe.machine import Machine
from simulator.probe.profile import MARK
from simulator.torch import WorkloadProfile

Run = Callable[..., Any]
SHORT = ("--seconds", "1", "--disk-space", "16 MiB", "--name", "mine")
SETTINGS = Settings(batch_size=4, workers=2, prefetch=2, pin_memory=False, persistent=False,
                    drop_last=False, in_order=True, samples=100)  # fmt: skip


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder for the test file."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_probe_can_be_used_at_once(plan: Run, tmp_path: Path, disk: Path) -> None:
    """Measure, write, show and simulate: no step in between; nothing else is left behind."""
    out = tmp_path / "profiles"
    done = plan("probe", *SHORT, "-o", str(out), "--disk", str(disk), "--only", "disk,memory,cpu")
    assert done.code == Exit.FINE, done.err
    assert "read_bandwidth" in done.out
    assert "hardware.machine=node/mine" in done.out
    assert "measuring disk: random reads" in done.err
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert files == ["node/mine.toml", "storage/mine.toml"]
    assert list(disk.iterdir()) == []
    shown = plan("hardware", "show", "node/mine", "--profiles", str(out))
    assert (shown.code, "measured by plan probe" in shown.out) == (Exit.FINE, True)
    machine = ("--profiles", str(out), "--set", "hardware.machine=node/mine")
    predicted = plan("simulate", "svm-cpu-only", *machine, "--json")
    assert predicted.code in (Exit.FINE, Exit.DOES_NOT_FIT), predicted.err
    assert json.loads(predicted.out)["step_time_s"]["mean"] > 0.0


@pytest.mark.slow
def test_the_json_holds_what_was_measured(plan: Run, disk: Path) -> None:
    """One object in SI units on standard output; without -o nothing is written."""
    done = plan("probe", *SHORT, "--disk", str(disk), "--only", "memory", "--json")
    told = json.loads(done.out)
    assert told["memory"]["copy_one_core"]["unit"] == "B/s"
    assert told["memory"]["copy_one_core"]["value"] > 1e8
    assert told["machine"]["cores"] >= 1
    assert told["profiles"] == {}
    assert "disk" not in told
    assert list(disk.iterdir()) == []


@pytest.mark.slow
def test_a_probe_replaces_its_own_profiles_only(plan: Run, tmp_path: Path) -> None:
    """A second probe replaces the first; a profile of another hand is refused beforehand."""
    arguments = ("probe", *SHORT, "-o", str(tmp_path), "--only", "memory")
    node = tmp_path / "node" / "mine.toml"
    assert plan(*arguments).code == Exit.FINE
    node.write_text(f"# {MARK}, long ago\n")
    assert plan(*arguments).code == Exit.FINE
    assert "schema = 1" in node.read_text()
    node.write_text("# mine\n")
    done = plan(*arguments)
    assert (done.code, done.out) == (Exit.BAD_INPUT, "")
    assert "is not a profile that plan probe wrote" in done.err
    assert "measuring" not in done.err
    assert node.read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "disc"], "'disc' is not a device; --only takes some of disk, memory, cpu, gpu"),
        (["--only", ","], "there is nothing to measure"),
        (["--seconds", "0"], "--seconds"),
        (["--disk-space", "1 GB/s", "--only", "disk"], "--disk-space"),
        (["--disk-space", "1 MB", "--only", "disk"], "has to be 16.78 MB at least"),
        (["--disk", "/no/such", "--only", "disk"], "--disk: is not a folder, found /no/such"),
        (["--only", "memory", "-o", "/dev/null"], "--output: is not a folder"),
        (["--loader", "train"], "--loader takes MODULE:MAKE"),
        (["--loader", "no_such_module:make"], "ModuleNotFoundError: No module named"),
    ],
)
def test_what_cannot_be_measured_is_refused(plan: Run, arguments: list[str], message: str) -> None:
    """One clear message, exit code 2, and nothing measured."""
    done = plan("probe", *arguments)
    assert (done.code, done.out) == (Exit.BAD_INPUT, "")
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert "measuring" not in done.err


@pytest.mark.slow
def test_profiles_that_do_not_read_back_are_not_written(
    plan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that no profile may describe is refused, and the folder stays empty."""
    real = probing.machine.look()

    def odd() -> Machine:
        return replace(real, cores=real.threads + 1)

    monkeypatch.setattr(probing.machine, "look", odd)
    done = plan("probe", *SHORT, "-o", str(tmp_path), "--only", "memory")
    assert done.code == Exit.BAD_INPUT
    assert "is less than the number of cores" in done.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_load_of_others_and_limits_are_said(
    plan: Run, monkeypatch: pytest.MonkeyPatch, disk: Path
) -> None:
    """Figures of a busy or limited machine come with a warning each."""
    before = probing.Busy(machine=0.0, own=0.0, stolen=0.0)
    monkeypatch.setattr(probing.Busy, "now", lambda: before)
    monkeypatch.setattr(probing.Busy, "others_since", lambda *_: (1.25, 0.5))
    real = probing.machine.look()
    limited = replace(real, limits=("a container's limit of 2 CPUs",), virtual=True)
    monkeypatch.setattr(probing.machine, "look", lambda: limited)
    monkeypatch.setattr(
        probing.cpu,
        "run",
        lambda *_, **__: (1.0, 1.0),
    )
    done = plan("probe", *SHORT, "--only", "memory", "--disk", str(disk))
    assert "other programs kept 1.2 cores busy" in done.err
    assert "the host took 0.5 cores away" in done.err
    assert "a container's limit of 2 CPUs" in done.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal to one process")
@pytest.mark.parametrize("at", ["sequential reads", "decoding|inflating"])
def test_ctrl_c_leaves_nothing(spawn: Run, tmp_path: Path, disk: Path, at: str) -> None:
    """Interrupted in the middle of reads or of processes: 130, no files, no words about it."""
    out = tmp_path / "profiles"
    process: subprocess.Popen[str] = spawn(
        *("probe", "--seconds", "20", "--disk-space", "16 MiB", "--disk", str(disk)),
        *("-o", str(out), "--only", "cpu" if "decoding" in at else "disk,cpu"),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if any(word in line for word in at.split("|")):
            break
    process.send_signal(signal.SIGINT)
    printed, told = process.communicate(timeout=30)
    assert (process.returncode, printed) == (Exit.INTERRUPTED, "")
    assert "Traceback" not in told
    assert "bug" not in told
    assert list(disk.iterdir()) == []
    assert not out.exists()
    assert multiprocessing.active_children() == []


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the user's with a function `make`."""
    mine = ModuleType("mine_of_a_test")
    monkeypatch.setattr(mine, "make", lambda: "a loader", raising=False)
    monkeypatch.setitem(sys.modules, "mine_of_a_test", mine)
    return mine


def profile(loader: object, *, seconds: float) -> WorkloadProfile:
    """Stands in for the measurement."""
    assert (loader, seconds) == ("a loader", 30.0)
    run = Timed(size=4, count=3, made=(0.1, 0.1, 0.2), taken=0.01, first=0.5)
    return door._profile(SETTINGS, [run], None, 0.0)  # noqa: SLF001 - the part behind measuring


def test_a_loader_becomes_sections(
    plan: Run, module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The user's function makes the loader; sections are printed, or written whole."""
    assert module.make() == "a loader"
    monkeypatch.setattr(door, "profile_loader", profile)
    done = plan("probe", "--loader", "mine_of_a_test:make")
    assert done.code == Exit.FINE, done.err
    assert '[input]\nloader = "pytorch"\nworkers = 2' in done.out
    path = tmp_path / "mine.toml"
    assert plan("probe", "--loader", "mine_of_a_test:make", "-o", str(path)).code == Exit.FINE
    assert path.read_text() == done.out
    told = json.loads(plan("probe", "--loader", "mine_of_a_test:make", "--json").out)
    assert told["settings"]["batch_size"] == 4
    assert told["toml"].strip() == done.out.strip()


def test_a_loader_that_fails_is_a_message(
    plan: Run, module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What goes wrong in the user's code is told, and no file is left."""
    path = tmp_path / "mine.toml"

    def fails(*_: object, **__: object) -> None:
        msg = "the loader failed"
        raise PlanError(msg)

    monkeypatch.setattr(door, "profile_loader", fails)
    done = plan("probe", "--loader", "mine_of_a_test:make", "-o", str(path))
    assert (done.code, "the loader failed" in done.err) == (Exit.BAD_INPUT, True)
    assert not path.exists()
    monkeypatch.setattr(module, "make", lambda: Path("/no/such").stat())
    done = plan("probe", "--loader", "mine_of_a_test:make")
    assert (done.code, "FileNotFoundError" in done.err) == (Exit.BAD_INPUT, True)


def test_torch_is_imported_by_nobody(root: Path) -> None:
    """Neither the command nor the Python door loads torch."""
    code = (
        "import sys, simulator.torch, simulator.cli.probe, simulator.probe.run;"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_store_that_cannot_be_read_is_a_message(plan: Run, tmp_path: Path) -> None:
    """No folder, an empty one, and no server of a store: exit code 2, and no traceback."""
    (tmp_path / "none").mkdir()
    for store, said in (
        (str(tmp_path / "missing"), "is not a folder or a URL"),
        (str(tmp_path / "none"), "holds no objects"),
        ("http://127.0.0.1:9/", "cannot be read"),
    ):
        done = plan("probe", "--store", store, "--seconds", "1")
        assert (done.code, said in done.err) == (Exit.BAD_INPUT, True)
        assert "Traceback" not in done.err


def test_the_keys_of_a_store_are_printed_and_written(plan: Run, disk: Path, tmp_path: Path) -> None:
    """A file has the keys of a scenario; JSON has the figures of each number of threads."""
    for number in range(4):
        (disk / f"{number}").write_bytes(bytes(100_000))
    out = tmp_path / "store.toml"
    asked = ("probe", "--store", str(disk), "--seconds", "1", "--threads", "2")
    done = plan(*asked, "-o", str(out))
    assert done.code == Exit.FINE, done.err
    assert tomllib.loads(out.read_text()).keys() == {"hardware"}
    told = plan(*asked, "--json")
    assert '"threads": 2' in told.out
    assert plan("probe", "--store", str(disk), "--loader", "a:b").code == Exit.BAD_INPUT
