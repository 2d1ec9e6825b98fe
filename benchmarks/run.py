"""What `plan` costs: help, a whole run, and simulated steps against a bare simpy loop."""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SCENARIO = "resnet50-imagenet-p4d"
REPEATS = 5
TIMEOUTS = 200_000
START = "<!-- benchmark results: run.py --write fills them in -->\n"
END = "<!-- end of results -->\n"


def plan_command() -> list[str]:
    """Return the installed console script, next to this interpreter or on the path."""
    beside = Path(sys.executable).with_name("plan")
    found = str(beside) if beside.exists() else shutil.which("plan")
    if found is None:
        sys.exit("plan is not installed here: pip install .")
    return [found]


def cost(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command, each the best of `REPEATS` runs."""
    runs = []
    for _ in range(REPEATS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        runs.append((cpu, wall))
    return min(cpu for cpu, _ in runs), min(wall for _, wall in runs)


def rate(work: Callable[[], int]) -> float:
    """How many things a second `work` does, the best of `REPEATS` runs."""
    best = 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        done = work()
        best = max(best, done / (time.perf_counter() - start))
    return best


def timeouts() -> int:
    """One process that does nothing but let simulated time pass."""
    import simpy  # noqa: PLC0415 - only this part needs it

    env = simpy.Environment()

    def clock() -> object:
        for _ in range(TIMEOUTS):
            yield env.timeout(1.0)

    env.process(clock())
    env.run()
    return TIMEOUTS


def stepper() -> Callable[[], int]:
    """A function that predicts the 8-GPU machine once; its files are read here."""
    from simulator.predict import predict  # noqa: PLC0415 - timed apart
    from simulator.reading.scenario import load_scenario  # noqa: PLC0415 - timed apart

    scenario = load_scenario(SCENARIO)
    return lambda: predict(scenario).timing.simulated_steps


def year(spares: int) -> float:
    """CPU seconds of 1,000 simulated runs of a year on 2,048 machines, the best of `REPEATS` runs.

    Rates are those of rsc-1, or of Llama 3 where as many spares as `spares` stand by.
    """
    from simulator.long_run.attempts import simulate_runs  # noqa: PLC0415 - timed apart
    from simulator.schema import long_run  # noqa: PLC0415 - timed apart

    restart = long_run.Restart(detection=60.0, replacement=0.0, start=300.0, load=60.0)
    failures = long_run.Failures(
        per_machine=(0.00379 if spares else 0.0065) / 86400.0,
        per_job=0.0 if spares else 0.0917 / 3600.0,
        restart=restart,
        doubt=0.3 if spares else 0.5,
        spares=long_run.Spares(count=spares, repair=2.0 * 86400.0) if spares else None,
    )
    saving = long_run.Saving(interval=600.0, blocking=0.6, durable=51.0)
    run = long_run.LongRun(work=365 * 86400.0, machines=2048, saving=saving, failures=failures)
    times = []
    for _ in range(REPEATS):
        before = time.process_time()
        simulate_runs(run, draws=1000)
        times.append(time.process_time() - before)
    return min(times)


def table() -> str:
    """All results as a Markdown table."""
    python = [sys.executable, "-c"]
    bare, numpy = cost([*python, "pass"]), cost([*python, "import numpy"])
    shown, whole = cost([*plan_command(), "--help"]), cost([*plan_command(), "simulate", SCENARIO])
    ticks, simulated = rate(timeouts), rate(stepper())
    plain, spared = year(0), year(40)
    rows = [
        (
            "`plan --help`, CPU",
            f"{shown[0]:.3f} s",
            "`python -c pass`",
            f"{bare[0]:.3f} s",
            shown[0] / bare[0],
        ),
        (
            f"`plan simulate {SCENARIO}`, wall",
            f"{whole[1]:.2f} s",
            "`import numpy`",
            f"{numpy[1]:.2f} s",
            whole[1] / numpy[1],
        ),
        (
            f"`plan simulate {SCENARIO}`, CPU",
            f"{whole[0]:.2f} s",
            "`import numpy`",
            f"{numpy[0]:.2f} s",
            whole[0] / numpy[0],
        ),
        (
            "simulated steps (8 ranks)",
            f"{simulated:,.0f}/s",
            "simpy timeouts",
            f"{ticks:,.0f}/s",
            ticks / simulated,
        ),
        ("a year of 16,384 GPUs x 1,000, CPU", f"{plain:.2f} s", "asked for", "10 s", plain / 10),
        ("the same with 40 spares, CPU", f"{spared:.2f} s", "asked for", "10 s", spared / 10),
    ]
    lines = ["| what | result | against | result | ratio |", "|---|---|---|---|---|"]
    lines += [f"| {a} | {b} | {c} | {d} | {ratio:.1f} |" for a, b, c, d, ratio in rows]
    where = f"Python {platform.python_version()}, {os.cpu_count()} CPUs, best of {REPEATS} runs."
    return "\n".join([where, "", *lines, ""])


def main() -> None:
    """Print the table; with ``--write`` put it into the README of this folder too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    arguments = parser.parse_args()
    results = table()
    print(results)
    if arguments.write:
        readme = Path(__file__).with_name("README.md")
        before, rest = readme.read_text(encoding="utf-8").split(START)
        after = rest.split(END)[1]
        readme.write_text(f"{before}{START}{results}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
