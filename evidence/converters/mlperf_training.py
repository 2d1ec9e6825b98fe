"""Results of MLPerf Training, one submission of one benchmark a row.

A group is a benchmark on one kind of accelerator. Its two smallest runs are anchors (the smallest
alone where there are only two sizes): compute efficiency, as the time of a step, and overhead of a
step are fitted to them, all else follows from the description. Submitter, version and batch change
along a group, so what is compared is a step of the run's own batch on the group's own software.

The step's time is the global batch over the throughput logged in training; over that of the whole
run, evaluation included, where nothing else was logged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from converters import Columns, TableRow
from converters.table_machines import machine_of

SHIPPED: Final = "mlperf_training"

COLUMNS: Final = Columns(
    required=(
        "version",
        "submitter",
        "system",
        "nodes",
        "accel_per_node",
        "accelerators",
        "accelerator",
        "benchmark",
        "global_batch_size",
        "throughput_e2e",
        "throughput_train_logged",
    ),
    filled=("version", "submitter", "system", "benchmark"),
    numbers=(
        "nodes",
        "accel_per_node",
        "accelerators",
        "global_batch_size",
        "grad_accum",
        "tp",
        "pp",
        "cp",
        "throughput_e2e",
        "throughput_train_logged",
    ),
    measured=(
        "throughput*",
        "step_time*",
        "duration*",
        "data_wait*",
        "energy*",
        "init_s*",
        "eval_s*",
        "n_evals*",
        "samples_to_target*",
        "steps_to_target",
        "train_fraction*",
        "node_power*",
    ),
)

_PARAMETERS: Final = {
    # torchvision 0.21.0, weights metadata; that of ssd has another backbone of like size
    "resnet": 25557032.0,
    "ssd": 34014999.0,
    "maskrcnn": 44401393.0,
    # README of NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT
    "bert": 330e6,
    # guesses
    "unet3d": 31e6,
    "rnnt": 49e6,
    "stable_diffusion": 865e6,
}
_VARYING: Final = frozenset({"maskrcnn", "rnnt"})
"""Benchmarks whose samples vary in length or size."""
_DELAY: Final = "0.062"
_OTHERWISE: Final = {
    "dlrm_dcnv2": "tables are exchanged all to all, which data-parallel training lacks",
    "gnn": "the parameters of gnn are not known",
}
_ANOMALY: Final = "X"
"""Tier of runs that are known to be odd: predicted like others, but nothing is fitted to them."""
_SIZES: Final = 3
_ANCHORS: Final = 2

_STEPS: Final = 6
"""Return the steps of an epoch: all but the first are equal."""

Key = tuple[str, str]


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    groups: dict[Key, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if not _excluded(row):
            groups[_group(row)].append(number)
    anchors = {n for numbers in groups.values() for n in _anchors(rows, numbers)}
    several = {key for key, numbers in groups.items() if len(_sizes(rows, numbers)) > 1}
    largest = {key: max(_batch(rows[n]) for n in numbers) for key, numbers in groups.items()}
    found = []
    for number, row in enumerate(rows):
        reason = _excluded(row)
        if not reason and _group(row) not in several:
            reason = "the only size of its benchmark and accelerator"
        cells = {**_labels(row), "exclude": reason}
        if not reason:
            cells |= _overrides(row, largest[_group(row)]) | _measured(row)
            cells["anchor"] = "yes" if number in anchors else ""
        found.append(cells)
    return found


def _excluded(row: TableRow) -> str:
    """Why a row cannot be predicted; empty if it can."""
    benchmark, accelerator = row.text("benchmark"), row.text("accelerator")
    if not row.number("accelerators"):
        return "trained on cores: how fast those compute is not known"
    if max(row.number(degree) or 1 for degree in ("tp", "pp", "cp")) > 1:
        return "one model is spread over several accelerators"
    if benchmark not in _PARAMETERS:
        return _OTHERWISE.get(benchmark, f"the parameters of {benchmark} are not known")
    if machine_of(SHIPPED, accelerator) is None:
        return f"no machine is known with '{accelerator}'"
    return _uneven(row)


def _uneven(row: TableRow) -> str:
    """Why the run's sizes don't fit together; empty if they do."""
    devices, each = row.number("accelerators") or 1, row.number("accel_per_node") or 0
    machine = machine_of(SHIPPED, row.text("accelerator"))
    if (
        machine is None
        or each > machine.devices
        or not each
        or devices != each * (row.number("nodes") or 0)
    ):
        return "its machines are not of a known kind"
    if (row.number("global_batch_size") or 0) < devices * (row.number("grad_accum") or 1):
        return "less than a sample for each accelerator"
    if not row.number("throughput_train_logged") and not row.number("throughput_e2e"):
        return "no throughput"
    return ""


def _group(row: TableRow) -> Key:
    return row.text("benchmark"), _machine(row)


def _machine(row: TableRow) -> str:
    machine = machine_of(SHIPPED, row.text("accelerator"))
    return "" if machine is None else machine.machine


def _sizes(rows: Sequence[TableRow], numbers: Sequence[int]) -> list[float]:
    return sorted({rows[n].number("accelerators") or 0 for n in numbers})


def _anchors(rows: Sequence[TableRow], numbers: Sequence[int]) -> list[int]:
    """The runs of the two smallest sizes, of one where there are two only; anomalies are none."""
    usual = [n for n in numbers if rows[n].text("tier") != _ANOMALY]
    sizes = _sizes(rows, usual)
    smallest = sizes[: _ANCHORS if len(sizes) >= _SIZES else 1]
    return [n for n in usual if rows[n].number("accelerators") in smallest]


def _batch(row: TableRow) -> int:
    parts = (row.number("accelerators") or 1) * (row.number("grad_accum") or 1)
    return max(1, round((row.number("global_batch_size") or 0) / parts))


def _labels(row: TableRow) -> dict[str, str]:
    names = ("version", "submitter", "system", "benchmark", "accelerator", "accelerators")
    return {
        "id": f"{row.text('benchmark')} {row.text('version')} {row.text('system')}",
        "family": row.text("benchmark"),
        **{name: row.text(name) for name in names},
        "kind": _machine(row),
        "global_batch": row.text("global_batch_size"),
        "why": row.text("why"),
        "source": row.text("source"),
    }


def _overrides(row: TableRow, reference: int) -> dict[str, str]:
    batch = _batch(row)
    devices = row.number("accelerators") or 1
    accumulated = row.number("grad_accum") or 1
    return {
        "base": "data-parallel",
        "hardware.machine": _machine(row),
        "hardware.gpus": f"{row.number('accel_per_node') or 1:g}",
        "hardware.count": f"{row.number('nodes') or 1:g}",
        "data.samples": f"{batch * accumulated * devices * _STEPS:.0f}",
        "model.parameters": f"{_PARAMETERS[row.text('benchmark')]:.8g}",
        "model.step_time_batch": f"{reference}",
        "train.batch_size": f"{batch}",
        "train.accumulation": f"{accumulated:g}",
        "train.straggling": _DELAY if row.text("benchmark") in _VARYING else "",
    }


def _measured(row: TableRow) -> dict[str, str]:
    rate = row.number("throughput_train_logged") or row.number("throughput_e2e") or 0.0
    whole = _batch(row) * (row.number("grad_accum") or 1) * (row.number("accelerators") or 1)
    return {"measured.step_time_s.mean": f"{whole / rate:.7g}"}
