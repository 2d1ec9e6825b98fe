"""Runs of MLPerf Storage: submissions to v0.5, v1.0, v2.0 and v3.0, one row a run.

A row says what was run on what: workload and accelerator (the base scenario), hosts and
accelerators, files, threads that read, batches ahead, network and processors of a host. How fast
the store is stands nowhere: it is fitted to the smallest run of each group, which is its anchor.

A group is a store as one submitter describes it, under one workload: the name of the system
without workload, accelerator and number of accelerators. Its smallest run is the configuration
with the fewest accelerators (then hosts, then batches a second); all repeats of it are anchors.
Every run loads its store somehow: with unet3d the first step reads all that workers can hold at
once, at full speed, so even one accelerator shows what the store gives one host; the others show
in the accelerators' utilization how late ranks come.

Left out of the fit: the first step of runs other than unet3d, which says how long a list of files
takes to set up, not how fast a store is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from converters import Columns, TableRow, is_whole

SHIPPED: Final = "mlperf_storage"

COLUMNS: Final = Columns(
    required=(
        "version",
        "submitter",
        "system",
        "workload",
        "accelerator",
        "num_hosts",
        "num_accelerators_total",
        "num_files_train",
        "samples_per_file",
        "throughput_samples_s",
    ),
    filled=("version", "submitter", "system", "workload", "accelerator"),
    numbers=(
        "version",
        "num_hosts",
        "num_accelerators_total",
        "num_files_train",
        "samples_per_file",
        "host_cpu_count_measured",
        "batch_size",
        "computation_time_s",
        "prefetch_size",
        "record_length_bytes",
        "epochs",
        "au_pct_mean",
        "au_pct_sd_epochs",
        "au_threshold_pct",
        "throughput_samples_s",
        "throughput_sd_epochs",
        "first_step_s_est",
    ),
    measured=(
        "au_pct_*",
        "throughput_*",
        "mean_step_time_s",
        "first_step_*",
        "pass",
    ),
)

_STEPS: Final = {
    ("unet3d", "a100"): (7, 0.636),
    ("unet3d", "h100"): (7, 0.323),
    ("unet3d", "v100"): (4, 1.3604),
    ("unet3d", "b200"): (7, 0.162),
    ("resnet50", "a100"): (400, 0.435),
    ("resnet50", "h100"): (400, 0.224),
    ("cosmoflow", "a100"): (1, 0.00551),
    ("cosmoflow", "h100"): (1, 0.0035),
}
"""Samples of a batch and its compute time [s] by workload and accelerator, as in the bases."""
_PIPELINE: Final = {"unet3d": 146600628.0, "resnet50": 114660.07, "cosmoflow": 2828486.0}
"""Bytes of a sample of the workloads whose way of reading is known [B]."""
_OTHER_SIZE: Final = 1e-4
"""Relative difference from which on a row's samples are not the workload's."""
_PREFETCH: Final = 2
"""DLIO's prefetch_size where a run doesn't say (utils/config.py)."""
_PROCESSES: Final = frozenset({"unet3d"})
"""Workloads read by processes (torch); the others by threads (tf.data)."""
_PER_FILE: Final = 7e-7
_OPENING: Final = {"resnet50": 0.1, "cosmoflow": 0.05}
"""Time before an epoch's first read [s]: for each file of the list, and for the pipeline itself.

From the first steps of the smallest runs: 0.5 to 0.8 us a file on five systems.
"""
_V2: Final = 2.0
_STORE: Final = re.compile(
    r"[-_](?:(?:resnet50|cosmoflow|unet3d)[-_][abhv]\d+|Nacc\d+-Nhosts\d+|Barrier-.*)$",
    re.IGNORECASE,
)
_NO_BARRIER: Final = re.compile(r"barrier.*changed", re.IGNORECASE)
_CARDS: Final = re.compile(r"(\d+)x(\d+)")
_CARDS_OF_SYSTEM: Final = re.compile(r"(\d+)x(?:EDR|HDR|NDR)(\d+)")
_STATED: Final = re.compile(r"(\d+)(?:\.0*)?(?![\w.])")
"""A whole number, and then perhaps where it was read."""
_WHOLE: Final = (
    "batch_size",
    "prefetch_size",
    "num_files_train",
    "samples_per_file",
    "host_cpu_count_measured",
)
_SOCKETS: Final = re.compile(r"(\d*)x(\d+)$")


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    anchors = _anchors(rows)
    return [_cells(row, is_anchor=anchors.get(_group(row)) == _run(row)) for row in rows]


def _cells(row: TableRow, *, is_anchor: bool) -> dict[str, str]:
    reason = _excluded(row)
    labels = _labels(row)
    if reason:
        return {**labels, "exclude": reason}
    return {
        **labels,
        "base": _base(row),
        **_overrides(row),
        **_measured(row, is_anchor=is_anchor),
        "anchor": "yes" if is_anchor else "",
    }


def _base(row: TableRow) -> str:
    workload, accelerator = row.text("workload"), row.text("accelerator")
    known = (workload, accelerator) in _STEPS
    return f"{workload}-{accelerator}" if known else f"storage-benchmark-{workload}"


def _excluded(row: TableRow) -> str:
    """Why a row cannot be predicted; empty if it can."""
    workload, accelerator = row.text("workload"), row.text("accelerator")
    if workload not in _PIPELINE:
        return f"nothing is known of the workload '{workload}' but its name"
    if _step(row) is None:
        return f"no compute time is known for {workload} on '{accelerator}'"
    return next((reason for applies, reason in _gaps(row) if applies), "")


def _gaps(row: TableRow) -> Iterator[tuple[bool, str]]:
    """What may be missing in a row of a known workload, and how it is called."""
    hosts, total = _number(row, "num_hosts"), _number(row, "num_accelerators_total")
    threads = row.text("read_threads")
    yield (
        bool(threads) and not _threads(row),
        f"read_threads is not a whole number, found {threads!r}",
    )
    for column in _WHOLE:
        text = row.text(column)
        yield not is_whole(row.number(column)), f"{column} is not a whole number, found {text!r}"
    yield hosts < 1.0 or total < 1.0, "hosts or accelerators are not stated"
    yield total % max(1.0, hosts) > 0.0, f"{total:g} accelerators not spread evenly over {hosts:g}"
    samples = _number(row, "num_files_train") * _number(row, "samples_per_file")
    batch, _ = _step(row) or (1, 0.0)
    yield samples == 0.0, "how much data was read is not stated"
    yield samples < total * batch, "less than a batch for each accelerator"


def _step(row: TableRow) -> tuple[int, float] | None:
    known = _STEPS.get((row.text("workload"), row.text("accelerator")))
    batch, time = row.number("batch_size"), row.number("computation_time_s")
    return (int(batch), time) if batch and time else known


def _own_step(row: TableRow) -> dict[str, str]:
    """The keys of a step that is not its base's."""
    step = _step(row)
    if step is None or step == _STEPS.get((row.text("workload"), row.text("accelerator"))):
        return {}
    batch, time = step
    return {
        "model.step_times": f'[{{ batch_size = {batch}, time = "{time:g} s" }}]',
        "train.batch_size": f"{batch}",
    }


def _own_size(row: TableRow) -> str:
    size, usual = row.number("record_length_bytes"), _PIPELINE[row.text("workload")]
    other = size is not None and abs(size / usual - 1.0) > _OTHER_SIZE
    return f"{size:.10g} B" if other else ""


def _number(row: TableRow, column: str) -> float:
    return row.number(column) or 0.0


def _labels(row: TableRow) -> dict[str, str]:
    names = ("version", "division", "submitter", "system", "workload", "accelerator", "run_id")
    named = {name: row.text(name) for name in names}
    total = row.number("num_accelerators_total")
    return {
        "id": " ".join(
            part for part in (row.text("submitter"), row.text("system"), _name(row)) if part
        ),
        "family": row.text("workload"),
        **named,
        "store": _store(row),
        "hosts": row.text("num_hosts"),
        "accelerators": "" if total is None else f"{total:g}",
        "threads": _threads(row),
        "au_threshold": row.text("au_threshold_pct"),
        "source": row.text("source_summary"),
    }


def _name(row: TableRow) -> str:
    return row.text("run_id") or f"{row.text('workload')}-{row.text('accelerator')}"


def _store(row: TableRow) -> str:
    return _STORE.sub("", row.text("system"))


def _threads(row: TableRow) -> str:
    stated = _STATED.match(row.text("read_threads"))
    return stated.group(1) if stated else ""


def _overrides(row: TableRow) -> dict[str, str]:
    files, hosts = _number(row, "num_files_train"), _number(row, "num_hosts")
    workload = row.text("workload")
    start = _OPENING.get(workload, 0.0) + _PER_FILE * files
    local = row.text("storage_class").startswith("local")
    return {
        "hardware.count": f"{hosts:g}",
        "hardware.emulated": f"{_number(row, 'num_accelerators_total') / hosts:g}",
        "hardware.storage": "storage/local-store" if local else "",
        "hardware.vcpus": _vcpus(row),
        "hardware.network_bandwidth": _network(row),
        "data.samples": f"{files * _number(row, 'samples_per_file'):.0f}",
        "input.workers": _threads(row),
        "input.prefetch": _ahead(row),
        "input.epoch_start": f"{start:.6g} s",
        "train.epochs": row.text("epochs"),
        "data.bytes_per_sample": _own_size(row),
        **_own_step(row),
        # No rank waits for others where the barrier was taken out of the program.
        "train.mode": "infer" if _NO_BARRIER.search(row.text("system")) else "",
    }


def _ahead(row: TableRow) -> str:
    """Batches made ahead: for each process (at least one), or in all."""
    stated = row.number("prefetch_size")
    size = _PREFETCH if stated is None else int(stated)
    if row.text("workload") not in _PROCESSES:
        return f"{max(1, size)}"
    threads = int(_threads(row) or 4)
    return f"{-(-size // threads) if size else 2}"


def _vcpus(row: TableRow) -> str:
    """Hardware threads of a host: as counted there, or two a core over all sockets."""
    counted, hosts = row.number("host_cpu_count_measured"), row.number("num_hosts")
    sockets = _SOCKETS.search(row.text("client_cpu"))
    if counted and hosts == 1:
        return f"{counted:g}"
    if sockets:
        number, cores = sockets.groups()
        return f"{2 * int(number) * int(cores) if number else int(cores)}"
    return f"{counted:g}" if counted else ""


def _network(row: TableRow) -> str:
    """What a host's network cards carry, one way."""
    cards = _CARDS.search(row.text("client_nic_Gbps_x_count"))
    if cards:
        rate, count = cards.groups()
        return f"{int(rate) * int(count)} Gb/s"
    named = _CARDS_OF_SYSTEM.search(row.text("system"))
    if named:
        count, rate = named.groups()
        return f"{int(rate) * int(count)} Gb/s"
    return ""


def _measured(row: TableRow, *, is_anchor: bool) -> dict[str, str]:
    group = "measured.mlperf_storage"
    later = _number(row, "version") >= _V2
    # The formula of the utilization in v0.5 is not established.
    utilization = row.number("au_pct_mean") if _number(row, "version") >= 1.0 else None
    first = row.number("first_step_s_est")
    if is_anchor and row.text("workload") not in _PROCESSES:
        first = None
    rate = row.number("throughput_samples_s")
    figures = {
        f"{group}.accelerator_utilization": None if utilization is None else utilization / 100.0,
        f"{group}.throughput_v1_samples_per_s": None if later else rate,
        f"{group}.throughput_v2_samples_per_s": rate if later else None,
        f"{group}.first_step_s": first,
    }
    return {name: "" if value is None else f"{value:.7g}" for name, value in figures.items()}


def _group(row: TableRow) -> tuple[str, ...]:
    return row.text("submitter"), _store(row), row.text("workload")


Run = tuple[float, float, float, str, str, str]
"""A configuration: accelerators, hosts, batches a second, system, accelerator and threads."""


def _run(row: TableRow) -> Run:
    time = row.number("computation_time_s")
    return (
        _number(row, "num_accelerators_total"),
        _number(row, "num_hosts"),
        0.0 if not time else 1.0 / time,
        row.text("system"),
        row.text("accelerator"),
        _threads(row),
    )


def _anchors(rows: Sequence[TableRow]) -> dict[tuple[str, ...], Run]:
    """The smallest run of each group; a run without a barrier is none."""
    smallest: dict[tuple[str, ...], Run] = {}
    for row in rows:
        if _excluded(row) or _NO_BARRIER.search(row.text("system")):
            continue
        group, run = _group(row), _run(row)
        smallest[group] = min(run, smallest.get(group, run))
    return smallest
