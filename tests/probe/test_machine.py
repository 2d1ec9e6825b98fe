"""What the operating system says of a machine, read from folders that look like /proc and /sys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator.probe.machine import Busy, look

THREADS = 8
CPUINFO = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor sse\n"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sockets with two cores of two threads each, 64 GiB."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(THREADS)), raising=False)
    files = {"proc/cpuinfo": CPUINFO, "proc/meminfo": "MemTotal:       67108864 kB\n"}
    for cpu in range(THREADS):
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files[f"{folder}/core_id"] = f"{cpu // 2 % 2}\n"
        files[f"{folder}/physical_package_id"] = f"{cpu // 4}\n"
    write(tmp_path, files)
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_cores_of_different_sockets_are_different(fake: Path) -> None:
    """Core numbers repeat from socket to socket; threads of one core are counted once."""
    found = look(fake)
    assert (found.sockets, found.cores, found.threads) == (2, 4, THREADS)
    assert (found.cpu, found.virtual, found.ram) == ("Some CPU", True, 64 * 2**30)
    assert found.limits == ()


def test_a_program_may_run_on_some_threads_only(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the hardware threads this process may use count."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    found = look(fake)
    assert (found.sockets, found.cores, found.threads) == (1, 1, 2)


@pytest.mark.parametrize(
    "files",
    [
        {
            "proc/self/cgroup": "0::/job\n",
            "sys/fs/cgroup/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/job/memory.max": "4294967296\n",
        },
        {
            "proc/self/cgroup": "4:memory:/job\n1:cpu,cpuacct:/job\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4294967296\n",
        },
    ],
    ids=["version 2", "version 1"],
)
def test_a_containers_limits_count(fake: Path, files: dict[str, str]) -> None:
    """The tightest limit up the tree of control groups replaces the hardware, and is said."""
    write(fake, files)
    found = look(fake)
    assert (found.threads, found.cores) == (2, 2)
    assert found.ram == 4 * 2**30
    assert len(found.limits) == 2


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    """Without /proc and /sys Python's own view is used instead."""
    found = look(tmp_path)
    assert found.threads >= found.cores >= 1
    assert found.ram > 0.0


def test_other_programs_are_told_apart(tmp_path: Path) -> None:
    """What the machine did beyond this program is others' work; stolen time is apart."""
    second = os.sysconf("SC_CLK_TCK")
    before = Busy(machine=10.0, own=4.0, stolen=1.0)
    after = Busy(machine=40.0, own=14.0, stolen=6.0)
    assert after.others_since(before, 10.0) == (1.5, 0.5)
    ticks = [2 * second, 0, 1 * second, 50 * second, 9 * second, 0, 0, 3 * second, 0, 0]
    write(tmp_path, {"proc/stat": f"cpu  {' '.join(map(str, ticks))}\n"})
    found = Busy.now(tmp_path)
    assert found is not None
    assert (found.machine, found.stolen) == (6.0, 3.0)
