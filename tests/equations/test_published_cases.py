"""Published cases that are pure arithmetic, each as a test named by its row.

Sources: A "Improve price performance of your model training using Amazon SageMaker heterogeneous
clusters" (AWS, 2022) and its notebooks; B "Training vs inference" (Frank Denneman); C "A
Hitchhiker's Guide to ML Training Infrastructure" (SEI, 2022); D "Instance selection for deep
learning" (Chaim Rand) and an article on design patterns of ML systems. Errors of the sources are
not reproduced: the right figure stands here, the printed one in the docstring.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import theory

from simulator.equations import cost, cpu, memory, roofline, step, storage
from simulator.units import BYTE, DAY, HOUR, USD_PER_SECOND, parse

P4D = parse("$37.688/h", USD_PER_SECOND)
P4D_AND_TWO_C5 = parse("$45.032/h", USD_PER_SECOND)
IMAGES, SOURCE_IMAGES = 1_281_167, 1_280_000
LOAD, COMPUTE = 0.38, 0.055


def test_a1_vcpus_short() -> None:
    """96 vCPUs for 8 GPUs that need 20 each: 160 needed, 64 or 40% short, 60% busy."""
    assert cpu.vcpus_short(0, 20, 8) == 160
    assert cpu.vcpus_short(96, 20, 8) == 64
    assert cpu.vcpus_short(96, 20, 8) / 160 == pytest.approx(0.40)
    assert theory.fed_utilization(96, 20, 8) == pytest.approx(0.60)


def test_a2_a_second_equal_node() -> None:
    """Two nodes keep the ratio of 12 and the 60%."""
    assert theory.vcpus_per_gpu(192, 16) == 12
    assert theory.fed_utilization(192, 20, 16) == pytest.approx(0.60)


def test_a3_two_machines_for_data() -> None:
    """With 2 x 72 vCPUs: 240 (printed 210), 30 a GPU, GPUs full, CPUs 66.7% busy."""
    vcpus = 96 + 2 * 72
    assert vcpus == 240
    assert theory.vcpus_per_gpu(vcpus, 8) == 30
    assert theory.fed_utilization(vcpus, 20, 8) == 1.0
    assert 160 / vcpus == pytest.approx(0.667, abs=5e-4)


def test_a4_scaling_up_in_the_family() -> None:
    """g5.8xlarge to 16xlarge doubles 32 vCPUs a GPU, g5.12xlarge to 24xlarge doubles 12."""
    ratios = theory.vcpus_per_gpu(np.array([32, 64, 48, 96]), np.array([1, 1, 4, 4]))
    assert ratios.tolist() == [32, 64, 12, 24]


def test_a8_cost_of_a_step_with_tensorflow() -> None:
    """$0.0020100 and $0.0010758 (printed in cents under a dollar sign), 46.48% saved."""
    alone = cost.cost_per_step(P4D, 0.192)
    together = cost.cost_per_step(P4D_AND_TWO_C5, 0.086)
    assert alone == pytest.approx(0.0020100, abs=5e-8)
    assert together == pytest.approx(0.0010758, abs=5e-8)
    assert cost.saving(alone, together) == pytest.approx(0.4648, abs=5e-5)


def test_a13_cost_of_a_step_with_pytorch() -> None:
    """$0.0012676 and $0.00028934, 77.17% saved."""
    alone = cost.cost_per_step(parse("$3.825/h", USD_PER_SECOND), 1.193)
    together = cost.cost_per_step(parse("$5.661/h", USD_PER_SECOND), 0.184)
    assert alone == pytest.approx(0.0012676, abs=5e-8)
    assert together == pytest.approx(0.00028934, abs=5e-9)
    assert cost.saving(alone, together) == pytest.approx(0.7717, abs=5e-5)


def test_a16_the_price_behind_a_quote() -> None:
    """40% less time for 30% less money is an hour 1.1667 times as dear, near p4d's with two c5."""
    implied = theory.implied_price_ratio(0.4, 0.3)
    assert implied == pytest.approx(1.1667, abs=5e-5)
    two_c5 = cost.cost_per_step(P4D_AND_TWO_C5, 1.0) / cost.cost_per_step(P4D, 1.0)
    assert two_c5 == pytest.approx(1.195, abs=5e-4)


def test_a17_prices_of_the_parts() -> None:
    """The sums imply $3.672 an hour for a c5.18xlarge and $1.836 for a c5.9xlarge."""
    assert theory.hourly(P4D_AND_TWO_C5 - P4D) / 2 == pytest.approx(3.672)
    both = parse("$5.661/h", USD_PER_SECOND) - parse("$3.825/h", USD_PER_SECOND)
    assert theory.hourly(both) == pytest.approx(1.836)


def test_a18_cost_ratio() -> None:
    """Price ratio times time ratio is the ratio of the costs of a step."""
    ratio = cost.cost_ratio(P4D_AND_TWO_C5 / P4D, 0.086 / 0.192)
    assert ratio == pytest.approx(1.0 - 0.4648, abs=5e-5)


def test_b1_iterations() -> None:
    """40,000 with the source's rounded images; 40,036 or 40,037 with the real ones."""
    assert step.iterations_per_epoch(SOURCE_IMAGES, 32, drop_last=False) == 40_000
    assert step.iterations_per_epoch(IMAGES, 32, drop_last=True) == 40_036
    assert step.iterations_per_epoch(IMAGES, 32, drop_last=False) == 40_037


def test_b2_loading_in_the_way() -> None:
    """0.435 s a step (printed 0.44), 20.1 days for 100 epochs (printed 20), GPU 12.6% busy."""
    serial = theory.serial_step(0.342 + 0.038, COMPUTE)
    assert serial == pytest.approx(0.435)
    assert theory.training_time(serial, 40_000, 100) / DAY == pytest.approx(20.1, abs=0.05)
    assert theory.training_time(0.44, 40_000, 100) / DAY == pytest.approx(20.4, abs=0.05)
    assert COMPUTE / serial == pytest.approx(0.126, abs=5e-4)


def test_b3_loading_hidden() -> None:
    """0.055 s a step, 2.546 days (printed 2.5), 7.9 times as fast."""
    days = theory.training_time(COMPUTE, 40_000, 100) / DAY
    assert days == pytest.approx(2.546, abs=5e-4)
    assert theory.serial_step(LOAD, COMPUTE) / COMPUTE == pytest.approx(7.9, abs=0.05)


def test_b4_one_worker_ahead() -> None:
    """0.38 s a step and 17.6 days with one worker; seven keep the GPU busy."""
    ahead = theory.overlapped_step(LOAD, COMPUTE)
    assert ahead == pytest.approx(0.38)
    assert theory.training_time(ahead, 40_000, 100) / DAY == pytest.approx(17.6, abs=0.05)
    assert theory.workers_needed(LOAD, COMPUTE) == 7


def test_b5_the_store_behind_it() -> None:
    """10.7 ms an image of 114.66 kB are 10.7 MB/s, as from a disk that seeks."""
    per_image = 0.342 / 32
    assert per_image == pytest.approx(10.7e-3, rel=5e-3)
    rate = storage.request_throughput(parse("114.66 kB", BYTE), per_image, math.inf)
    assert rate == pytest.approx(10.7e6, rel=5e-3)


def test_b6_a_deadline() -> None:
    """90 epochs in 14 days take 95.3 images a second."""
    rate = theory.throughput_for_deadline(IMAGES, 90, 14 * DAY)
    assert rate == pytest.approx(95.3, abs=0.05)


def test_b7_bytes_of_an_image() -> None:
    """155.84 GiB over 1.28 M images are 130.7 kB each, not the 114.66 kB of the training images."""
    size = parse("155.84 GiB", BYTE)
    assert size / SOURCE_IMAGES == pytest.approx(130.7e3, abs=50)
    assert IMAGES * parse("114.66 kB", BYTE) == pytest.approx(146.9e9, abs=5e7)


def test_b8_the_data_set_does_not_fit_the_gpu() -> None:
    """155.84 GiB is more than 80 GB, so batches are streamed."""
    left = memory.memory_left(parse("80 GB", BYTE), parse("155.84 GiB", BYTE))
    assert left == 0.0


@pytest.mark.parametrize(
    ("gpus", "each", "least"), [(1, "16 GB", "16 GB"), (2, "40 GB", "80 GB")], ids=["c2", "c3"]
)
def test_c1_c2_c3_rule_for_ram(gpus: int, each: str, least: str) -> None:
    """RAM is to exceed the memory of all GPUs by the system and the application."""
    system, application = parse("2 GB", BYTE), parse("3 GB", BYTE)
    asked = memory.rule_of_thumb(gpus * parse(each, BYTE), system, application)
    assert asked == parse(least, BYTE) + system + application
    assert asked > parse(least, BYTE)


def test_c4_ram_below_gpu_memory() -> None:
    """64 GB of RAM are too few for two GPUs of 40 GB by the rule."""
    assert memory.rule_of_thumb(2 * 40e9, 0.0, 0.0) > parse("64 GB", BYTE)


def test_c5_pcie_generations() -> None:
    """32 GB/s nominal or 31.5 encoded for gen 4, 63 for gen 5, 121 for gen 6 (printed gen 5)."""
    encoded = theory.ENCODING_128_OF_130
    rates = [
        theory.lane_bandwidth(16e9, 16),
        theory.lane_bandwidth(16e9, 16, encoded),
        theory.lane_bandwidth(32e9, 16, encoded),
        theory.lane_bandwidth(64e9, 16, theory.FLIT_242_OF_256),
    ]
    assert [round(rate / 1e9, 1) for rate in rates] == [32.0, 31.5, 63.0, 121.0]


def test_c7_memory_bandwidths() -> None:
    """A GPU's 2,000 GB/s are 22.2 times a CPU's 90 GB/s."""
    on_cpu, on_gpu = roofline.roofline_time(0.0, 1e9, 1e12, np.array([90e9, 2000e9]))
    assert on_cpu / on_gpu == pytest.approx(22.2, abs=0.05)


@pytest.mark.parametrize(
    ("bandwidth", "milliseconds"),
    [(32e9, 31.25), (63e9, 15.9), (121e9, 8.3), (300e9, 3.33)],
    ids=["gen4", "gen5", "gen6", "nvlink3"],
)
def test_c8_copies_of_a_gigabyte(bandwidth: float, milliseconds: float) -> None:
    """1 GB to the device; over NVLink 3 at 300 GB/s one way (printed 600 is both ways)."""
    assert theory.transfer_time(1e9, bandwidth) * 1e3 == pytest.approx(milliseconds, rel=5e-3)


@pytest.mark.parametrize(
    ("price", "seconds", "rate", "per_usd"),
    [(P4D, 0.192, 42_667, 4.076e6), (P4D_AND_TWO_C5, 0.086, 95_256, 7.615e6)],
    ids=["a6", "a7"],
)
def test_d1_samples_per_dollar(price: float, seconds: float, rate: float, per_usd: float) -> None:
    """8,192 samples a step: 4.076 M a dollar alone, 7.615 M with two machines for data."""
    throughput = theory.throughput(8192, seconds)
    assert throughput == pytest.approx(rate, abs=0.5)
    assert cost.samples_per_usd(throughput, price) == pytest.approx(per_usd, rel=2e-4)
    assert throughput * HOUR / theory.hourly(price) == pytest.approx(per_usd, rel=2e-4)


def test_d1_gain() -> None:
    """The second buys 1.868 times as many samples."""
    gain = 1.0 / cost.cost_ratio(P4D_AND_TWO_C5 / P4D, 0.086 / 0.192)
    assert gain == pytest.approx(1.868, abs=5e-4)


def test_d6_requests_for_an_accelerator() -> None:
    """140 GB/s at 30 MB/s a request take 4,667 at once; one feeds 0.021%."""
    assert theory.requests_to_saturate(140e9, 30e6) == 4667
    assert round(theory.share_fed(30e6, 140e9) * 100, 3) == 0.021
