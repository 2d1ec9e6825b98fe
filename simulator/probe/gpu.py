"""GPU: matrix products, device memory, copies to and from the host, kernel launches, all-reduce.

The measurements use the interface `Device`. `TorchDevice` implements it with PyTorch and CUDA (the
documented interface of torch 2: torch.cuda, torch.distributed); torch is imported only when `find`
searches for a device.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from simulator import units
from simulator.probe.reading import Found, Reading, Say, Unmeasurable
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
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
"""Number formats to measure."""
TRANSFER: Final = units.parse("256 MiB", units.BYTE)
SMALL_MESSAGE: Final = units.parse("4 KiB", units.BYTE)
_MEMORY_SHARE: Final = 0.125
"""Maximum share of device memory for one operand."""
_MAX_REPEATS: Final = 1000
_COPIES: Final = 2.0


class Device(Protocol):
    """Interface of one accelerator. Each method returns the mean time of `repeats` operations [s].

    A method raises `Unmeasurable` if the device does not support the operation.
    """

    @property
    def product(self) -> str:
        """Product name reported by the driver."""

    @property
    def memory(self) -> Bytes:
        """Total memory of the device [B]."""

    @property
    def count(self) -> int:
        """Number of identical accelerators in the machine."""

    @property
    def software(self) -> str:
        """Driver and libraries with their versions."""

    def multiply(self, precision: Precision, shape: tuple[int, int, int], repeats: int) -> Seconds:
        """Measure the product of an (m, k) and a (k, n) matrix; `shape` is (m, n, k)."""

    def copy(
        self, size: Bytes, repeats: int, source: str = "cuda", target: str = "cuda"
    ) -> Seconds:
        """Measure a copy of `size` bytes between memories.

        Memories are ``cuda`` (device), ``cpu`` (pageable host memory) and ``pinned`` (page-locked).
        """

    def launch(self, repeats: int) -> Seconds:
        """Measure a kernel with next to no work."""

    def all_reduce(self, sizes: tuple[Bytes, ...], repeats: int) -> Mapping[Bytes, Seconds]:
        """Measure an all-reduce over all devices of the machine, for each message size [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One reading: `amount` of work over its time, or the time itself if `amount` is None."""

    key: str
    unit: units.Unit
    note: str
    amount: float | None
    call: Callable[[int], Seconds]


def measure(device: Device, seconds: Seconds, say: Say) -> Found:
    """Measure one accelerator, and an all-reduce over all accelerators of the machine.

    Parameters
    ----------
    device : Device
        The first accelerator.
    seconds : float
        Total time [s].
    say : callable
        Called with each line of progress.
    """
    cases = [*_products(device), *_copies(device)]
    each = seconds / (len(cases) + 1)
    readings, warnings = [], []
    for case in cases:
        say(f"gpu: {case.note}")
        try:
            readings.append(_read(case, each))
        except Unmeasurable as error:
            warnings.append(f"{case.key} was not measured: {error}")
    try:
        readings += _together(device, say)
    except Unmeasurable as error:
        warnings.append(f"all-reduce was not measured: {error}")
    return Found(readings=(*_best(readings), *readings), warnings=tuple(warnings))


def _products(device: Device) -> Iterator[_Case]:
    for precision in PRECISIONS:
        for shape in SHAPES:
            m, n, k = shape
            largest = max(m * n, m * k, n * k) * precision.bytes_per_element
            if largest > _MEMORY_SHARE * device.memory:
                continue
            yield _Case(
                key=f"matmul_{precision}_{m}x{n}x{k}",
                unit=units.FLOP_PER_SECOND,
                note=f"{precision} product of {m} x {k} and {k} x {n}",
                amount=2.0 * m * n * k,
                call=partial(device.multiply, precision, shape),
            )


def _copies(device: Device) -> Iterator[_Case]:
    size = min(TRANSFER, _MEMORY_SHARE * device.memory)
    shown = units.show(size, units.BYTE)

    def case(key: str, note: str, amount: float | None, call: Callable[[int], Seconds]) -> _Case:
        unit = units.SECOND if amount is None else units.BYTE_PER_SECOND
        return _Case(key=key, unit=unit, note=note, amount=amount, call=call)

    text = f"copy of {shown} within device memory, read plus written"
    yield case("memory_bandwidth", text, _COPIES * size, partial(device.copy, size))
    for host, end, kind in (("pinned", "pinned", "page-locked"), ("cpu", "pageable", "ordinary")):
        up, down = partial(device.copy, size, source=host), partial(device.copy, size, target=host)
        yield case(f"h2d_{end}", f"copy of {shown} from {kind} host memory", size, up)
        yield case(f"d2h_{end}", f"copy of {shown} to {kind} host memory", size, down)
    yield case("launch_time", "one small kernel after another", None, device.launch)


def _read(case: _Case, seconds: Seconds) -> Reading:
    """Measure one case: warm up, estimate the duration from two repeats, then fill the time."""
    case.call(1)
    estimate = max(case.call(2), seconds / _MAX_REPEATS)
    took = case.call(max(3, min(_MAX_REPEATS, int(seconds / estimate))))
    value = took if case.amount is None else case.amount / took
    return Reading("gpu", case.key, value, case.unit, case.note)


def _best(readings: list[Reading]) -> Iterator[Reading]:
    """Yield the highest rate of each number format over the matrix shapes."""
    for precision in PRECISIONS:
        shapes = [r for r in readings if r.key.startswith(f"matmul_{precision}_")]
        best = max(shapes, key=lambda reading: reading.value, default=None)
        if best is not None:
            note = f"best of {len(shapes)}: {best.note}"
            yield Reading("gpu", f"matmul_{precision}", best.value, best.unit, note)


def _together(device: Device, say: Say) -> list[Reading]:
    if device.count < 2:  # noqa: PLR2004 - one has no peer
        return []
    say(f"gpu: all-reduce over {device.count}")
    sizes = (SMALL_MESSAGE, min(TRANSFER, _MEMORY_SHARE * device.memory))
    times = device.all_reduce(sizes, 20)
    small, large = (times[size] for size in sizes)
    # Bus bandwidth as in nccl-tests: the load of each link, independent of the number of ranks.
    bus = sizes[1] / large * 2.0 * (device.count - 1) / device.count
    notes = [f"{device.count} devices, {units.show(size, units.BYTE)}" for size in sizes]
    bandwidth = f"{notes[1]}, bus bandwidth"
    return [
        Reading("gpu", "all_reduce_latency", small, units.SECOND, notes[0]),
        Reading("gpu", "all_reduce_bandwidth", bus, units.BYTE_PER_SECOND, bandwidth),
    ]


ALL_REDUCE_TIMEOUT: Final = 120.0
"""Timeout of all processes of an all-reduce [s]."""
_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_BYTES_PER_VALUE: Final = 4.0
"""Size of an fp32 number [B]."""
_WARM_UP: Final = 3
_TYPES: Final = {
    Precision.FP32: "float32",
    Precision.TF32: "float32",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
}

Operation: TypeAlias = Callable[[], object]


def find() -> TorchDevice | str:
    """Return the machine's first CUDA device, or the reason why there is none."""
    if find_spec("torch") is None:
        return "PyTorch is not installed"
    torch = import_module("torch")
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no CUDA device"
    return TorchDevice(torch=torch)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDevice:
    """First CUDA device of this process; see `Device`."""

    torch: Any
    """The torch module, untyped."""

    @property
    def product(self) -> str:
        """Product name reported by the driver."""
        return str(self.torch.cuda.get_device_name(0))

    @property
    def memory(self) -> Bytes:
        """Total memory of the device [B]."""
        return float(self.torch.cuda.get_device_properties(0).total_memory)

    @property
    def count(self) -> int:
        """Number of devices of the same name visible to this process."""
        cuda = self.torch.cuda
        names = [cuda.get_device_name(index) for index in range(cuda.device_count())]
        return names.count(names[0])

    @property
    def software(self) -> str:
        """Versions of torch and of the CUDA that it was built with."""
        return f"torch {self.torch.__version__}, CUDA {self.torch.version.cuda}"

    def multiply(self, precision: Precision, shape: tuple[int, int, int], repeats: int) -> Seconds:
        """Measure a product of random matrices; constant ones draw less power and run faster."""
        torch, (m, n, k) = self.torch, shape
        kind = getattr(torch, _TYPES[precision])

        def prepare() -> Operation:
            a = torch.randn(m, k, device="cuda", dtype=kind)
            b = torch.randn(k, n, device="cuda", dtype=kind)
            out = torch.empty(m, n, device="cuda", dtype=kind)
            return lambda: torch.matmul(a, b, out=out)

        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if precision is Precision.TF32 else "highest")
        try:
            return self._timed(prepare, repeats)
        finally:
            torch.set_float32_matmul_precision(before)

    def copy(
        self, size: Bytes, repeats: int, source: str = "cuda", target: str = "cuda"
    ) -> Seconds:
        """Measure a copy between memories; copies from and to the host are asynchronous."""

        def prepare() -> Operation:
            here, there = self._buffer(size, source), self._buffer(size, target)
            if source == target:
                return lambda: there.copy_(here)
            return lambda: there.copy_(here, non_blocking=True)

        return self._timed(prepare, repeats)

    def launch(self, repeats: int) -> Seconds:
        """Measure an addition of one to a tensor of one element."""

        def prepare() -> Operation:
            number = self._buffer(_BYTES_PER_VALUE, "cuda")
            return lambda: number.add_(1)

        return self._timed(prepare, repeats)

    def all_reduce(self, sizes: tuple[Bytes, ...], repeats: int) -> Mapping[Bytes, Seconds]:
        """Measure an all-reduce over all devices with NCCL, one process per device."""
        self.torch.cuda.empty_cache()
        return all_reduce(sizes, repeats, self.count, "nccl")

    def _buffer(self, size: Bytes, memory: str) -> Any:  # noqa: ANN401 - a tensor
        device = "cuda" if memory == "cuda" else "cpu"
        numbers = max(1, int(size / _BYTES_PER_VALUE))
        ones = self.torch.ones(numbers, device=device, dtype=self.torch.float32)
        return ones.pin_memory() if memory == "pinned" else ones

    def _timed(self, prepare: Callable[[], Operation], repeats: int) -> Seconds:
        """Return the mean time of an operation between two CUDA events [s].

        A missing feature and exhausted memory both raise RuntimeError in torch.
        """
        cuda = self.torch.cuda
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        try:
            operation = prepare()
            cuda.synchronize()
            start.record()
            for _ in range(repeats):
                operation()
            end.record()
            cuda.synchronize()
        except RuntimeError as error:
            raise Unmeasurable(_first_line(error)) from error
        return float(start.elapsed_time(end)) * _MILLISECOND / repeats


def all_reduce(
    sizes: tuple[Bytes, ...], repeats: int, ranks: int, backend: str
) -> Mapping[Bytes, Seconds]:
    """Measure an all-reduce over processes of this machine; return the mean time by message size.

    Parameters
    ----------
    sizes : tuple of float
        Message sizes [B].
    repeats : int
        Number of repeats for each size.
    ranks : int
        Number of processes; with ``nccl`` process i uses device i.
    backend : str
        Backend of torch.distributed: ``nccl``, or ``gloo`` without accelerators.

    Raises
    ------
    Unmeasurable
        If a process fails or hangs.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="plan-probe-") as folder:
        store = (Path(folder) / "store").as_uri()
        processes = [
            context.Process(
                target=_rank,
                args=(rank, ranks, backend, store, sizes, repeats, theirs),
                daemon=True,
            )
            for rank in range(ranks)
        ]
        try:
            for process in processes:
                process.start()
            wait([ours, *(process.sentinel for process in processes)], ALL_REDUCE_TIMEOUT)
            found = ours.recv() if ours.poll(1.0) else "a process ended before its time"
        finally:
            for process in processes:
                process.terminate()
                process.join()
    if isinstance(found, str):
        raise Unmeasurable(found)
    return dict(zip(sizes, found, strict=True))


def _rank(  # noqa: PLR0913, PLR0917 - arguments of a process
    rank: int,
    ranks: int,
    backend: str,
    store: str,
    sizes: tuple[Bytes, ...],
    repeats: int,
    pipe: Any,  # noqa: ANN401 - multiprocessing's own types have no public names
) -> None:
    """Run in one process of an all-reduce; rank 0 sends the times, a failing rank its error."""
    try:
        torch = import_module("torch")
        group = import_module("torch.distributed")
        if backend == "nccl":
            torch.cuda.set_device(rank)
        group.init_process_group(backend, init_method=store, rank=rank, world_size=ranks)
        times = [_message_time(torch, group, size, repeats, backend) for size in sizes]
        if rank == 0:
            pipe.send(times)
        group.barrier()
        group.destroy_process_group()
    except Exception as error:  # noqa: BLE001 - the parent reports it
        pipe.send(f"{type(error).__name__}: {_first_line(error)}")


def _message_time(
    torch: Any,  # noqa: ANN401 - the module; it has no types here
    group: Any,  # noqa: ANN401 - the module; it has no types here
    size: Bytes,
    repeats: int,
    backend: str,
) -> Seconds:
    """Return the mean time of one all-reduce of `size` bytes after warm-up [s]."""
    on_device = backend == "nccl"
    message = torch.ones(
        max(1, int(size / _BYTES_PER_VALUE)), device="cuda" if on_device else "cpu"
    )
    wait_for_device = torch.cuda.synchronize if on_device else bool
    took = 0.0
    for count in (_WARM_UP, repeats):
        group.barrier()
        wait_for_device()
        start = time.perf_counter()
        for _ in range(count):
            group.all_reduce(message)
        wait_for_device()
        took = (time.perf_counter() - start) / count
    return took


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
