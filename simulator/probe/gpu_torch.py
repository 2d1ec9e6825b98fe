"""An accelerator by PyTorch and CUDA; torch is imported when one is looked for, not before.

Written to the documented interface of torch 2 (torch.cuda, torch.distributed).
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final

from simulator import units
from simulator.precision import Precision
from simulator.probe.gpu import Unsupported
from simulator.units import Bytes, Seconds

PATIENCE: Final = 120.0
"""How long processes of an all-reduce may take in all [s]."""
_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_NUMBER: Final = 4.0
"""Bytes of an fp32 number."""
_TYPES: Final = {
    Precision.FP32: "float32",
    Precision.TF32: "float32",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
}


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
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if precision is Precision.TF32 else "highest")
        try:
            a = torch.randn(m, k, device="cuda", dtype=kind)
            b = torch.randn(k, n, device="cuda", dtype=kind)
            out = torch.empty(m, n, device="cuda", dtype=kind)
            return self._timed(lambda: torch.matmul(a, b, out=out), repeats)
        finally:
            torch.set_float32_matmul_precision(before)

    def copy(self, size: Bytes, repeats: int) -> Seconds:
        """Copy within device memory."""
        source, target = self._buffer(size, "cuda"), self._buffer(size, "cuda")
        return self._timed(lambda: target.copy_(source), repeats)

    def upload(self, size: Bytes, repeats: int, *, pinned: bool) -> Seconds:
        """Copy from the host."""
        source, target = self._buffer(size, "cpu", pinned=pinned), self._buffer(size, "cuda")
        return self._timed(lambda: target.copy_(source, non_blocking=True), repeats)

    def download(self, size: Bytes, repeats: int, *, pinned: bool) -> Seconds:
        """Copy to the host."""
        source, target = self._buffer(size, "cuda"), self._buffer(size, "cpu", pinned=pinned)
        return self._timed(lambda: target.copy_(source, non_blocking=True), repeats)

    def launch(self, repeats: int) -> Seconds:
        """Add one to a single number, over and over."""
        number = self._buffer(_NUMBER, "cuda")
        return self._timed(lambda: number.add_(1), repeats)

    def all_reduce(self, sizes: tuple[Bytes, ...], repeats: int) -> Mapping[Bytes, Seconds]:
        """Sum over all devices, a process each, by NCCL."""
        self.torch.cuda.empty_cache()
        return all_reduce(sizes, repeats, self.count, "nccl")

    def _buffer(self, size: Bytes, device: str, *, pinned: bool = False) -> Any:  # noqa: ANN401 - a tensor
        numbers = max(1, int(size / _NUMBER))
        ones = self.torch.ones(numbers, device=device, dtype=self.torch.float32)
        return ones.pin_memory() if pinned else ones

    def _timed(self, operation: Callable[[], object], repeats: int) -> Seconds:
        """Mean time of an operation between two events on the device's own clock."""
        cuda = self.torch.cuda
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        try:
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
    import time  # noqa: PLC0415 - beside torch, which is late too

    try:
        torch = import_module("torch")
        group = import_module("torch.distributed")
        device = f"cuda:{rank}" if backend == "nccl" else "cpu"
        if backend == "nccl":
            torch.cuda.set_device(rank)
        group.init_process_group(backend, init_method=store, rank=rank, world_size=ranks)
        times = []
        for size in sizes:
            message = torch.ones(max(1, int(size / _NUMBER)), device=device)
            for count in (3, repeats):
                group.barrier()
                if backend == "nccl":
                    torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(count):
                    group.all_reduce(message)
                if backend == "nccl":
                    torch.cuda.synchronize()
                took = (time.perf_counter() - start) / count
            times.append(took)
        if rank == 0:
            pipe.send(times)
        group.barrier()
        group.destroy_process_group()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells it
        pipe.send(f"{type(error).__name__}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
