"""Invented traces in the exact format of Kineto: a host that launches, a device that works.

A small model of its own of a data-parallel step, not the one under test: layers forward and
backward, a bucket of gradients all-reduced on a stream of its own after each layer's backward
pass, an optimizer that waits for all of them, a copy of the next batch, a loader that takes time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAIN, COPY, TALK = 7, 13, 20


@dataclass(frozen=True, kw_only=True)
class Job:
    """Times in us. A layer's kernel takes ``fixed + per_sample x batch`` forward, twice back."""

    batch: int = 32
    ranks: int = 8
    steps: int = 5
    layers: int = 4
    fixed: float = 4.0
    per_sample: float = 20.0
    optimizer: float = 300.0
    data: float = 50.0
    launch: float = 6.0
    latency: float = 5.0
    gradient: int = 2_000_000
    bandwidth: float = 100e3  # bytes per us: 100 GB/s
    ring_latency: float = 4.0
    sample_bytes: int = 600_000
    copy_rate: float = 25e3
    synchronize: bool = True

    def all_reduce(self, size: float) -> float:
        """Time of a ring all-reduce [us]."""
        n = self.ranks
        return 2 * (n - 1) * self.ring_latency + 2 * (n - 1) / n * size / self.bandwidth


@dataclass
class Tracer:
    """A host's clock, the streams of one device, and the events they leave behind."""

    job: Job
    now: float = 1000.0
    free: dict[int, float] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    number: int = 100

    def host(self, name: str, category: str, start: float, end: float, **args: Any) -> None:
        """Note what the host did."""
        event = {"ph": "X", "cat": category, "name": name, "pid": 4242, "tid": 4242}
        self.events.append(
            event | {"ts": round(start, 3), "dur": round(end - start, 3), "args": args}
        )

    def device(
        self, name: str, time: float, *, stream: int, after: float = 0.0, op: str = "", **args: Any
    ) -> float:
        """Launch work on a stream that may not start before `after`; when it ends."""
        self.number += 1
        number, begin = self.number, self.now
        self.now += self.job.launch
        kind = {COPY: "gpu_memcpy"}.get(stream, "kernel")
        call = "cudaMemcpyAsync" if kind == "gpu_memcpy" else "cudaLaunchKernel"
        if op:
            self.host(op, "cpu_op", begin - 0.5, self.now + 0.5, **{"External id": number})
        self.host(
            call,
            "cuda_runtime",
            begin,
            self.now,
            **{"External id": number, "correlation": number, "cbid": 211},
        )
        start = max(begin + self.job.latency, self.free.get(stream, 0.0), after)
        end = start + time
        self.free[stream] = end
        about = {"External id": number, "device": 0, "context": 1, "stream": stream}
        self.events.append(
            {
                "ph": "X",
                "cat": kind,
                "name": name,
                "pid": 0,
                "tid": stream,
                "ts": round(start, 3),
                "dur": round(time, 3),
                "args": about | {"correlation": number} | args,
            }
        )
        return end

    def synchronize(self) -> None:
        """Wait for all streams."""
        begin = self.now
        self.now = max(self.now + 2.0, *(end + 2.0 for end in self.free.values()))
        self.host("cudaDeviceSynchronize", "cuda_runtime", begin, self.now, correlation=0)


def trace(job: Job | None = None) -> dict[str, Any]:
    """The trace of a job, as the profiler exports it."""
    made = Tracer(job or Job())
    for step in range(made.job.steps):
        begin = made.now
        _step(made)
        name = f"ProfilerStep#{step + 10}"
        made.host(name, "user_annotation", begin, made.now, **{"External id": step + 1})
    events = sorted(made.events, key=lambda event: event["ts"])
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85025554432, "numSms": 132}
        ],
        "cuda_runtime_version": 12080,
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": made.job.ranks},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1790857026000000000,
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 4242, "tid": 0, "args": {"name": "python"}},
            *events,
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1.0},
        ],
        "traceName": "node1_4242.1790857026.pt.trace.json",
    }


def _step(made: Tracer) -> None:
    job = made.job
    if job.data:
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        made.host(name, "user_annotation", made.now, made.now + job.data)
        made.now += job.data
    size = job.batch * job.sample_bytes
    copied = made.device(
        "Memcpy HtoD (Pinned -> Device)",
        size / job.copy_rate,
        stream=COPY,
        op="aten::copy_",
        **{"bytes": size, "memory bandwidth (GB/s)": job.copy_rate / 1e3},
    )
    forward = job.fixed + job.per_sample * job.batch
    for layer in range(job.layers):
        name = f"void gemm_forward_{layer}<float, 128>(float*, int)"
        made.device(name, forward, stream=MAIN, after=copied, op="aten::addmm")
    reduced = 0.0
    for layer in reversed(range(job.layers)):
        name = f"void gemm_backward_{layer}<float, 128>(float*, int)"
        time = 2.0 * (job.fixed + job.per_sample * job.batch)
        done = made.device(name, time, stream=MAIN, op="aten::mm")
        reduced = _all_reduce(made, done, job.gradient * (1 + layer))
    begin = made.now
    made.device(
        "void at::native::multi_tensor_apply_kernel<Adam>(int)",
        job.optimizer,
        stream=MAIN,
        after=reduced,
        op="aten::_foreach_add_",
    )
    made.host("Optimizer.step#AdamW.step", "user_annotation", begin - 1.0, made.now + 1.0)
    if job.synchronize:
        made.synchronize()


def _all_reduce(made: Tracer, after: float, count: int) -> float:
    about = {
        "Collective name": "allreduce",
        "In msg nelems": count,
        "Out msg nelems": count,
        "Group size": made.job.ranks,
        "dtype": "BFloat16",
        "Process Group Name": "0",
    }
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    time = made.job.all_reduce(2.0 * count)
    return made.device(name, time, stream=TALK, after=after, op="record_param_comms", **about)
