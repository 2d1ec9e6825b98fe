"""One run of one loader in a process of its own; prints one JSON object."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

import psutil
import torch
from torch.utils.data import DataLoader, SequentialSampler

import images

KIB = 1024
SPARE = 4  # batches past the first round of prefetching that aren't timed
MEMORY_SAMPLES = 3


def memory() -> dict[str, float]:
    """PSS and RSS [B] of this process and all its children, by kind of page."""
    main = psutil.Process()
    tree = [main, *main.children(recursive=True)]
    total: dict[str, float] = {}
    for process in tree:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        for line in text.splitlines()[1:]:
            name, value = line.split()[0].rstrip(":"), int(line.split()[1]) * KIB
            total[name] = total.get(name, 0) + value
            if name == "Pss" and process.pid == main.pid:
                total["main_Pss"] = value
    shm = os.statvfs("/dev/shm")
    total["Shm_Files"] = (shm.f_blocks - shm.f_bfree) * shm.f_frsize
    keys = ("Pss", "Shm_Files", "Rss", "Pss_Anon", "Pss_File", "Pss_Shmem", "main_Pss")
    return {key.lower(): total[key] for key in keys}


def children_cpu_s() -> float:
    """CPU seconds used so far by the living children."""
    times = [child.cpu_times() for child in psutil.Process().children()]
    return sum(t.user + t.system for t in times)


class Rounds(SequentialSampler):
    """Draws `count` indices in a seeded order that starts over when used up."""

    def __init__(self, size: int, count: int, seed: int) -> None:
        self.size, self.count, self.seed = size, count, seed

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.randperm(self.size, generator=generator).tolist()
        return (order[i % self.size] for i in range(self.count))


def run(job: dict) -> dict:
    """Run the loader of `job` and time every batch of the steady part."""
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    workers, batch, prefetch = job["workers"], job["batch"], job["prefetch"]
    step_s = job["step_s"]
    base = memory()
    warm = workers * prefetch + SPARE
    timed, tail = job["timed"], workers * prefetch + MEMORY_SAMPLES
    data = images.JpegFolder(Path(job["folder"]))
    loader = DataLoader(
        data,
        batch_size=batch,
        sampler=Rounds(len(data), (warm + timed + tail) * batch, job["seed"]),
        num_workers=workers,
        prefetch_factor=prefetch if workers else None,
    )
    waits, naps, memories = [], [], []
    paused = 0.0
    clock = time.perf_counter
    start = clock()
    iterator = iter(loader)
    got = next(iterator)
    first_s = clock() - start
    if step_s:
        time.sleep(step_s)
    for _ in range(warm - 1):
        got = next(iterator)
        if step_s:
            time.sleep(step_s)
    cpu0, workers0 = time.process_time(), children_cpu_s()
    begin = clock()
    for _ in range(timed):
        a = clock()
        got = next(iterator)
        b = clock()
        if step_s:
            time.sleep(step_s)
        waits.append(b - a)
        naps.append(clock() - b)
    elapsed = clock() - begin
    cpu1, workers1 = time.process_time(), children_cpu_s()
    for index in range(tail):
        if index < MEMORY_SAMPLES:
            a = clock()
            memories.append(memory())
            paused += clock() - a
        got = next(iterator)
        if step_s:
            time.sleep(step_s)
    epoch_s = clock() - start - paused
    del got
    result = {
        "mean_step_s": elapsed / timed,
        "mean_wait_s": statistics.fmean(waits),
        "median_wait_s": statistics.median(waits),
        "stdev_wait_s": statistics.stdev(waits),
        "mean_sleep_s": statistics.fmean(naps),
        "main_cpu_s_per_step": (cpu1 - cpu0) / timed,
        "workers_cpu_s_per_step": (workers1 - workers0) / timed,
        "first_batch_s": first_s,
        "epoch_s": epoch_s,
        "epoch_batches": warm + timed + tail,
        "timed_batches": timed,
    }
    for key in memories[0]:
        values = [sample[key] for sample in memories]
        result[f"{key}_bytes"] = statistics.median(values)
    result["max_pss_bytes"] = max(sample["pss"] for sample in memories)
    result["base_pss_bytes"] = base["pss"]
    result["base_rss_bytes"] = base["rss"]
    return result


def hot_loop(job: dict) -> dict:
    """Time reading, decoding and augmenting by themselves, per sample."""
    torch.set_num_threads(1)
    data = images.JpegFolder(Path(job["folder"]))
    paths = data.paths[: job["samples"]]
    clock = time.perf_counter
    a = clock()
    contents = [images.read(path) for path in paths]
    b = clock()
    decoded_s = augmented_s = 0.0
    for content in contents:
        c = clock()
        image = images.decode(content)
        d = clock()
        images.augment(image)
        decoded_s += d - c
        augmented_s += clock() - d
    n = len(paths)
    return {
        "read_s": (b - a) / n,
        "decode_s": decoded_s / n,
        "augment_s": augmented_s / n,
    }


def naps(job: dict) -> dict:
    """Time `time.sleep` over its argument."""
    over = []
    for _ in range(job["count"]):
        a = time.perf_counter()
        time.sleep(job["step_s"])
        over.append(time.perf_counter() - a - job["step_s"])
    return {"mean_s": statistics.fmean(over), "median_s": statistics.median(over)}


KINDS = {"loader": run, "hot_loop": hot_loop, "naps": naps}

if __name__ == "__main__":
    work = json.loads(sys.argv[1])
    print(json.dumps(KINDS[work["kind"]](work)), flush=True)
    os._exit(0) if work.get("hard_exit") else None
