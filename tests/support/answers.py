"""A command line of every verb that prints an answer, and the files that these read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SCENARIO: Final = "resnet18-imagenet-one-worker"
GPU, OTHER = "gpu/t4", "gpu/v100-sxm2-16gb"
SET: Final = """
schema = 1
name = "mine"
title = "A test"
data = "mine.csv"
base = "resnet18-imagenet-one-worker"
source = "measured by hand"
date = "2026-11"
metrics = ["step_time_s.mean"]
split = "given"
"""
ROWS: Final = """id,input.workers,measured.step_time_s.mean,split
a,1,1.6,fit
b,2,0.9,fit
c,4,0.5,test
"""
SMI: Final = """timestamp, index, utilization.gpu [%], memory.used [MiB]
2024/01/01 00:00:00.000, 0, 90 %, 1000 MiB
2024/01/01 00:00:01.000, 0, 95 %, 1000 MiB
"""
GOAL: Final = """
schema = 1
[goal]
minimize = "cost.usd_to_train"
nodes = 1
gpus = ["v100*"]
clouds = ["aws"]
"""
POOL: Final = """
schema = 1
[pool]
machines = 2
price = "$10/h"
[[job]]
name = "experiments"
duration = "3 h"
machines = 1
count = 4
every = "1 h"
"""
VERBS: Final[dict[str, tuple[str, ...]]] = {
    "simulate": ("simulate", SCENARIO),
    "explain": ("explain", SCENARIO),
    "explain memory": ("explain", SCENARIO, "host_ram_bytes"),
    "explain cost": ("explain", SCENARIO, "cost"),
    "explain utilization": ("explain", SCENARIO, "utilization.cpu"),
    "compare": ("compare", SCENARIO, f"{SCENARIO}:input.workers=2"),
    "whatif": ("whatif", SCENARIO),
    "scenarios": ("scenarios",),
    "size": ("size", "storage", SCENARIO),
    "goodput": ("goodput", SCENARIO, "--set", "failures.like=rsc-1", "--draws", "100"),
    "campaign": ("campaign", "pool.toml"),
    "advise": ("advise", "input", SCENARIO, "--within", "50%"),
    "sweep": ("sweep", SCENARIO, "--over", "input.workers=1,2"),
    "recommend": ("recommend", SCENARIO, "--goal", "goal.toml", "--search"),
    "validate": ("validate", "mine.toml"),
    "validate near": ("validate", "mine.toml", "--near", SCENARIO),
    "calibrate": ("calibrate", "mine.toml", "--fit", "calibration.cpu"),
    "import utilization": ("import", "utilization", "smi.csv"),
    "import beside": ("import", "utilization", "smi.csv", "--beside", SCENARIO),
    "hardware list": ("hardware", "list", "gpu"),
    "hardware mixed": ("hardware", "list"),
    "hardware show": ("hardware", "show", GPU),
    "hardware diff": ("hardware", "diff", GPU, OTHER),
    "models": ("models",),
    "metrics": ("metrics",),
    "doctor": ("doctor",),
    "schema": ("schema",),
}


def write_evidence(folder: Path) -> None:
    """The files that the command lines name."""
    for name, text in {
        "mine.toml": SET,
        "mine.csv": ROWS,
        "smi.csv": SMI,
        "goal.toml": GOAL,
        "pool.toml": POOL,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
