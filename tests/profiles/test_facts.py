"""Facts of the catalogue against what is known independently, and the traps of the sources."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.accelerators import Precision
from simulator.schema.cost import Purchase, price_of
from simulator.schema.machines import LinkKind, PeerTopology
from simulator.units import (
    BYTE,
    BYTE_PER_SECOND,
    FLOP_PER_SECOND,
    HOUR,
    MONTH,
    PER_SECOND,
    USD_PER_REQUEST,
    USD_PER_SECOND,
    parse,
)


def rate(text: str) -> float:
    """A bandwidth [B/s]."""
    return parse(text, BYTE_PER_SECOND)


def size(text: str) -> float:
    """An amount of memory [B]."""
    return parse(text, BYTE)


REQUIRED = {
    "gpu": (
        "k80 m40-24gb p100-sxm2-16gb p100-pcie-16gb v100-sxm2-16gb v100-sxm2-32gb v100-sxm3-32gb "
        "v100-pcie-16gb t4 a10 a10g a30 a40 rtx-a6000 rtx-3090 rtx-4090 rtx-5090 "
        "rtx-pro-6000-server l4 l40s a100-sxm4-40gb a100-sxm4-80gb a100-pcie-80gb h100-pcie-80gb "
        "h100-sxm5-80gb h100-nvl-94gb h200-sxm-141gb gh200-141gb b200-sxm-180gb b300-sxm-288gb "
        "gb200-186gb gb300-288gb mi250x-gcd mi300x mi325x mi355x gaudi2 gaudi3 tpu-v4 tpu-v5e "
        "tpu-v5p tpu-v6e trainium1 trainium2 inferentia1 inferentia2 m1-max"
    ),
    "link": (
        "pcie-gen3-x16 pcie-gen4-x16 pcie-gen5-x16 pcie-gen6-x16 nvlink1 nvlink2 nvlink3 nvlink4 "
        "nvlink5 nvlink-c2c xgmi-mi300x infiniband-edr infiniband-hdr infiniband-ndr "
        "infiniband-xdr efa-v1 efa-v2 efa-v3 efa-v4 ethernet-10g ethernet-25g ethernet-100g"
    ),
    "storage": (
        "hdd-7200rpm sata-ssd nvme-gen3 nvme-gen4 nvme-gen5 ebs-gp3 ebs-io2 ebs-st1 efs-elastic "
        "fsx-lustre-scratch2 s3 gcs azure-blob nfs-10gbe"
    ),
    "node": (
        "dgx-1v dgx-2 dgx-a100-40gb dgx-a100-80gb dgx-h100 dgx-h200 dgx-b200 apple-m1-max "
        "cpu-only-2s-epyc-7763 dell-xe9680-h100 dell-r760xa-l40s asus-esc8000a-h100-pcie"
    ),
}
INSTANCES = {"aws": 76, "aws-managed": 4, "gcp": 9, "azure": 18, "lambda": 15}


@pytest.mark.parametrize("kind", REQUIRED)
def test_everything_required_is_there(catalogue: Catalogue, kind: str) -> None:
    """The devices and machines that users ask for have profiles."""
    assert {f"{kind}/{name}" for name in REQUIRED[kind].split()} <= set(catalogue.names(kind))


def test_there_are_enough_accelerators(catalogue: Catalogue) -> None:
    """At least 28 accelerators of at least six makers."""
    gpus = [catalogue.gpu(name) for name in catalogue.names("gpu")]
    assert len(gpus) >= 28
    assert len({gpu.maker for gpu in gpus}) >= 6


@pytest.mark.parametrize("cloud", INSTANCES)
def test_every_cloud_is_there(catalogue: Catalogue, cloud: str) -> None:
    """Each cloud has its machines."""
    names = [name for name in catalogue.names("instance") if name.startswith(f"instance/{cloud}/")]
    assert len(names) >= INSTANCES[cloud]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("pcie-gen3-x16", "15.75 GB/s"),
        ("pcie-gen4-x16", "31.5 GB/s"),
        ("pcie-gen5-x16", "63 GB/s"),
        ("pcie-gen6-x16", "121 GB/s"),
        ("nvlink1", "80 GB/s"),
        ("nvlink2", "150 GB/s"),
        ("nvlink3", "300 GB/s"),
        ("nvlink4", "450 GB/s"),
        ("nvlink5", "900 GB/s"),
        ("infiniband-hdr", "200 Gb/s"),
        ("xgmi-mi300x", "448 GB/s"),
    ],
)
def test_links_are_stated_one_way(catalogue: Catalogue, name: str, peak: str) -> None:
    """Peaks are those of one direction; makers print the sum of both."""
    link = catalogue.link(name)
    assert link.peak == rate(peak)
    assert link.duplex


@pytest.mark.parametrize("generation", [3, 4, 5])
def test_pcie_peaks_follow_from_the_specification(catalogue: Catalogue, generation: int) -> None:
    """8 GT/s x 16 lanes at gen 3, doubled each time, less the 128b/130b encoding."""
    transfers = parse("8 G/s", PER_SECOND) * 2 ** (generation - 3)
    expected = transfers * 16 / 8 * 128 / 130
    peak = catalogue.link(f"pcie-gen{generation}-x16").peak
    assert peak == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("link", "milliseconds"), [("pcie-gen5-x16", 15.9), ("pcie-gen6-x16", 8.3), ("nvlink3", 3.33)]
)
def test_moving_a_gigabyte(catalogue: Catalogue, link: str, milliseconds: float) -> None:
    """Published times for 1 GB at the peak of each link, one way."""
    seconds = size("1 GB") / catalogue.link(link).peak
    assert 1000 * seconds == pytest.approx(milliseconds, rel=5e-3)


def test_measured_copies_stay_below_the_peak(catalogue: Catalogue) -> None:
    """The one measured copy rate is that of H200s on PCIe 5."""
    link = catalogue.link("pcie-gen5-x16")
    assert link.achievable == rate("55.43 GB/s")
    assert link.sources["achievable"].verified
    assert not catalogue.link("pcie-gen4-x16").sources["achievable"].verified


def test_memory_of_cpu_and_gpu(catalogue: Catalogue) -> None:
    """GPU memory is an order of magnitude faster than a socket's; the M1 Max shares one."""
    gpu = catalogue.gpu("a100-sxm4-80gb").memory_bandwidth
    socket = catalogue.cpu("xeon-e5-2698-v4").memory_bandwidth
    assert socket is not None
    assert 15 < gpu / socket < 40
    mac = catalogue.host("node/apple-m1-max")
    assert mac.gpu is not None
    assert mac.gpu.unified_memory
    assert mac.host_link is None
    assert mac.ram == mac.gpu.memory == size("64 GiB")
    assert mac.memory_bandwidth == mac.gpu.memory_bandwidth == rate("400 GB/s")


@pytest.mark.parametrize(
    ("name", "precision", "peak"),
    [
        ("a100-sxm4-80gb", Precision.BF16, "312 TFLOP/s"),
        ("h100-sxm5-80gb", Precision.BF16, "989 TFLOP/s"),
        ("h100-sxm5-80gb", Precision.FP8, "1979 TFLOP/s"),
        ("l4", Precision.BF16, "121 TFLOP/s"),
        ("l40s", Precision.FP8, "733 TFLOP/s"),
        ("b200-sxm-180gb", Precision.BF16, "2250 TFLOP/s"),
        ("mi300x", Precision.BF16, "1307 TFLOP/s"),
        ("a10", Precision.FP16, "125 TFLOP/s"),
        ("a10g", Precision.FP16, "70 TFLOP/s"),
        ("mi250x-gcd", Precision.BF16, "191.5 TFLOP/s"),
        ("k80", Precision.FP32, "4.11 TFLOP/s"),
    ],
)
def test_peaks_are_dense_and_per_device(
    catalogue: Catalogue, name: str, precision: Precision, peak: str
) -> None:
    """Not the rates with 2:4 sparsity, not those of a module of two devices."""
    assert catalogue.gpu(name).peak[precision] == parse(peak, FLOP_PER_SECOND)


def test_narrower_formats_are_no_slower(catalogue: Catalogue) -> None:
    """On every device bf16 matches fp16, where it has both, and fp8 is no slower than bf16."""
    different = set()
    for name in catalogue.names("gpu"):
        peak = catalogue.gpu(name).peak
        fp16, bf16 = peak.get(Precision.FP16), peak.get(Precision.BF16)
        if fp16 is not None and bf16 is not None and fp16 != bf16:
            different.add(name)
        if bf16 is not None:
            assert peak.get(Precision.FP8, bf16) >= bf16
            assert peak.get(Precision.FP32, bf16) <= bf16
    assert different == {"gpu/gaudi3"}


def test_ratio_of_tensor_to_vector_rates(catalogue: Catalogue) -> None:
    """A dense tensor peak is 2 to 32 times the fp32 rate: a sparse one would stand out."""
    for name in catalogue.names("gpu"):
        peak = catalogue.gpu(name).peak
        if Precision.FP32 in peak and Precision.BF16 in peak:
            assert 1.9 <= peak[Precision.BF16] / peak[Precision.FP32] <= 32, name


@pytest.mark.parametrize("name", ["v100-sxm2-16gb", "t4"])
def test_what_older_devices_lack(catalogue: Catalogue, name: str) -> None:
    """Before Ampere tf32 runs as fp32, and bf16 has no rate at all, so that it is refused."""
    gpu = catalogue.gpu(name)
    assert gpu.fallback == {Precision.TF32: Precision.FP32}
    assert Precision.BF16 not in gpu.peak


def test_an_a100_has_no_fp8(catalogue: Catalogue) -> None:
    """One of the sources lists 624 TFLOP/s of fp8 for it, which is int8."""
    gpu = catalogue.gpu("a100-sxm4-80gb")
    assert Precision.FP8 not in gpu.peak
    assert Precision.FP8 not in gpu.fallback


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("a100-sxm4-40gb", "40 GiB"),
        ("a100-sxm4-80gb", "80 GiB"),
        ("h200-sxm-141gb", "141 GiB"),
        ("b200-sxm-180gb", "183359 MiB"),
        ("trainium2", "96 GiB"),
        ("k80", "12 GiB"),
        ("a10g", "22888 MiB"),
    ],
)
def test_device_memory_is_what_programs_see(catalogue: Catalogue, name: str, memory: str) -> None:
    """GiB where makers write GB; half a board of K80; the API's 512 GiB of Trainium2 is wrong."""
    assert catalogue.gpu(name).memory == size(memory)


def test_memory_of_eight(catalogue: Catalogue) -> None:
    """The machines with eight A100 have 320 and 640 GiB of device memory."""
    for name, total in (("p4d.24xlarge", "320 GiB"), ("p4de.24xlarge", "640 GiB")):
        host = catalogue.host(f"instance/aws/{name}")
        assert host.gpu is not None
        assert host.gpu_count * host.gpu.memory == size(total)
        assert host.ram == size("1152 GiB")


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("aws-managed/ml.p4d.24xlarge", "$37.688/h"),
        ("aws-managed/ml.p3.2xlarge", "$3.825/h"),
        ("aws-managed/ml.c5.18xlarge", "$3.672/h"),
        ("aws-managed/ml.c5.9xlarge", "$1.836/h"),
        ("aws/p5.48xlarge", "$55.04/h"),
        ("azure/Standard_ND96amsr_A100_v4", "$32.77/h"),
        ("gcp/a2-megagpu-16g", "$55.7395/h"),
        ("gcp/a3-highgpu-8g", "$88.49/h"),
        ("azure/Standard_ND96isr_H200_v5", "$84.80/h"),
        ("oci/BM.GPU.MI300X.8", "$48/h"),
        ("nebius/gpu-h200-sxm_8gpu-128vcpu-1600gb", "$28/h"),
        ("lambda/gpu_8x_h100_sxm5", "$31.92/h"),
    ],
)
def test_prices(catalogue: Catalogue, name: str, price: str) -> None:
    """Published prices, per machine and hour."""
    stated = price_of(catalogue.host(f"instance/{name}").prices, Purchase.ON_DEMAND)
    assert stated is not None
    assert stated.usual == pytest.approx(parse(price, USD_PER_SECOND))
    assert stated.source.verified


def test_the_managed_service_costs_more(catalogue: Catalogue) -> None:
    """A fifth more for c5, a quarter more for p3; p4d's plain price is a later, lower one."""
    for name, extra in (("c5.18xlarge", 1.2), ("p3.2xlarge", 1.25)):
        found = (f"instance/aws-managed/ml.{name}", f"instance/aws/{name}")
        managed, plain = (price_of(catalogue.host(n).prices, Purchase.ON_DEMAND) for n in found)
        assert managed is not None
        assert plain is not None
        assert managed.usual / plain.usual == pytest.approx(extra, rel=1e-3)


@pytest.mark.parametrize("name", ["p4d.24xlarge", "p3.2xlarge", "c5.18xlarge", "c5.9xlarge"])
def test_managed_machines_are_the_plain_ones(catalogue: Catalogue, name: str) -> None:
    """Only name, price and remarks of a managed machine differ."""
    managed = catalogue.host(f"instance/aws-managed/ml.{name}")
    plain = catalogue.host(f"instance/aws/{name}")
    for field in ("cpu", "ram", "gpu", "gpu_count", "switches", "network", "local_storage"):
        assert getattr(managed, field) == getattr(plain, field)


def test_a_pair_of_groups_adds_up(catalogue: Catalogue) -> None:
    """A p4d and two c5.18xlarge cost $45.032 an hour, a p3.2xlarge and a c5.9xlarge $5.661."""
    hourly = {}
    for name in ("ml.p4d.24xlarge", "ml.c5.18xlarge", "ml.p3.2xlarge", "ml.c5.9xlarge"):
        prices = catalogue.host(f"instance/aws-managed/{name}").prices
        price = price_of(prices, Purchase.ON_DEMAND)
        assert price is not None
        hourly[name] = HOUR * price.usual
    assert hourly["ml.p4d.24xlarge"] + 2 * hourly["ml.c5.18xlarge"] == pytest.approx(45.032)
    assert hourly["ml.p3.2xlarge"] + hourly["ml.c5.9xlarge"] == pytest.approx(5.661)


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("g5.8xlarge", 32),
        ("g5.16xlarge", 64),
        ("g5.12xlarge", 12),
        ("g5.24xlarge", 24),
        ("p4d.24xlarge", 12),
        ("g5.48xlarge", 24),
        ("trn1.32xlarge", 8),
    ],
)
def test_vcpus_per_gpu(catalogue: Catalogue, name: str, ratio: float) -> None:
    """Scaling up within g5 doubles the vCPUs that each GPU has."""
    host = catalogue.host(f"instance/aws/{name}")
    assert host.cpu.threads / host.gpu_count == ratio


@pytest.mark.parametrize(
    ("name", "bandwidth", "cards"),
    [
        ("p4d.24xlarge", "400 Gb/s", 4),
        ("p5.48xlarge", "3200 Gb/s", 32),
        ("p6-b200.48xlarge", "3200 Gb/s", 8),
        ("p6-b300.48xlarge", "6400 Gb/s", 16),
    ],
)
def test_networks(catalogue: Catalogue, name: str, bandwidth: str, cards: int) -> None:
    """The API halves p6-b200's network and counts the plain card of p6-b300."""
    network = catalogue.host(f"instance/aws/{name}").network
    assert network is not None
    assert (network.bandwidth, network.cards) == (rate(bandwidth), cards)
    assert network.rdma


def test_small_machines_burst(catalogue: Catalogue) -> None:
    """A g5.xlarge keeps up a quarter of its network and 87.5 MB/s of volumes."""
    network = catalogue.host("instance/aws/g5.xlarge").network
    assert network is not None
    assert network.bandwidth == rate("10 Gb/s")
    assert network.baseline == rate("2.5 Gb/s")
    assert network.storage_cap == rate("87.5 MB/s")


def test_threads_and_cores(catalogue: Catalogue) -> None:
    """SMT is off on Azure's A100 machines; a second thread is worth next to nothing elsewhere."""
    azure = catalogue.host("instance/azure/Standard_ND96amsr_A100_v4").cpu
    assert (azure.threads, azure.cores, azure.sockets) == (96, 96, 2)
    aws = catalogue.host("instance/aws/p3dn.24xlarge")
    assert (aws.cpu.threads, aws.cpu.cores) == (96, 48)
    # 29,589 img/s with 48 threads, 30,014 with 96.
    alone = replace(aws.cpu, contention=0.0)
    assert alone.capacity / alone.cores == pytest.approx(30014 / 29589, rel=1e-3)
    assert aws.sources["cpu.smt_worth"].verified
    assert not catalogue.host("instance/aws/p4d.24xlarge").sources["cpu.smt_worth"].verified


def test_what_hangs_where_in_p4d(catalogue: Catalogue) -> None:
    """Two GPUs and one network card share each of four switches, two switches a socket."""
    host = catalogue.host("instance/aws/p4d.24xlarge")
    assert [switch.gpus for switch in host.switches] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [switch.nics for switch in host.switches] == [(0,), (1,), (2,), (3,)]
    assert host.gpu_sockets == (0, 0, 0, 0, 1, 1, 1, 1)
    assert {switch.uplink.name for switch in host.switches} == {"link/pcie-gen3-x16"}
    assert not host.sources["switches"].verified


@pytest.mark.parametrize(
    ("name", "gpus", "switches", "uplink", "topology", "peer"),
    [
        ("node/dgx-1v", 8, 4, "pcie-gen3-x16", PeerTopology.MESH, "nvlink2"),
        ("node/dgx-2", 16, 4, "pcie-gen3-x16", PeerTopology.SWITCHED, "nvlink2"),
        ("node/dgx-a100-80gb", 8, 4, "pcie-gen4-x16", PeerTopology.SWITCHED, "nvlink3"),
        ("node/dgx-h100", 8, 4, "pcie-gen5-x16", PeerTopology.SWITCHED, "nvlink4"),
        ("node/dgx-b200", 8, 4, "pcie-gen5-x16", PeerTopology.SWITCHED, "nvlink5"),
    ],
)
def test_dgx_machines(  # noqa: PLR0913 - one parameter a fact
    *,
    catalogue: Catalogue,
    name: str,
    gpus: int,
    switches: int,
    uplink: str,
    topology: PeerTopology,
    peer: str,
) -> None:
    """DGX systems have two sockets, switches below them, and NVLink between the GPUs."""
    host = catalogue.host(name)
    assert (host.gpu_count, len(host.switches), host.cpu.sockets) == (gpus, switches, 2)
    assert {switch.uplink.name for switch in host.switches} == {f"link/{uplink}"}
    assert host.peer_link is not None
    assert (host.peer_topology, host.peer_link.name) == (topology, f"link/{peer}")
    assert host.socket_link is not None
    assert host.socket_link.kind is LinkKind.SOCKET


def test_pcie_machines_have_no_peer_link(catalogue: Catalogue) -> None:
    """The four A10G of a g5.12xlarge talk over PCIe; a single GPU talks to nobody."""
    several = catalogue.host("instance/aws/g5.12xlarge")
    assert (several.peer_topology, several.peer_link) == (PeerTopology.PCIE, None)
    single = catalogue.host("instance/aws/g5.xlarge")
    assert (single.peer_topology, single.peer_link) == (PeerTopology.NONE, None)


def test_memory_bandwidth_of_a_host(catalogue: Catalogue) -> None:
    """Sockets add up; what a small virtual machine shares with others is marked."""
    whole = catalogue.host("node/dgx-a100-80gb")
    assert whole.memory_bandwidth == rate("409.6 GB/s")
    assert whole.sources["memory_bandwidth"].verified
    slice_ = catalogue.host("instance/aws/g5.xlarge")
    assert slice_.memory_bandwidth == rate("204.8 GB/s")
    assert not slice_.sources["memory_bandwidth"].verified


def test_machines_without_a_price(catalogue: Catalogue) -> None:
    """What costs were not found for has none, rather than a guess."""
    for name in ("node/dgx-h100", "instance/aws/trn2.48xlarge", "instance/gcp/a3-edgegpu-8g"):
        assert not catalogue.host(name).prices
    assert catalogue.host("node/cpu-only-2s-epyc-7763").gpu is None


def test_stores_keep_datasheet_and_measurement_apart(catalogue: Catalogue) -> None:
    """A gen 5 drive was seen at 74% of its datasheet; a disk is slow at random reads."""
    drive = catalogue.storage("nvme-gen5")
    assert (drive.read_bandwidth, drive.read_rate) == (rate("14 GB/s"), rate("10.33 GB/s"))
    disk = catalogue.storage("hdd-7200rpm")
    assert disk.read_operations == parse("100 IOPS", PER_SECOND)
    assert not disk.sources["read_operations"].verified
    assert catalogue.storage("ebs-gp3").read_bandwidth == size("125 MiB")


def test_object_store_requests(catalogue: Catalogue) -> None:
    """140 GB/s take 4,667 requests of 30 MB/s each, and one request feeds 0.021% of it."""
    store = catalogue.storage("object-store-30mb")
    assert store.request_rate is not None
    assert store.read_bandwidth / store.request_rate == pytest.approx(4667, abs=0.5)
    assert 100 * store.request_rate / store.read_bandwidth == pytest.approx(0.021, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "size", "month"),
    [
        ("ebs-gp3", 500e9, 40.0),
        ("s3", 1e12, 23.0),
        # 13,000 operations and 875 MiB/s above what is free.
        ("ebs-gp3-max", 500e9, 40.0 + 65.0 + 35.0),
        ("efs-elastic", 1e12, 300.0),
        # 9.6 TiB are paid for, however little lies there.
        ("fsx-lustre-persistent2-1000", 1e9, 9.6 * 2**40 / 1e9 * 0.8456),
    ],
)
def test_standing_costs_of_stores(
    catalogue: Catalogue, name: str, size: float, month: float
) -> None:
    """What a month costs, as published; file systems and volumes by what is provisioned."""
    found = catalogue.storage(name).standing(size)
    assert found is not None
    assert found * MONTH == pytest.approx(month)


def test_charges_of_stores(catalogue: Catalogue) -> None:
    """Requests by the thousand, operations and throughput held ready by the month, egress."""
    objects, volume = catalogue.storage("s3").charges, catalogue.storage("ebs-gp3").charges
    assert objects is not None
    assert volume is not None
    assert objects.reads == pytest.approx(parse("$0.0004/1000 requests", USD_PER_REQUEST))
    assert objects.writes == pytest.approx(5e-6)
    assert [tier.value for tier in objects.internet] == pytest.approx([9e-11, 8.5e-11, 7e-11])
    assert volume.operations == pytest.approx(5.0 / 1000 / MONTH)
    assert volume.throughput == pytest.approx(0.2 / (5 * 2**20) / MONTH)
