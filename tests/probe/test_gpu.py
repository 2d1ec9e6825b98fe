"""What is asked of an accelerator, on one that takes as long as it says; no GPU is needed."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.probing import DOWN, INSIDE, LAUNCH, PAGEABLE, PEAK, UP, FakeDevice

from simulator.probe import gpu
from simulator.probe.gpu import TorchDevice, all_reduce
from simulator.probe.reading import Unmeasurable
from simulator.schema.accelerators import Precision

SIZE = 2**20


def quiet(_: str) -> None:
    """Say nothing."""


def test_every_figure_follows_from_its_time() -> None:
    """Rates come out as the device has them; a missing format is left out and said."""
    found = gpu.measure(FakeDevice(), 0.1, quiet)
    values = {reading.key: reading.value for reading in found.readings}
    assert values["matmul_bf16"] == pytest.approx(PEAK)
    assert values["matmul_fp32"] == pytest.approx(PEAK / 2.0)
    assert values["matmul_bf16_2048x2048x2048"] == pytest.approx(PEAK / 2.0)
    assert values["memory_bandwidth"] == pytest.approx(INSIDE)
    assert (values["h2d_pinned"], values["d2h_pinned"]) == pytest.approx((UP, DOWN))
    assert (values["h2d_pageable"], values["d2h_pageable"]) == pytest.approx((PAGEABLE, PAGEABLE))
    assert values["launch_time"] == LAUNCH
    assert len(found.warnings) == len(gpu.SHAPES)
    assert all("tf32" in text and "no such format" in text for text in found.warnings)
    assert not any(key.startswith(("matmul_tf32", "all_reduce")) for key in values)


def test_the_best_shape_is_named() -> None:
    """The rate of a format is that of its best shape, and says which."""
    best = gpu.measure(FakeDevice(), 0.1, quiet).get("matmul_bf16")
    assert best is not None
    assert best.note.startswith(f"best of {len(gpu.SHAPES)}: bf16 product of 4096 x 4096")


def test_products_fit_into_a_small_device() -> None:
    """Shapes whose matrices would fill the device are not tried."""
    found = gpu.measure(FakeDevice(memory=400e6), 0.1, quiet)
    shapes = [r.key for r in found.readings if r.key.startswith("matmul_fp16_")]
    assert shapes == ["matmul_fp16_2048x2048x2048", "matmul_fp16_4096x4096x4096"]


def test_time_is_filled_but_bounded() -> None:
    """A short operation is repeated, a long one is not, and never fewer than three times."""
    device = FakeDevice()
    gpu.measure(device, 1e-3, quiet)
    assert {call for call in device.calls if call.startswith("copy")} == {
        "copy 1",
        "copy 2",
        "copy 3",
    }
    gpu.measure(device, 10.0, quiet)
    assert "launch 1000" in device.calls


def test_several_devices_reduce_together() -> None:
    """Bus bandwidth and latency as nccl-tests counts them."""
    found = gpu.measure(FakeDevice(count=8), 0.1, quiet)
    rate, latency = (found.get(f"all_reduce_{key}") for key in ("bandwidth", "latency"))
    assert rate is not None
    assert latency is not None
    assert rate.value == pytest.approx(300e9, rel=0.02)
    assert latency.value == pytest.approx(20e-6, rel=0.01)


class Tensor:
    """What the adapter calls on a tensor."""

    def __init__(self, log: list[str], place: str) -> None:
        self.log, self.place = log, place

    def pin_memory(self) -> Tensor:
        """Page-locked."""
        self.log.append("pin")
        return self

    def copy_(self, other: Tensor, *, non_blocking: bool = False) -> None:
        """Copy."""
        self.log.append(f"{other.place}>{self.place} {non_blocking}")

    def add_(self, number: int) -> None:
        """Add."""
        self.log.append(f"add {number}")


def fake_torch(log: list[str]) -> Any:
    """The part of torch that the adapter uses; each operation takes 1 ms."""

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing
            self.at = 0

        def record(self) -> None:
            self.at = len(log)

        def elapsed_time(self, end: Event) -> float:
            return float(end.at - self.at)

    def make(*_: object, device: str, dtype: str) -> Tensor:
        if dtype == "bfloat16":
            msg = "bf16 is not supported\nmore"
            raise RuntimeError(msg)
        return Tensor(log, device)

    return SimpleNamespace(
        float32="float32",
        float16="float16",
        bfloat16="bfloat16",
        randn=make,
        empty=make,
        ones=make,
        matmul=lambda *_, out: log.append(f"matmul {out.place}"),
        get_float32_matmul_precision=lambda: "before",
        set_float32_matmul_precision=log.append,
        __version__="2.9",
        version=SimpleNamespace(cuda="12.8"),
        cuda=SimpleNamespace(
            Event=Event,
            synchronize=lambda: None,
            get_device_name=lambda index=0: ["Big", "Big", "Small"][index],
            get_device_properties=lambda _: SimpleNamespace(total_memory=SIZE),
            device_count=lambda: 3,
            is_available=lambda: True,
        ),
    )


def test_the_adapter_asks_torch() -> None:
    """Each call makes its tensors first, then times only the operations, in seconds each."""
    log: list[str] = []
    device = TorchDevice(torch=fake_torch(log))
    assert device.copy(SIZE, 4, source="pinned") == pytest.approx(1e-3)
    assert log == ["pin", *["cpu>cuda True"] * 4]
    log.clear()
    assert device.copy(SIZE, 2, target="cpu") == pytest.approx(1e-3)
    assert log == ["cuda>cpu True"] * 2
    log.clear()
    assert device.copy(SIZE, 2) == device.launch(3) == pytest.approx(1e-3)
    assert log == [*["cuda>cuda False"] * 2, *["add 1"] * 3]
    assert (device.product, device.count, device.memory) == ("Big", 2, SIZE)
    assert device.software == "torch 2.9, CUDA 12.8"


@pytest.mark.parametrize(
    ("precision", "setting"), [(Precision.TF32, "high"), (Precision.FP32, "highest")]
)
def test_tf32_is_only_used_when_asked(precision: Precision, setting: str) -> None:
    """Products in fp32 are true ones, and the user's setting comes back."""
    log: list[str] = []
    device = TorchDevice(torch=fake_torch(log))
    assert device.multiply(precision, (8, 8, 8), 2) == pytest.approx(1e-3)
    assert log == [setting, "matmul cuda", "matmul cuda", "before"]


def test_what_torch_refuses_is_unsupported() -> None:
    """A RuntimeError of torch becomes a reason in one line, and the setting comes back."""
    log: list[str] = []
    with pytest.raises(Unmeasurable, match=r"^bf16 is not supported$"):
        TorchDevice(torch=fake_torch(log)).multiply(Precision.BF16, (8, 8, 8), 1)
    assert log[-1] == "before"


def test_no_torch_and_no_device_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named; a device that is there is taken."""
    monkeypatch.setattr(gpu, "find_spec", lambda _: None)
    assert gpu.find() == "PyTorch is not installed"
    torch = fake_torch([])
    monkeypatch.setattr(gpu, "find_spec", lambda _: True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert isinstance(gpu.find(), TorchDevice)
    torch.cuda.is_available = lambda: False
    assert gpu.find() == "PyTorch 2.9 finds no CUDA device"


def test_processes_reduce_together() -> None:
    """Two processes sum over gloo; more bytes take longer."""
    pytest.importorskip("torch.distributed", reason="torch is an extra: pip install '.[torch]'")
    sizes = (2.0**12, 2.0**24)
    found = all_reduce(sizes, 3, 2, "gloo")
    assert 0.0 < found[sizes[0]] < found[sizes[1]]


def test_processes_that_fail_are_said() -> None:
    """A backend that doesn't exist is a reason, not a hang."""
    pytest.importorskip("torch.distributed", reason="torch is an extra: pip install '.[torch]'")
    with pytest.raises(Unmeasurable):
        all_reduce((2.0**12,), 3, 2, "no-such-backend")


def test_without_torch_an_all_reduce_is_unsupported() -> None:
    """Where a process finds no torch, the reason comes back."""
    if gpu.find_spec("torch") is not None:
        pytest.skip("torch is installed")
    with pytest.raises(Unmeasurable, match="No module named 'torch'"):
        all_reduce((2.0**12,), 3, 1, "gloo")
