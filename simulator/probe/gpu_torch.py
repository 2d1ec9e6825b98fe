"""An accelerator by PyTorch and CUDA; torch is imported when one is looked for, not before.

Written to the documented interface of torch 2 (torch.cuda, torch.distributed).
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final, TypeAlias

from simulator import units
from simulator.probe.gpu import Unsupported
from simulator.schema.precision import Precision
from simulator.units import Bytes, Seconds

PATIENCE: Final = 120.0
"""How long processes of an all-reduce may take in all [s]."""
_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_NUMBER: Final = 4.0
"""Bytes of an fp32 number."""
_WARM: Final = 3
_TYPES: Final = {
    Precision.FP32: "float32",
    Precision.TF32: "float32",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
}

Operation: TypeAlias = Callable[[], object]


def find() -> TorchDevice | str:
    """The machine's first CUDA device, or why there is none to measure."""
    if find_spec("torch") is None:
        return "PyTorch is not installed"
    torch = import_module("torch")
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no CUDA device"
    return TorchDevice(torch=torch)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDevice:
    """The first CUDA device of this process; see `gpu.Device`."""

    torch: Any
    """The module; it has no types here."""

    @property
    def product(self) -> str:
        """As the driver names it."""
        return str(self.torch.cuda.get_device_name(0))

    @property
    def memory(self) -> Bytes:
        """Memory it has."""
        return float(self.torch.cuda.get_device_properties(0).total_memory)

    @property
    def count(self) -> int:
        """Devices of the same name that this process sees."""
        cuda = self.torch.cuda
        names = [cuda.get_device_name(index) for index in range(cuda.device_count())]
        return names.count(names[0])

    @property
    def software(self) -> str:
        """Versions of torch and of what it was built with."""
        return f"torch {self.torch.__version__}, CUDA {self.torch.version.cuda}"

    def multiply(self, precision: Precision, shape: tuple[int, int, int], repeats: int) -> Seconds:
        """Multiply two matrices of random numbers: constant ones draw less power and run faster."""
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

    def copy(self, size: Bytes, repeats: int) -> Seconds:
        """Copy within device memory."""

        def prepare() -> Operation:
            source, target = self._buffer(size, "cuda"), self._buffer(size, "cuda")
            return lambda: target.copy_(source)

        return self._timed(prepare, repeats)

    def upload(self, size: Bytes, repeats: int, *, pinned: bool) -> Seconds:
        """Copy from the host."""

        def prepare() -> Operation:
            source, target = self._buffer(size, "cpu", pinned=pinned), self._buffer(size, "cuda")
            return lambda: target.copy_(source, non_blocking=True)

        return self._timed(prepare, repeats)

    def download(self, size: Bytes, repeats: int, *, pinned: bool) -> Seconds:
        """Copy to the host."""

        def prepare() -> Operation:
            source, target = self._buffer(size, "cuda"), self._buffer(size, "cpu", pinned=pinned)
            return lambda: target.copy_(source, non_blocking=True)

        return self._timed(prepare, repeats)

    def launch(self, repeats: int) -> Seconds:
        """Add one to a single number, over and over."""

        def prepare() -> Operation:
            number = self._buffer(_NUMBER, "cuda")
            return lambda: number.add_(1)

        return self._timed(prepare, repeats)

    def all_reduce(self, sizes: tuple[Bytes, ...], repeats: int) -> Mapping[Bytes, Seconds]:
        """Sum over all devices, a process each, by NCCL."""
        self.torch.cuda.empty_cache()
        return all_reduce(sizes, repeats, self.count, "nccl")

    def _buffer(self, size: Bytes, device: str, *, pinned: bool = False) -> Any:  # noqa: ANN401 - a tensor
        numbers = max(1, int(size / _NUMBER))
        ones = self.torch.ones(numbers, device=device, dtype=self.torch.float32)
        return ones.pin_memory() if pinned else ones

    def _timed(self, prepare: Callable[[], Operation], repeats: int) -> Seconds:
        """Mean time of an operation between two events on the device's own clock.

        What the device lacks, and memory that runs out, are both a RuntimeError of torch.
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
            raise Unsupported(_first_line(error)) from error
        return float(start.elapsed_time(end)) * _MILLISECOND / repeats


def all_reduce(
    sizes: tuple[Bytes, ...], repeats: int, ranks: int, backend: str
) -> Mapping[Bytes, Seconds]:
    """Time of an all-reduce by message size, over processes of this machine.

    Parameters
    ----------
    sizes : tuple of float
        Message sizes [B].
    repeats : int
        How often each is done.
    ranks : int
        Processes; with ``nccl`` each takes the device of its number.
    backend : str
        One of torch.distributed: ``nccl``, or ``gloo`` without accelerators.

    Raises
    ------
    Unsupported
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
            wait([ours, *(process.sentinel for process in processes)], PATIENCE)
            found = ours.recv() if ours.poll(1.0) else "a process ended before its time"
        finally:
            for process in processes:
                process.terminate()
                process.join()
    if isinstance(found, str):
        raise Unsupported(found)
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
    """One process of an all-reduce; the first one reports."""
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
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        pipe.send(f"{type(error).__name__}: {_first_line(error)}")


def _message_time(
    torch: Any,  # noqa: ANN401 - the module; it has no types here
    group: Any,  # noqa: ANN401 - the module; it has no types here
    size: Bytes,
    repeats: int,
    backend: str,
) -> Seconds:
    """Mean time of one all-reduce of `size`, after a few that warm up [s]."""
    on_device = backend == "nccl"
    message = torch.ones(max(1, int(size / _NUMBER)), device="cuda" if on_device else "cpu")
    wait_for_device = torch.cuda.synchronize if on_device else bool
    took = 0.0
    for count in (_WARM, repeats):
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
