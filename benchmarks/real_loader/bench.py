"""Runs of `one_run.py` in fresh processes, with the load that others put on the machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType

ONE_RUN = Path(__file__).parent / "one_run.py"
SPIN = "while True: pass"
NOISY = 0.05
"""Cores that others may keep busy during a run that counts."""


def busy_s() -> tuple[float, float]:
    """Busy and stolen CPU seconds of the whole machine since it started."""
    fields = Path("/proc/stat").read_text().split("\n", maxsplit=1)[0].split()[1:]
    user, nice, system, _idle, _wait, irq, soft, steal = (int(x) for x in fields[:8])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / tick, steal / tick


def own_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, whose))


def start(kind: str, folder: Path, job: dict[str, float]) -> subprocess.Popen[str]:
    """A fresh process at work on a job."""
    command = [sys.executable, "-W", "ignore", str(ONE_RUN), kind, str(folder), json.dumps(job)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - own script


def finish(process: subprocess.Popen[str]) -> dict[str, float]:
    """What the process found."""
    text = process.communicate()[0]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    found: dict[str, float] = json.loads(text.splitlines()[-1])
    return found


def run(kind: str, folder: Path, job: dict[str, float]) -> dict[str, float]:
    """Do one job; what it found, and what the machine did besides meanwhile [cores]."""
    (busy, steal), own, began = busy_s(), own_s(), time.perf_counter()
    found = finish(start(kind, folder, job))
    took = time.perf_counter() - began
    busy, steal = (now - then for now, then in zip(busy_s(), (busy, steal), strict=True))
    others = max(0.0, busy - (own_s() - own)) / took
    return found | {
        "other_load_cores": others,
        "stolen_cores": steal / took,
        "process_s": took,
    }


def loader_job(seed: int, workers: int, batch: int, **more: float) -> dict[str, float]:
    """A loader whose consumer takes batches as fast as it can, unless `more` says otherwise."""
    job = {"seed": seed, "workers": workers, "batch": batch, "prefetch": 2}
    return job | {"step_s": 0.0, "timed": 24} | more


def wait_for_quiet(end: float) -> None:
    """Wait until the machine has been idle for a second, at most until `end` (monotonic) [s]."""
    while time.monotonic() < end:
        before, _ = busy_s()
        time.sleep(1.0)
        if busy_s()[0] - before < NOISY:
            return
        time.sleep(1.0)


class Spinners:
    """Run a number of processes that only compute, for the time of a ``with``."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> None:
        command = [sys.executable, "-c", SPIN]
        self.running = [subprocess.Popen(command) for _ in range(self.count)]  # noqa: S603 - fixed

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.running:
            process.kill()
            process.wait()


def about() -> dict[str, object]:
    """Where, when and with what."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_model": model,
        "logical_cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "pillow", "numpy", "psutil")},
    }
