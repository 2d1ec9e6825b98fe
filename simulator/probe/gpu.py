"""Accelerators: matrix products, device memory, copies to and from the host, launches, all-reduce.

What is measured stands here, and knows no library: `Device` is the little that it needs.
`simulator.probe.gpu_torch` gives it by PyTorch and CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from simulator import units
from simulator.probe.reading import Found, Reading, Say
from simulator.schema.precision import Precision
from simulator.units import Bytes, Seconds

SHAPES: Final = (
    (1 << 11, 1 << 11, 1 << 11),
    (1 << 12, 1 << 12, 1 << 12),
    (1 << 13, 1 << 13, 1 << 13),
    (1 << 14, 1 << 12, 1 << 12),
    (1 << 13, 7 << 12, 1 << 13),
)
"""Rows, columns and inner length of the products: squares, and two of a transformer's layers."""
PRECISIONS: Final = (Precision.FP32, Precision.TF32, Precision.BF16, Precision.FP16)
"""Number formats tried."""
TRANSFER: Final = units.parse("256 MiB", units.BYTE)
SMALL_MESSAGE: Final = units.parse("4 KiB", units.BYTE)
_PART: Final = 0.125
"""Share of the device's memory that one operand may take."""
_MOST: Final = 1000
_COPIES: Final = 2.0


class Device(Protocol):
    """One accelerator. Each call returns the mean time of one of `repeats` operations [s].

    A call raises `Unsupported` where the device cannot do it.
    """

    @property
    def product(self) -> str:
        """As the driver names it."""

    @property
    def memory(self) -> Bytes:
        """Memory it has."""

    @property
    def count(self) -> int:
        """How many of the same the machine has."""

    @property
    def software(self) -> str:
        """Driver and libraries, with versions."""

    def multiply(self, precision: Precision, shape: tuple[int, int, int], repeats: int) -> Seconds:
        """Multiply two matrices."""

    def copy(self, size: Bytes, repeats: int) -> Seconds:
        """Copy within device memory."""

    def upload(self, size: Bytes, repeats: int, *, pinned: bool) -> Seconds:
        """Copy from the host, from page-locked memory or not."""

    def download(self, size: Bytes, repeats: int, *, pinned: bool) -> Seconds:
        """Copy to the host."""

    def launch(self, repeats: int) -> Seconds:
        """Run a kernel that does next to nothing."""

    def all_reduce(self, sizes: tuple[Bytes, ...], repeats: int) -> Mapping[Bytes, Seconds]:
        """Sum over all devices of the machine, by message size."""


class Unsupported(Exception):  # noqa: N818 - says what is the case; the figure is left out
    """The device cannot do this; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One figure: `amount` of work over its time, or the time itself where that is None."""

    key: str
    unit: units.Unit
    note: str
    amount: float | None
    call: Callable[[int], Seconds]


def measure(device: Device, seconds: Seconds, say: Say) -> Found:
    """Everything that one accelerator can be asked, and an all-reduce over all of them.

    Parameters
    ----------
    device : Device
        The first accelerator.
    seconds : float
        Time all of it should take [s].
    say : callable
        Told what is going on.
    """
    cases = [*_products(device), *_copies(device)]
    each = seconds / (len(cases) + 1)
    readings, warnings = [], []
    for case in cases:
        say(f"gpu: {case.note}")
        try:
            readings.append(_read(case, each))
        except Unsupported as error:
            warnings.append(f"{case.key} was not measured: {error}")
    try:
        readings += _together(device, say)
    except Unsupported as error:
        warnings.append(f"all-reduce was not measured: {error}")
    return Found(readings=(*_best(readings), *readings), warnings=tuple(warnings))


def _products(device: Device) -> Iterator[_Case]:
    for precision in PRECISIONS:
        for shape in SHAPES:
            m, n, k = shape
            largest = max(m * n, m * k, n * k) * precision.bytes_per_element
            if largest > _PART * device.memory:
                continue
            yield _Case(
                key=f"matmul_{precision}_{m}x{n}x{k}",
                unit=units.FLOP_PER_SECOND,
                note=f"{precision} product of {m} x {k} and {k} x {n}",
                amount=2.0 * m * n * k,
                call=lambda repeats, p=precision, s=shape: device.multiply(p, s, repeats),  # type: ignore[misc] # a lambda's defaults have no types
            )


def _copies(device: Device) -> Iterator[_Case]:
    size = min(TRANSFER, _PART * device.memory)
    shown = units.show(size, units.BYTE)

    def case(key: str, note: str, amount: float | None, call: Callable[[int], Seconds]) -> _Case:
        unit = units.SECOND if amount is None else units.BYTE_PER_SECOND
        return _Case(key=key, unit=unit, note=note, amount=amount, call=call)

    text = f"copy of {shown} within device memory, read plus written"
    yield case("memory_bandwidth", text, _COPIES * size, lambda n: device.copy(size, n))
    for pinned in (True, False):
        end, kind = ("pinned", "page-locked") if pinned else ("pageable", "ordinary")

        def upload(n: int, p: bool = pinned) -> Seconds:  # noqa: FBT001 - bound here
            return device.upload(size, n, pinned=p)

        def download(n: int, p: bool = pinned) -> Seconds:  # noqa: FBT001 - bound here
            return device.download(size, n, pinned=p)

        yield case(f"h2d_{end}", f"copy of {shown} from {kind} host memory", size, upload)
        yield case(f"d2h_{end}", f"copy of {shown} to {kind} host memory", size, download)
    yield case("launch_time", "one small kernel after another", None, device.launch)


def _read(case: _Case, seconds: Seconds) -> Reading:
    """Warm up once, estimate from a few, then fill the time."""
    case.call(1)
    estimate = max(case.call(2), seconds / _MOST)
    took = case.call(max(3, min(_MOST, int(seconds / estimate))))
    value = took if case.amount is None else case.amount / took
    return Reading(device="gpu", key=case.key, value=value, unit=case.unit, note=case.note)


def _best(readings: list[Reading]) -> Iterator[Reading]:
    """The best shape of each number format."""
    for precision in PRECISIONS:
        shapes = [r for r in readings if r.key.startswith(f"matmul_{precision}_")]
        best = max(shapes, key=lambda reading: reading.value, default=None)
        if best is not None:
            note = f"best of {len(shapes)}: {best.note}"
            key = f"matmul_{precision}"
            yield Reading(device="gpu", key=key, value=best.value, unit=best.unit, note=note)


def _together(device: Device, say: Say) -> list[Reading]:
    if device.count < 2:  # noqa: PLR2004 - one has nobody to talk to
        return []
    say(f"gpu: all-reduce over {device.count}")
    sizes = (SMALL_MESSAGE, min(TRANSFER, _PART * device.memory))
    times = device.all_reduce(sizes, 20)
    small, large = (times[size] for size in sizes)
    # Bus bandwidth as nccl-tests counts it: what each link carries, whatever the number of ranks.
    bus = sizes[1] / large * 2.0 * (device.count - 1) / device.count
    notes = [f"{device.count} devices, {units.show(size, units.BYTE)}" for size in sizes]
    latency = ("all_reduce_latency", small, units.SECOND, notes[0])
    rate = ("all_reduce_bandwidth", bus, units.BYTE_PER_SECOND, f"{notes[1]}, bus bandwidth")
    return [
        Reading(device="gpu", key=key, value=value, unit=unit, note=note)
        for key, value, unit, note in (latency, rate)
    ]
