"""``plan import``: the table of foreign formats."""

from __future__ import annotations

from typing import Final

import click

from simulator.cli.lazy_group import LateGroup, Table

FORMATS: Final[Table] = {
    "fio": ("simulator.cli.import_hardware", "fio JSON: a storage profile."),
    "nccl-tests": ("simulator.cli.import_hardware", "nccl-tests text: a link profile."),
    "dlio": ("simulator.cli.import_workload", "DLIO, MLPerf Storage workload: a scenario."),
    "torch-trace": ("simulator.cli.import_workload", "PyTorch profiler: how a step is spent."),
    "hf-config": ("simulator.cli.import_workload", "Hugging Face config.json: a model section."),
    "mlperf-storage": ("simulator.cli.import_workload", "MLPerf Storage results: a table of runs."),
    "mlperf-training": ("simulator.cli.import_runs", "Training logs: a measurement set."),
    "request-log": ("simulator.cli.import_runs", "Logs of requests: a service with its trace."),
    "serving-benchmark": ("simulator.cli.import_runs", "vLLM, SGLang benchmarks: a set of runs."),
    "utilization": ("simulator.cli.import_runs", "Logs of utilization, beside a prediction."),
    "nvidia-smi": ("simulator.cli.import_hardware", "topo -m and -q -x: a node profile."),
}
"""Format: (module that holds a click command of its name, one line of help)."""


@click.group("import", cls=LateGroup, table=FORMATS, kind="format")
def import_() -> None:
    """Turn evidence you already have into profiles, workloads and measurements.

    Each format prints what it found as TOML, or writes it with -o. Broken evidence is refused
    with one message for each problem, and nothing is written.
    """
