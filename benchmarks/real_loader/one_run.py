"""One run of one loader in a process of its own: a job as JSON in, figures as JSON out."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import images
import psutil
import torch
from torch.utils.data import DataLoader, Sampler

Job = dict[str, float]
KIB = 1024
SPARE = 4
"""Batches after the first round of prefetched ones that are not timed either."""
MEMORY_SAMPLES = 3
FIELDS = ("Pss", "Rss", "Pss_Anon", "Pss_File", "Pss_Shmem")


def memory() -> dict[str, float]:
    """Memory of this process and its children together, and the files in /dev/shm [B].

    A batch that no process has mapped (it waits in the queue) is in no PSS, but in /dev/shm.
    """
    main = psutil.Process()
    total = dict.fromkeys(FIELDS, 0.0)
    for process in (main, *main.children(recursive=True)):
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        for line in text.splitlines()[1:]:
            name, value = line.split()[:2]
            if name.rstrip(":") in total:
                total[name.rstrip(":")] += int(value) * KIB
            if name == "Pss:" and process.pid == main.pid:
                total["main_Pss"] = int(value) * KIB
    shared = os.statvfs("/dev/shm")  # noqa: S108 - where torch puts batches
    total["shm_files"] = (shared.f_blocks - shared.f_bfree) * shared.f_frsize
    return {f"{name.lower()}_bytes": value for name, value in total.items()}


def workers_cpu_s() -> float:
    """CPU seconds used so far by the living workers."""
    times = [child.cpu_times() for child in psutil.Process().children()]
    return sum(t.user + t.system for t in times)


class Rounds(Sampler[int]):
    """Draws `count` indices in a seeded order that starts over when it is used up."""

    def __init__(self, size: int, count: int, seed: int) -> None:
        self.size, self.count, self.seed = size, count, seed

    def __len__(self) -> int:
        """How many are drawn."""
        return self.count

    def __iter__(self) -> Iterator[int]:
        """The indices."""
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.randperm(self.size, generator=generator).tolist()
        return (order[i % self.size] for i in range(self.count))


class Consumer:
    """Takes batches and sleeps; keeps the latest batch as a training loop does."""

    def __init__(self, loader: DataLoader, sleep_s: float) -> None:
        self.sleep_s = sleep_s
        self.batches = iter(loader)
        self.latest: object = None

    def step(self) -> tuple[float, float]:
        """Waiting time and sleeping time of one step [s]."""
        start = time.perf_counter()
        self.latest = next(self.batches)
        got = time.perf_counter()
        if self.sleep_s:
            time.sleep(self.sleep_s)
        return got - start, time.perf_counter() - got


def loader_run(job: Job, folder: Path) -> dict[str, float]:
    """A whole epoch; the steps between its start and its end are timed."""
    torch.set_num_threads(1)
    torch.manual_seed(int(job["seed"]))
    workers, batch, timed = (int(job[key]) for key in ("workers", "batch", "timed"))
    base, data = memory(), images.JpegFolder(folder)
    ahead = workers * int(job["prefetch"])
    warm, tail = ahead + SPARE, ahead + MEMORY_SAMPLES
    steps = warm + timed + tail
    loader = DataLoader(
        data,
        batch_size=batch,
        sampler=Rounds(len(data), steps * batch, int(job["seed"])),
        num_workers=workers,
        prefetch_factor=int(job["prefetch"]) if workers else None,
    )
    start = time.perf_counter()
    consumer = Consumer(loader, job["step_s"])
    first_s = consumer.step()[0]
    for _ in range(warm - 1):
        consumer.step()
    found = {"first_batch_s": first_s} | steady(consumer, timed)
    samples, paused = [], 0.0
    for index in range(tail):
        asked = time.perf_counter()
        if index < MEMORY_SAMPLES:
            samples.append(memory())
        paused += time.perf_counter() - asked
        consumer.step()
    found["epoch_s"] = time.perf_counter() - start - paused
    found |= {"epoch_batches": steps, "timed_batches": timed}
    found |= {key: statistics.median(s[key] for s in samples) for key in samples[0]}
    found["max_pss_bytes"] = max(s["pss_bytes"] for s in samples)
    return found | {f"base_{key}": base[key] for key in ("pss_bytes", "rss_bytes")}


def steady(consumer: Consumer, count: int) -> dict[str, float]:
    """Times of `count` steps [s], and CPU time of main process and workers a step [s]."""
    main, workers, start = time.process_time(), workers_cpu_s(), time.perf_counter()
    steps = [consumer.step() for _ in range(count)]
    elapsed = time.perf_counter() - start
    main, workers = time.process_time() - main, workers_cpu_s() - workers
    waits, sleeps = zip(*steps, strict=True)
    return {
        "mean_step_s": elapsed / count,
        "mean_wait_s": statistics.fmean(waits),
        "median_wait_s": statistics.median(waits),
        "stdev_wait_s": statistics.stdev(waits),
        "mean_sleep_s": statistics.fmean(sleeps),
        "main_cpu_s_per_step": main / count,
        "workers_cpu_s_per_step": workers / count,
    }


def hot_loop(job: Job, folder: Path) -> dict[str, float]:
    """Reading, decoding and augmenting by themselves, a sample [s]."""
    torch.set_num_threads(1)
    paths = images.JpegFolder(folder).paths[: int(job["samples"])]
    start = time.perf_counter()
    contents = [images.read(path) for path in paths]
    spent = {"read_s": time.perf_counter() - start, "decode_s": 0.0, "augment_s": 0.0}
    for content in contents:
        start = time.perf_counter()
        image = images.decode(content)
        decoded = time.perf_counter()
        images.augment(image)
        spent["decode_s"] += decoded - start
        spent["augment_s"] += time.perf_counter() - decoded
    return {key: seconds / len(paths) for key, seconds in spent.items()}


def naps(job: Job, _folder: Path) -> dict[str, float]:
    """How much longer `time.sleep` takes than asked [s]."""
    over = []
    for _ in range(int(job["count"])):
        start = time.perf_counter()
        time.sleep(job["step_s"])
        over.append(time.perf_counter() - start - job["step_s"])
    return {"mean_s": statistics.fmean(over), "median_s": statistics.median(over)}


KINDS = {"loader": loader_run, "hot_loop": hot_loop, "naps": naps}

if __name__ == "__main__":
    kind, where, text = sys.argv[1:]
    print(json.dumps(KINDS[kind](json.loads(text), Path(where))))
