"""Power of machines and accelerators against what was metered, with the errors as they are.

Machines: the ten rows with a power meter of MLPerf Inference v5.1 (closed, Lenovo, 8 B200 each;
mlcommons/inference_results_v5.1@965182b, summary_results.json, 2025-09). Accelerators: generation
by batches on one device (argonne-lcf/LLM-Inference-Bench@4211f5d, power_results.csv, 2024; its
column is in milliwatts: as watts one A100 would draw 222 kW).
"""

from __future__ import annotations

import math
import sys
from statistics import median

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.results.energy import LOG_SD, draws_at
from simulator.schema.machines import Group, Role
from tests.support.scenarios import store

METERED = {
    "llama2-70b-99 Offline": 10401.0,
    "llama2-70b-99 Server": 10442.3,
    "llama2-70b-99.9 Offline": 10401.0,
    "llama2-70b-99.9 Server": 10434.7,
    "whisper Offline": 7636.5,
    "llama3.1-405b Offline": 9891.8,
    "llama3.1-405b Server": 9566.2,
    "rgat Offline": 7467.1,
    "stable-diffusion-xl Offline": 9514.4,
    "stable-diffusion-xl Server": 9437.6,
}
"""Mean power of a machine [W]."""
GENERATING = {
    "a100-sxm4-40gb": (222.1, 293.0, 320.7, 344.4, 228.8, 264.3, 279.2, 315.8),
    "h100-sxm5-80gb": (367.1, 494.8, 550.3, 594.6, 363.3, 404.2, 435.2, 455.5),
}
"""Mean power of an accelerator by vLLM [W]: Llama 2 7B and Llama 3 8B in batches of 1 to 64."""


def at(name: str, busy: float) -> float:
    """Power of a machine whose accelerators are busy for such a share of the time [W]."""
    host = Catalogue.default().host(name)
    group = Group(name="one", role=Role.TRAIN, host=host, storage=store(), gpus_per_host=8)
    return sum(draw.mean for draw in draws_at(group, accelerators=busy, processors=0.0))


def errors() -> dict[str, float]:
    """Power of a machine at work over what was metered, less 1."""
    told = at("node/dgx-b200", 1.0)
    return {name: told / metered - 1.0 for name, metered in METERED.items()}


def shares(name: str) -> list[float]:
    """Power of an accelerator that generates over what plan has for one at work."""
    gpu = Catalogue.default().gpu(name)
    assert gpu.power is not None
    return [metered / gpu.power for metered in GENERATING[name]]


def test_machines_under_load() -> None:
    """What 8 B200 draw at work is off by 15% in the median of language models, 60% at most."""
    found = errors()
    language = [abs(error) for name, error in found.items() if "llama" in name]
    assert median(language) < 0.15
    assert max(map(abs, found.values())) < 0.60


def test_intervals_hold_all_machines() -> None:
    """What was metered lies in the 80% interval of what is reported."""
    end = math.exp(1.2816 * LOG_SD)
    for error in errors().values():
        assert 1.0 / end < 1.0 / (1.0 + error) < end


def test_machines_lie_between_rest_and_work() -> None:
    """Every metered power lies between that of the machine at rest and at work."""
    idle, full = (at("node/dgx-b200", busy) for busy in (0.0, 1.0))
    assert idle < min(METERED.values())
    assert max(METERED.values()) < full


@pytest.mark.parametrize("name", GENERATING)
def test_accelerators_that_generate(name: str) -> None:
    """Read as milliwatts, all lie between rest and limit; their median is 60 to 80% of it."""
    gpu = Catalogue.default().gpu(name)
    assert gpu.power is not None
    assert gpu.idle_power is not None
    assert gpu.idle_power < min(GENERATING[name])
    assert max(GENERATING[name]) < gpu.power
    assert 0.6 < median(shares(name)) < 0.8


if __name__ == "__main__":
    for called, error in errors().items():
        sys.stdout.write(f"{called:28} {error:+.1%}\n")
    for device in GENERATING:
        low, middle, high = min(shares(device)), median(shares(device)), max(shares(device))
        sys.stdout.write(f"{device:28} {low:.0%} {middle:.0%} {high:.0%} of the limit\n")
