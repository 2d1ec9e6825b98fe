"""What nvidia-smi shows as a node profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.refusals import refusal

from simulator import units
from simulator.importers.nvidia_smi import (
    Given,
    is_topology,
    matching,
    parse_query,
    parse_topology,
    read,
)
from simulator.importers.result import Fragment
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.machines import Host, PeerTopology

Refused = Callable[..., list[str]]
DATA = Path(__file__).parent / "data"
NEW_TOPOLOGY = DATA / "topo-8-h100-invented.txt"
OLD_TOPOLOGY = DATA / "topo-old-4-v100-invented.txt"
NEW_QUERY = DATA / "smi-550-8-h100-invented.xml"
OLD_QUERY = DATA / "smi-530-4-v100-invented.xml"
LINKS = DATA / "nvlink-s-h100-invented.txt"
CATALOGUE = Catalogue.default()
RAM = Given(ram=units.parse("2 TiB", units.BYTE))


def loaded(fragment: Fragment, folder: Path) -> Host:
    """The profile as the catalogue reads it."""
    place = folder / "node" / "mine.toml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(fragment.text, encoding="utf-8")
    return Catalogue.default([folder]).host("node/mine")


def test_a_machine_with_a_switch(tmp_path: Path) -> None:
    """Eight GPUs, 18 NVLinks between every pair, a NIC below each PCIe switch of two GPUs."""
    given_ = Given(ram=RAM.ram, network=units.parse("1600 Gb/s", units.BYTE_PER_SECOND))
    host = loaded(read([NEW_TOPOLOGY, NEW_QUERY, LINKS], CATALOGUE, given_), tmp_path)
    assert host.gpu is not None
    assert (host.gpu.name, host.gpu_count) == ("gpu/h100-sxm5-80gb", 8)
    assert host.peer_topology is PeerTopology.SWITCHED
    assert host.host_link is not None
    assert host.host_link.name == "link/pcie-gen5-x16"
    assert host.gpu_sockets == (0, 0, 0, 0, 1, 1, 1, 1)
    below = [(switch.socket, switch.gpus, switch.nics) for switch in host.switches]
    assert below == [(0, (0, 1), (0,)), (0, (2, 3), (1,)), (1, (4, 5), (2,)), (1, (6, 7), (3,))]
    assert (host.cpu.threads, host.cpu.cores, host.cpu.sockets) == (224, 112, 2)
    assert not host.sources["cpu.cores"].verified
    assert host.ram == RAM.ram
    assert host.network is not None
    assert (host.network.bandwidth, host.network.cards) == (2e11, 4)
    assert host.sources["gpu_count"].date == "2026-01-05"
    assert "driver 550.54.15" in host.sources["gpu_count"].reference


def test_an_old_driver_and_a_pasted_matrix(tmp_path: Path) -> None:
    """Spaces, names such as mlx5_0, no NUMA columns; power_limit of driver 530; eight lanes."""
    fragment = read([OLD_TOPOLOGY, OLD_QUERY], CATALOGUE, RAM)
    host = loaded(fragment, tmp_path)
    assert host.gpu is not None
    assert (host.gpu.name, host.gpu_count) == ("gpu/v100-sxm2-16gb", 4)
    assert host.peer_topology is PeerTopology.MESH
    assert host.gpu_sockets == (0, 0, 1, 1)
    assert host.cpu.threads == 40
    warnings = " | ".join(fragment.warnings)
    assert "capped at 250 W; the rates of gpu/v100-sxm2-16gb hold for 300 W" in warnings
    assert "sit on 8 PCIe lanes" in warnings
    assert "8/16 of its rate" in warnings


def test_the_matrix_alone_needs_the_gpu_named(tmp_path: Path, problems: Refused) -> None:
    """It says how many there are, not what."""
    found = problems(read, [NEW_TOPOLOGY], CATALOGUE, RAM)
    assert "doesn't say what the GPUs are; add -q -x, or give --gpu" in found[0]
    named = Given(ram=RAM.ram, gpu="h100-sxm5-80gb", threads=96, cores=48)
    host = loaded(read([NEW_TOPOLOGY], CATALOGUE, named), tmp_path)
    assert (host.gpu_count, host.cpu.threads, host.cpu.cores) == (8, 96, 48)
    assert host.sources["cpu.cores"].verified


def test_the_query_alone_leaves_the_layout_out(tmp_path: Path, problems: Refused) -> None:
    """Without the matrix nothing is known of threads, sockets and peers."""
    assert "--threads: " in problems(read, [NEW_QUERY], CATALOGUE, RAM)[0]
    fragment = read([NEW_QUERY], CATALOGUE, Given(ram=RAM.ram, threads=96))
    assert loaded(fragment, tmp_path).switches == ()
    assert any("without topo -m" in warning for warning in fragment.warnings)


def test_ram_is_asked_for(problems: Refused) -> None:
    """No output of nvidia-smi says it."""
    found = problems(read, [NEW_TOPOLOGY, NEW_QUERY], CATALOGUE, Given())
    assert found == [
        "--ram: nvidia-smi doesn't say how much RAM the machine has; such as --ram '2 TiB'"
    ]


def test_files_of_two_machines(problems: Refused) -> None:
    """Counts that differ, and two of a kind."""
    assert (
        "4 GPUs in the XML, but 8 in the matrix"
        in (problems(read, [NEW_TOPOLOGY, OLD_QUERY], CATALOGUE, RAM)[0])
    )
    assert "is a second XML" in problems(read, [NEW_QUERY, OLD_QUERY], CATALOGUE, RAM)[0]


def test_nvlinks_that_differ_from_the_profile(tmp_path: Path) -> None:
    """Half of the links are gone: the profile's rate is not the machine's."""
    path = tmp_path / "links.txt"
    lines = LINKS.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines if "Link 1" not in line]
    path.write_text("\n".join(kept), encoding="utf-8")
    warnings = read([NEW_TOPOLOGY, NEW_QUERY, path], CATALOGUE, RAM).warnings
    assert any("NVLinks of a GPU carry 239.1 GB/s one way" in warning for warning in warnings)
    clean = read([NEW_TOPOLOGY, NEW_QUERY, LINKS], CATALOGUE, RAM).warnings
    assert not any("NVLinks" in warning for warning in clean)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("NV18\tNV18", "NV18\tNV17", "says NV17 from GPU0 to GPU2, but NV18 back"),
        ("\tPXB\t", "\tABC\t", "has an unknown cell, found 'ABC'"),
        ("NIC3\tSYS\tSYS\t", "NIC3\t", "cells for NIC3 where the header names 12 devices"),
        ("\nNIC3\t", "\nother\t", "is cut off: the matrix has no row for NIC3"),
    ],
)
def test_a_broken_matrix(
    tmp_path: Path, problems: Refused, old: str, new: str, message: str
) -> None:
    """Cells that are missing, unknown or contradict each other."""
    text = NEW_TOPOLOGY.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "topo.txt"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = problems(read, [path, NEW_QUERY], CATALOGUE, RAM)
    assert message in found[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("81559 MiB", "81559 W", "gpu[0]/fb_memory_usage/total: measures power where bytes"),
        ("81559 MiB", "81559", "gpu[0]/fb_memory_usage/total: has no unit"),
        ("700.00 W", "-700.00 W", "current_power_limit: is negative, found -700.00 W"),
        (">16x<", ">x<", "link_width: is not a count from 1 to 32, found x"),
        (
            "<max_link_gen>5<",
            "<max_link_gen>50<",
            "max_link_gen: is not a count from 1 to 8, found 50",
        ),
        ("<product_name>NVIDIA H100 80GB HBM3</product_name>", "", "product_name: is missing"),
        ("</nvidia_smi_log>", "", "is cut off: the XML stops before its end"),
        ("<driver_version>", "<driver>", "is not valid XML: mismatched tag"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "shows GPUs of several kinds"),
        ("nvidia_smi_log SYSTEM", "x [<!ENTITY a 'b'>]><y SYSTEM", "declares entities"),
    ],
)
def test_a_broken_query(
    tmp_path: Path, problems: Refused, old: str, new: str, message: str
) -> None:
    """One message with the element, for each wrong figure."""
    text = NEW_QUERY.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "query.xml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = problems(read, [path, NEW_TOPOLOGY], CATALOGUE, RAM)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body/></html>", "is XML of another kind: <html>"),
        ("<nvidia_smi_log></nvidia_smi_log>", "lists no GPU"),
        ("Sat Nov 21 05:00:00\n| NVIDIA-SMI 550.54.15 |", "is not the output of nvidia-smi"),
    ],
)
def test_other_text(tmp_path: Path, problems: Refused, text: str, message: str) -> None:
    """What is none of the three is said to be none."""
    path = tmp_path / "other"
    path.write_text(text, encoding="utf-8")
    assert message in problems(read, [path], CATALOGUE, RAM)[0]


def test_what_a_driver_does_not_know_is_missing() -> None:
    """N/A, refusals and deprecation are neither figures nor problems."""
    text = NEW_QUERY.read_text(encoding="utf-8")
    for old, new in (
        ("700.00 W", "[N/A]"),
        ("81559 MiB", "Requested functionality has been deprecated"),
        ("1980 MHz", "Unknown Error"),
    ):
        text = text.replace(old, new)
    device = parse_query(text, "q.xml")[0][0]
    assert (device.memory, device.power_cap, device.clock) == (None, None, None)


GPUS = [CATALOGUE.gpu(name) for name in CATALOGUE.names("gpu")]


@pytest.mark.parametrize(
    ("product", "memory", "profile"),
    [
        ("NVIDIA H100 80GB HBM3", "81559 MiB", "gpu/h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "81559 MiB", "gpu/h100-pcie-80gb"),
        ("NVIDIA H100 NVL", "95830 MiB", "gpu/h100-nvl-94gb"),
        ("NVIDIA H200", "143771 MiB", "gpu/h200-sxm-141gb"),
        ("NVIDIA A100-SXM4-40GB", "40960 MiB", "gpu/a100-sxm4-40gb"),
        ("NVIDIA A100 80GB PCIe", "81920 MiB", "gpu/a100-pcie-80gb"),
        ("Tesla V100-SXM2-32GB", "32768 MiB", "gpu/v100-sxm2-32gb"),
        ("Tesla T4", "15360 MiB", "gpu/t4"),
        ("NVIDIA A10G", "23028 MiB", "gpu/a10g"),
        ("NVIDIA L4", "23034 MiB", "gpu/l4"),
        ("NVIDIA GeForce RTX 4090", "24564 MiB", "gpu/rtx-4090"),
        ("NVIDIA RTX A6000", "49140 MiB", "gpu/rtx-a6000"),
        ("Tesla V100-SXM3-32GB", "32768 MiB", "gpu/v100-sxm3-32gb"),
        ("Tesla V100-PCIE-16GB", "16384 MiB", "gpu/v100-pcie-16gb"),
        ("NVIDIA H200 SXM", "143771 MiB", "gpu/h200-sxm-141gb"),
        ("NVIDIA B200", "183359 MiB", "gpu/b200-sxm-180gb"),
    ],
)
def test_product_names(product: str, memory: str, profile: str) -> None:
    """What drivers print finds its profile, and that one only."""
    found = matching(product, units.parse(memory, units.BYTE), GPUS)
    assert [gpu.name for gpu in found] == [profile]


@pytest.mark.parametrize(
    "product", ["NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA A100X"]
)
def test_a_variant_is_no_match(product: str) -> None:
    """A name with a word more is another device."""
    assert matching(product, None, GPUS) == []


def test_an_unknown_gpu_is_asked_for(tmp_path: Path, problems: Refused) -> None:
    """The message names the option."""
    path = tmp_path / "query.xml"
    text = NEW_QUERY.read_text(encoding="utf-8").replace("H100 80GB HBM3", "X900")
    path.write_text(text, encoding="utf-8")
    found = problems(read, [path, NEW_TOPOLOGY], CATALOGUE, RAM)
    assert "shows a GPU that the catalogue lacks: 'NVIDIA X900'; give --gpu" in found[0]


def test_every_profile_knows_its_own_name() -> None:
    """The words of a profile's name, at its own memory size, mean that profile."""
    for gpu in GPUS:
        words = gpu.name.rpartition("/")[2].replace("-", " ")
        assert gpu in matching(words, gpu.memory, GPUS)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(share=st.floats(0.0, 0.99), which=st.sampled_from([NEW_QUERY, OLD_QUERY]))
def test_a_query_cut_off_anywhere(tmp_path: Path, share: float, which: Path) -> None:
    """XML without its end is refused with one message."""
    whole = which.read_bytes().rstrip()
    path = tmp_path / "cut.xml"
    path.write_bytes(whole[: int(share * len(whole))])
    assert len(refusal(read, [path], CATALOGUE, RAM)) == 1


@settings(deadline=None, max_examples=60)
@given(share=st.floats(0.0, 1.0), which=st.sampled_from([NEW_TOPOLOGY, OLD_TOPOLOGY]))
def test_a_matrix_cut_off_anywhere(share: float, which: Path) -> None:
    """A matrix without all of its cells is refused; behind it stands only the legend."""
    whole = which.read_text(encoding="utf-8")
    text = whole[: int(share * len(whole))]
    if not is_topology(text):
        return
    told = refusal(parse_topology, text, "topo.txt")
    matrix = whole.partition("Legend")[0].rstrip()
    complete = text.startswith(matrix) or text.rstrip().endswith(("PIX", "X", "SOC", "SYS"))
    assert bool(told) or complete


@settings(deadline=None, max_examples=100)
@given(st.text(alphabet="GPU01 NVXSY\t\n\x1b[4m-,", max_size=200))
def test_any_matrix_is_read_or_refused(text: str) -> None:
    """No text below a header leads to anything but a matrix or messages."""
    whole = f"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n{text}"
    assert "no problem told" not in refusal(parse_topology, whole, "topo.txt")


NPS4 = """   GPU0  GPU1    GPU2    GPU3    GPU4    GPU5    GPU6    GPU7   CPU Affinity NUMA Affinity
GPU0     X      NV12    NV12    NV12    NV12    NV12    NV12    NV12    48-63   3
GPU1    NV12     X      NV12    NV12    NV12    NV12    NV12    NV12    48-63   3
GPU2    NV12    NV12     X      NV12    NV12    NV12    NV12    NV12    16-31   1
GPU3    NV12    NV12    NV12     X      NV12    NV12    NV12    NV12    16-31   1
GPU4    NV12    NV12    NV12    NV12     X      NV12    NV12    NV12    112-127 7
GPU5    NV12    NV12    NV12    NV12    NV12     X      NV12    NV12    112-127 7
GPU6    NV12    NV12    NV12    NV12    NV12    NV12     X      NV12    80-95   5
GPU7    NV12    NV12    NV12    NV12    NV12    NV12    NV12     X      80-95   5
"""
"""Two EPYC 7763 with four NUMA nodes each, of which every second has two GPUs (a public guide of a
cluster with HGX A100)."""


def test_numa_nodes_without_a_gpu_count(tmp_path: Path) -> None:
    """GPUs on nodes 1, 3, 5 and 7 of 8: 128 threads, not the 64 near GPUs; 2 sockets, not 4."""
    path = tmp_path / "topo.txt"
    path.write_text(NPS4)
    given_ = Given(ram=RAM.ram, gpu="a100-sxm4-80gb")
    fragment = read([path], CATALOGUE, given_)
    host = loaded(fragment, tmp_path)
    assert (host.cpu.threads, host.cpu.cores, host.cpu.sockets) == (128, 128, 2)
    assert host.gpu_sockets == (0, 0, 0, 0, 1, 1, 1, 1)
    assert not host.sources["cpu.sockets"].verified
    said = " ".join(fragment.warnings)
    assert "64 of 128 hardware threads are near no GPU" in said
    assert "8 NUMA nodes: taken as 2 sockets; give --sockets" in said


@pytest.mark.parametrize(("sockets", "places"), [(1, [0] * 8), (4, [1, 1, 0, 0, 3, 3, 2, 2])])
def test_stated_sockets_share_the_nodes_evenly(sockets: int, places: list[int]) -> None:
    """Node n of 8 lies on socket n x sockets / 8."""
    assert parse_topology(NPS4, "x").sockets(sockets) == (places, sockets)


def test_a_pair_of_cards_with_a_bridge(tmp_path: Path) -> None:
    """Twelve links of 25 GB/s between two PCIe cards on the second of two sockets: 300 GB/s."""
    path = tmp_path / "topo.txt"
    path.write_text(
        "        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
        "GPU0     X      NV12    32-63,96-127    1               N/A\n"
        "GPU1    NV12     X      32-63,96-127    1               N/A\n"
    )
    fragment = read([path], CATALOGUE, Given(ram=RAM.ram, gpu="h100-pcie-80gb"))
    host = loaded(fragment, tmp_path)
    assert host.peer_topology is PeerTopology.MESH
    assert host.gpu_sockets == (1, 1)
    assert (host.cpu.threads, host.cpu.cores, host.cpu.sockets) == (128, 64, 2)
    assert any("300 GB/s one way" in line for line in fragment.summary)
