"""Profiles that a probe writes: read back by the catalogue, with every figure and its source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.probing import PAGEABLE, PEAK, PLACE, UP, FakeDevice

from simulator import units
from simulator.probe import gpu
from simulator.probe.disk import Place
from simulator.probe.machine import Machine
from simulator.probe.profile import MARK, Known, profiles, slug
from simulator.probe.reading import SHARE, Found, Reading
from simulator.probe.run import Accelerator, Probed, Wanted
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.accelerators import Precision
from simulator.schema.machines import Host, Link, PeerTopology
from simulator.schema.storage import Scope
from simulator.version import __version__

MACHINE = Machine(host="h", cpu='Some "CPU"', sockets=2, cores=8, threads=16, ram=64e9)
READINGS = (
    Reading(device="disk", key="read_bandwidth", value=2e9, unit=units.BYTE_PER_SECOND, note="r"),
    Reading(device="disk", key="write_bandwidth", value=1e9, unit=units.BYTE_PER_SECOND),
    Reading(device="disk", key="read_operations", value=9e4, unit=units.PER_SECOND),
    Reading(device="disk", key="read_latency", value=4e-5, unit=units.SECOND),
    Reading(device="disk", key="open_latency", value=2e-6, unit=units.SECOND),
    Reading(device="memory", key="copy_all_cores", value=3e10, unit=units.BYTE_PER_SECOND),
    Reading(device="memory", key="copy_one_core", value=2e10, unit=units.BYTE_PER_SECOND),
    Reading(device="cpu", key="contention", value=0.125, unit=SHARE),
    Reading(device="cpu", key="smt_worth", value=0.25, unit=SHARE),
)


def probed(*devices: str, readings: tuple[Reading, ...] = READINGS) -> Probed:
    """A probe that found `readings`."""
    return Probed(
        machine=MACHINE,
        found=Found(readings=tuple(r for r in readings if r.device in devices)),
        wanted=Wanted(devices=devices, seconds=1.0, place=PLACE),
        date="2026-11-21",
    )


def with_gpu(device: FakeDevice) -> Probed:
    """The same, and an accelerator."""
    readings = (*READINGS, *gpu.measure(device, 0.1, lambda _: None).readings)
    found = Accelerator(
        product=device.product,
        memory=device.memory,
        count=device.count,
        software=device.software,
    )
    whole = probed("disk", "memory", "cpu", "gpu", readings=readings)
    return replace(whole, accelerator=found)


def written(made: tuple[dict[str, str], list[str]], folder: Path) -> Catalogue:
    """The catalogue with these profiles first."""
    for name, text in made[0].items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Catalogue.default((folder,))


def machine(catalogue: Catalogue) -> Host:
    """The machine that was written."""
    return catalogue.host("node/mine")


def test_a_machine_reads_back(tmp_path: Path) -> None:
    """Every figure lands in its field, with the probe, the processor and the date as source."""
    made = profiles(probed("disk", "memory", "cpu"), "mine")
    host = machine(written(made, tmp_path))
    assert list(made[0]) == ["storage/mine.toml", "node/mine.toml"]
    assert (host.cpu.cores, host.cpu.threads, host.cpu.sockets) == (8, 16, 2)
    assert (host.cpu.contention, host.cpu.smt_worth) == (0.125, 0.25)
    assert (host.ram, host.memory_bandwidth) == (64e9, 3e10)
    drive = host.local_storage
    assert drive is not None
    assert (drive.achievable_read_bandwidth, drive.write_bandwidth) == (2e9, 1e9)
    assert drive.read_operations == 9e4
    assert drive.read_latency == pytest.approx(4e-5)
    assert drive.open_latency == pytest.approx(2e-6)
    source = host.sources["cpu.contention"]
    assert source.reference == f'measured by plan probe {__version__} on Some "CPU"'
    assert (source.date, source.verified) == ("2026-11-21", True)
    assert all(text.startswith(f"# {MARK}") for text in made[0].values())


def test_the_faster_copy_is_the_memorys(tmp_path: Path) -> None:
    """Where others kept the cores busy, one thread may copy faster than all."""
    fast = Reading(device="memory", key="copy_one_core", value=9e10, unit=units.BYTE_PER_SECOND)
    made = profiles(probed("memory", readings=(*READINGS[:6], fast)), "mine")
    assert machine(written(made, tmp_path)).memory_bandwidth == 9e10


def test_a_disk_alone_is_no_machine() -> None:
    """What was not looked at is not written."""
    assert list(profiles(probed("disk"), "mine")[0]) == ["storage/mine.toml"]


def test_a_machine_without_a_disk(tmp_path: Path) -> None:
    """Without disk figures the machine has no drives, and defaults replace what is missing."""
    host = machine(written(profiles(probed("memory"), "mine"), tmp_path))
    assert host.local_storage is None
    assert "measured by" not in host.sources["cpu.contention"].reference


def test_a_network_store_is_no_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder on NFS is a store of its own, not a drive inside the machine."""
    monkeypatch.setattr(Place, "file_system", property(lambda _: "nfs4"))
    catalogue = written(profiles(probed("disk", "cpu"), "mine"), tmp_path)
    assert machine(catalogue).local_storage is None
    assert catalogue.storage("mine").scope is Scope.NETWORK


def test_an_unknown_accelerator_gets_a_profile(tmp_path: Path) -> None:
    """What was measured replaces a datasheet, marked as such, and a warning says so."""
    made = profiles(with_gpu(FakeDevice()), "mine")
    host = machine(written(made, tmp_path))
    assert host.gpu is not None
    assert host.gpu.peak[Precision.BF16] == pytest.approx(PEAK)
    assert Precision.TF32 not in host.gpu.peak
    assert not host.gpu.sources["peak.bf16"].verified
    assert host.host_link is not None
    assert host.host_link.rate == pytest.approx(UP)
    assert host.host_link.pageable == pytest.approx(PAGEABLE)
    assert any("no profile is called Made Up 9000" in text for text in made[1])


def known() -> Known:
    """A device of the catalogue, with its links."""
    catalogue = Catalogue.default()
    device = next(
        found
        for name in catalogue.names("gpu")
        if (found := catalogue.gpu(name)).peer_link and found.peak.get(Precision.BF16, 0) > PEAK
    )
    link, peer = catalogue.link(device.host_link or ""), catalogue.link(device.peer_link or "")
    return Known(gpu=device, link=link, peer=peer)


def test_a_known_accelerator_is_laid_over(tmp_path: Path) -> None:
    """Measured rates come on top of the datasheet, which stays as it is."""
    about = known()
    assert about.gpu is not None
    assert about.link is not None
    made = profiles(with_gpu(FakeDevice(count=8)), "mine", about)
    host = machine(written(made, tmp_path))
    assert host.gpu is not None
    assert host.gpu.name == about.gpu.name
    assert host.gpu.peak == about.gpu.peak
    assert host.gpu.achievable[Precision.BF16] == pytest.approx(PEAK)
    assert "plan probe" in host.gpu.sources["achievable.bf16"].reference
    assert host.host_link is not None
    assert host.host_link.peak == about.link.peak
    assert host.gpu_count == 8


def test_rates_above_the_datasheet_are_left_out() -> None:
    """A fp32 product faster than the datasheet says means something else; it is said."""
    made = profiles(with_gpu(FakeDevice()), "mine", known())
    overlay = next(text for name, text in made[0].items() if name.startswith("gpu/"))
    assert "\nfp32 =" not in overlay
    assert any("above the peak" in text for text in made[1])


@pytest.mark.parametrize("bus", [300e9, 10e9])
def test_an_all_reduce_lies_on_its_link(tmp_path: Path, bus: float) -> None:
    """Faster than the link to the host can carry, it went over the peers' own; else not."""
    made = profiles(with_gpu(FakeDevice(count=8, bus=bus)), "mine", known())
    host = machine(written(made, tmp_path))
    fast = bus > UP
    assert (host.peer_topology is PeerTopology.SWITCHED) == fast
    link: Link | None = host.peer_link if fast else host.host_link
    assert link is not None
    (curve,) = link.collective
    assert (curve.ranks, curve.machines) == (8, 1)
    assert curve.regimes[0].bandwidth == pytest.approx(bus, rel=0.05)


@pytest.mark.parametrize(
    ("text", "name"),
    [("../../etc/x", "etc-x"), ("Ünder the_Sea.local", "nder-the_sea.local"), ("", "this-machine")],
)
def test_any_host_name_makes_a_file_name(text: str, name: str) -> None:
    """No name leads out of the folder."""
    assert slug(text) == name
