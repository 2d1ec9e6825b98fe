"""Measuring a disk: real requests on a small file, and everything that can go wrong."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.probe import disk
from simulator.probe.disk import CASES, MIN_FILE, Place, Volume, fio_reads
from simulator.probe.reading import Found, Unmeasurable

linux = pytest.mark.skipif(sys.platform != "linux", reason="the file has no name: Linux only")
KEYS = [case.key for case in CASES]
MIB = 2**20


def quiet(_: str) -> None:
    """Say nothing."""


def measured(folder: Path, fio: str | None = None) -> Found:
    """A probe of half a second on the smallest file."""
    return disk.measure(Place(folder=folder, space=MIN_FILE), 0.5, quiet, fio)


def test_own_reads_give_every_figure(tmp_path: Path) -> None:
    """Without fio all figures are there, positive, and say that threads made them."""
    found = measured(tmp_path)
    assert [r.key for r in found.readings] == [*KEYS, "page_cache_bandwidth", "open_latency"]
    assert all(r.value > 0.0 for r in found.readings)
    assert all("Python threads" in r.note for r in found.readings[: len(KEYS)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_case_counts_what_it_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate is requests over time: bytes for large ones, a count for small, a time for one."""
    asked: list[int] = []

    def slow(_: int, buffers: list[bytearray], offset: int) -> int:
        disk.time.sleep(0.01)
        assert offset % len(buffers[0]) == 0
        assert offset + len(buffers[0]) <= MIN_FILE
        asked.append(offset)
        return len(buffers[0])

    monkeypatch.setattr(disk.os, "preadv", slow)
    with disk.nameless_file(tmp_path) as handle:
        volume = Volume(handle=handle, size=int(MIN_FILE), direct=False)
        large, small, one, _ = (disk.own_reads(volume, case, 0.3)[0] for case in CASES)
    assert 0.2 < large / (8 * 100 * MIB) <= 1.01
    assert 0.2 < small / (32 * 100) <= 1.01
    assert 0.01 <= one < 0.05
    assert len(set(asked)) > 10


@linux
def test_fio_gives_every_figure(tmp_path: Path) -> None:
    """Where fio is installed it measures the same file, which has no name."""
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    found = measured(tmp_path, fio)
    notes = [r.note for r in found.readings[: len(KEYS)]]
    assert all("fio-" in note for note in notes), found.warnings
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@linux
@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no such engine >&2; exit 1", "no such engine"),
        ("echo '{\"jobs\": []}'", "could not run"),
        ('echo \'{"fio version": "fio-9", "jobs": [{"error": 5}]}\'', "error 5"),
        ("exit 0", "printed nothing"),
    ],
)
def test_a_fio_that_fails_is_said_and_replaced(tmp_path: Path, script: str, told: str) -> None:
    """Whatever fio does, the figures are there and one warning says why fio isn't behind them."""
    fio = tmp_path / "fio"
    fio.write_text(f"#!/bin/sh\n{script}\n")
    fio.chmod(fio.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "disk"
    folder.mkdir()
    found = measured(folder, str(fio))
    assert len(found.readings) == len(KEYS) + 2
    assert [told in warning for warning in found.warnings].count(True) == 1


@linux
def test_figures_of_fio_are_in_si(tmp_path: Path) -> None:
    """Rates are B/s and requests a second; latencies are ns in fio and seconds here."""
    fio = tmp_path / "fio"
    side = (
        '{"bw_bytes": 5000000, "iops": 1200.5, '
        '"clat_ns": {"mean": 80000.0, "percentile": {"99.000000": 250000}}}'
    )
    told = f'{{"fio version": "fio-3.33", "jobs": [{{"error": 0, "read": {side}}}]}}'
    fio.write_text(f"#!/bin/sh\necho '{told}'\n")
    fio.chmod(0o700)
    volume = Volume(handle=0, size=MIB, direct=True)
    found = [fio_reads(str(fio), volume, case, 0.1) for case in CASES[:3]]
    assert [value for value, _ in found] == [5e6, 1200.5, pytest.approx(80e-6)]
    assert "p99 250 µs" in found[0][1]
    with pytest.raises(Unmeasurable, match="No such file"):
        fio_reads(str(tmp_path / "none"), volume, CASES[0], 0.1)


def test_the_file_has_no_name(tmp_path: Path) -> None:
    """From the moment it can be written, nothing can leave it behind."""
    with disk.nameless_file(tmp_path) as handle:
        assert list(tmp_path.iterdir()) == []
        assert os.pwrite(handle, b"x", 0) == 1
    with pytest.raises(KeyboardInterrupt), disk.nameless_file(tmp_path) as handle:
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


@pytest.mark.parametrize(
    ("space", "free", "message"),
    [(MIB, 1e12, "has to be"), (1e9, 1.5e9, "half of that is left alone"), (1e9, 2.5e9, None)],
)
def test_space_is_left_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: float, free: float, message: str | None
) -> None:
    """A test file takes half of the free space at most; a tiny one says nothing."""

    class State:
        f_bavail, f_frsize = free, 1

    monkeypatch.setattr(disk.os, "statvfs", lambda _: State)
    place = Place(folder=tmp_path, space=space)
    if message is None:
        disk.check(place)
        return
    with pytest.raises(InputError, match=message):
        disk.check(place)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    """A file, and nothing at all, are not folders."""
    (tmp_path / "file").write_text("")
    for name in ("file", "none"):
        with pytest.raises(InputError, match="is not a folder"):
            disk.check(Place(folder=tmp_path / name, space=MIN_FILE))


def test_a_full_disk_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails is the user's to mend, and leaves nothing behind."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "pwrite", full)
    with pytest.raises(InputError, match="No space left on device"):
        measured(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_filling_stops_in_time(tmp_path: Path) -> None:
    """A slow disk gets a smaller file, never below the least."""
    with disk.nameless_file(tmp_path) as handle:
        assert disk._fill(handle, 1e9, 0.0) == MIN_FILE  # noqa: SLF001 - the time limit itself
        assert os.fstat(handle).st_size == MIN_FILE
