"""Importer of MLPerf Storage result folders to rows of the table ``mlperf_storage``.

The rows have the columns of ``evidence/convert.py mlperf_storage``; values that a folder does not
contain stay empty. Layout: argonne-lcf/dlio_benchmark ``utils/statscounter.py`` (2.0.0 of PyPI was
run; the branches mlperf_storage_v1.0 and v2.0). ``summary.json`` holds means over epochs,
``RANK_output.json`` the load, total and compute time of each step [s]. The configuration is in
``configs``, ``dlio_config`` or ``.hydra``. MB are MiB there, of nominal records.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Final

from simulator import units
from simulator.errors import Problem
from simulator.importers import dlio as dlio_workload
from simulator.importers.dlio import Workload
from simulator.importers.foreign import Entry, read_json, read_yaml, refuse
from simulator.importers.result import Fragment, Kind, aligned
from simulator.reading.reading import fail, neighbour
from simulator.records import dataclass
from simulator.units import Seconds

WANTED: Final = "the summary of a run of MLPerf Storage"
MIB: Final = units.parse("1 MiB", units.BYTE)

_CONFIGS: Final = ("configs", "dlio_config", ".hydra")
_NAMED: Final = re.compile(r"([a-z0-9]+)[_-]([abhv]\d+)")
_WORKLOAD: Final = re.compile(r"workload=([a-z0-9]+)_([a-z]+\d+)")
_PERCENT: Final = 100.0
_MAX_PERCENT: Final = 100.5
"""Maximum utilization, with a margin for rounding and clock errors [%]."""
_MEAN_TOLERANCE: Final = 0.01
_CLOCK_TOLERANCE: Final = 0.05
"""Tolerated difference between the clocks of ranks in an epoch [s]."""
_MAX_COUNT: Final = 5e6
"""Upper bound of the number of accelerators, hosts and epochs."""


COLUMNS: Final = (
    "version",
    "division",
    "submitter",
    "system",
    "workload",
    "accelerator",
    "run_id",
    "au_definition",
    "source_summary",
    "source_config",
    "num_hosts",
    "num_accelerators_total",
    "accelerators_per_host",
    "host_cpu_count_measured",
    "host_memory_GiB_measured",
    "au_pct_mean",
    "au_pct_sd_epochs",
    "au_pct_epochs",
    "throughput_samples_s",
    "throughput_sd_epochs",
    "throughput_MiB_s",
    "num_files_train",
    "samples_per_file",
    "record_length_bytes",
    "dataset_size_GiB",
    "data_per_host_GiB",
    "potential_caching",
    "batch_size",
    "read_threads",
    "prefetch_size",
    "computation_time_s",
    "epochs",
    "data_loader",
    "au_threshold_pct",
    "pass",
    "ideal_throughput_samples_s",
    "throughput_over_ideal",
    "mean_step_time_s",
    "steps_per_epoch",
    "first_step_s_est",
    "start",
    "overrides",
)
"""Columns of the table."""

_DEFINITIONS: Final = {
    "0.5": "v0.5",
    "1.0": "v1.0: nominal compute, step 1 excluded; throughput incl. step 1",
}
_LATER: Final = "v2.0+: measured sleep, step 1 excluded; throughput x (n-2)/(n-1)"
_MAX_RUNS: Final = 2000
_GIB: Final = units.parse("1 GiB", units.BYTE)
_MAX_RANKS_SHOWN: Final = 8
_LOADERS: Final = {"tf.data": "tensorflow"}


Rank = tuple[int, Seconds, Seconds, float]
"""Number of a rank and its means over epochs: first step [s], later steps [s], share of later
steps that it waits for data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: the cells of its row (None if unknown), and the step times of its ranks."""

    path: Path
    cells: Mapping[str, Any]
    ranks: Sequence[Rank]


def read(
    folders: Sequence[Path], *, system: str = "", submitter: str = "", version: str = ""
) -> Fragment:
    """Convert the runs in one or more result folders to a CSV table.

    Parameters
    ----------
    folders : sequence of pathlib.Path
        Folders that contain ``summary.json``, directly or in subfolders.
    system, submitter : str
        Names for the submission; by default taken from the folders.
    version : str
        Version of the benchmark; by default derived from the folder layout.

    Raises
    ------
    InputError
        With the problems of all runs: folders without a run, unfinished runs, contradictory values.
    """
    paths = [path for folder in folders for path in _runs_below(folder)]
    problems: list[Problem] = []
    runs = [run for path in paths if (run := _run(path, version, problems)) is not None]
    refuse(problems)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        cells = {**run.cells, "submitter": submitter or run.cells["submitter"]}
        cells["system"] = system or run.cells["system"]
        writer.writerow({key: _cell(value) for key, value in cells.items()})
    return Fragment(
        kind=Kind.TABLE,
        text=text.getvalue(),
        summary=tuple(_summary(runs)),
        warnings=tuple(warning for run in runs for warning in _warnings(run)),
    )


def _runs_below(folder: Path) -> list[Path]:
    if not folder.exists():
        fail(str(folder), "does not exist", hint=neighbour(folder))
    if not folder.is_dir():
        fail(str(folder), "is a file, not the folder of a run")
    found = sorted(path.parent for path in folder.rglob("summary.json"))
    if not found:
        hint = "a run leaves it in its result folder"
        fail(str(folder), "holds no summary.json", hint=hint)
    if len(found) > _MAX_RUNS:
        fail(str(folder), f"holds {len(found)} runs", hint=f"at most {_MAX_RUNS} at once")
    return found


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _run(folder: Path, version: str, problems: list[Problem]) -> Run | None:
    """Read the run in `folder`; report problems and return None if it did not finish."""
    path, before = folder / "summary.json", len(problems)
    top = Entry(read_json(path, WANTED), str(path), problems=problems)
    metric = top.need("metric", hint="the run did not finish")
    accelerators = _count(top, "num_accelerators", needed=True)
    if metric is None or accelerators is None:
        return None
    config_path = _config_path(folder)
    config = None if config_path is None else _config(config_path)
    hosts, files = _count(top, "num_hosts"), top.number_at("num_files_train")
    per_file, epochs = top.number_at("num_samples_per_file"), _count(top, "epochs")
    utilization = metric.measured_at("train_au_mean_percentage", _MAX_PERCENT)
    each = metric.get("train_au_percentage")
    entries = () if each is None else each.entries()
    by_epoch = [
        share for entry in entries if (share := entry.number(0.0, _MAX_PERCENT)) is not None
    ]
    throughput = metric.measured_at("train_throughput_mean_samples_per_second")
    rate = metric.measured_at("train_io_mean_MB_per_second")
    _check(metric, utilization, by_epoch, throughput)
    if config is not None and rate is not None and throughput:
        _check_rate(metric, throughput, config.record, rate)
    if len(problems) > before:
        return None
    ranks = _ranks(folder, problems)
    workload, accelerator = _names(folder, config, top)
    version, place = version or _version(folder, top), _submission(folder)
    samples = None if files is None or per_file is None else files * per_file
    cells: dict[str, Any] = {
        "version": version,
        "division": place.get("division", ""),
        "submitter": place.get("submitter", "own"),
        "system": place.get("system", folder.resolve().parent.name),
        "workload": workload,
        "accelerator": accelerator,
        "run_id": place.get("run", folder.resolve().name),
        "au_definition": _DEFINITIONS.get(version, _LATER),
        "source_summary": str(path),
        "source_config": "" if config_path is None else str(config_path),
        "num_hosts": hosts,
        "num_accelerators_total": accelerators,
        "accelerators_per_host": None if hosts is None else accelerators / hosts,
        "host_cpu_count_measured": _joined(top, "host_cpu_count"),
        "host_memory_GiB_measured": _joined(top, "host_memory_GB"),
        "au_pct_mean": utilization,
        "au_pct_sd_epochs": pstdev(by_epoch) if by_epoch else None,
        "au_pct_epochs": ";".join(f"{share:.3f}" for share in by_epoch),
        "throughput_samples_s": throughput,
        "throughput_sd_epochs": metric.measured_at("train_throughput_stdev_samples_per_second"),
        "throughput_MiB_s": rate,
        "num_files_train": files,
        "samples_per_file": per_file,
        "potential_caching": _joined(top, "potential_caching"),
        "epochs": epochs or len(by_epoch) or None,
        "pass": metric.text_at("train_au_meet_expectation") or "",
        "first_step_s_est": fmean(rank[1] for rank in ranks) if ranks else None,
        "start": top.text_at("start") or "",
        "overrides": _overrides(folder),
    }
    if config is not None:
        cells |= _configured(config, samples, hosts)
        cells |= _against_ideal(config, accelerators, samples, throughput)
    return Run(path=folder, cells=cells, ranks=ranks)


def _configured(config: Workload, samples: float | None, hosts: int | None) -> dict[str, object]:
    """Return the cells of the row that come from the workload configuration."""
    data, threshold = None if samples is None else samples * config.record, config.threshold
    return {
        "record_length_bytes": f"{config.record:.10g}",
        "dataset_size_GiB": None if data is None else data / _GIB,
        "data_per_host_GiB": None if data is None or hosts is None else data / hosts / _GIB,
        "batch_size": config.batch,
        "read_threads": config.threads,
        "prefetch_size": config.queue,
        "computation_time_s": config.compute,
        "data_loader": _LOADERS.get(config.loader, config.loader),
        "au_threshold_pct": None if threshold is None else threshold * _PERCENT,
    }


def _against_ideal(
    config: Workload, accelerators: int, samples: float | None, throughput: float | None
) -> dict[str, object]:
    """Return cells on steps, and on throughput relative to accelerators without data stalls."""
    global_batch = accelerators * config.batch
    ideal = global_batch / config.compute if config.compute else None
    return {
        "ideal_throughput_samples_s": ideal,
        "throughput_over_ideal": throughput / ideal if ideal and throughput is not None else None,
        "mean_step_time_s": global_batch / throughput if throughput else None,
        "steps_per_epoch": None if samples is None else int(samples // global_batch),
    }


def _count(top: Entry, name: str, *, needed: bool = False) -> int | None:
    found = top.need(name) if needed else top.get(name)
    value = None if found is None else found.number(1.0, _MAX_COUNT)
    return None if value is None else int(value)


def _joined(top: Entry, name: str) -> str:
    """Return the values of all hosts separated by semicolons, or one value if all are equal.

    Older versions write a single value.
    """
    found = top.get(name)
    values = found.value if found is not None else []
    texts = [
        f"{value:.1f}".removesuffix(".0")
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, int | float)
    ]
    return ";".join(dict.fromkeys(texts))


def _check(
    metric: Entry, mean: float | None, by_epoch: Sequence[float], throughput: float | None
) -> None:
    if mean is None and throughput is None:
        metric.fault("has neither a utilization nor a throughput")
    if mean is not None and by_epoch:
        exact = fmean(by_epoch)
        if abs(exact - mean) > _MEAN_TOLERANCE * _PERCENT:
            message = f"has a mean utilization of {mean:g}%, but epochs of {exact:.4g}% on average"
            metric.fault(message)


def _check_rate(metric: Entry, throughput: float, record: float, rate: float) -> None:
    """Report a problem if `rate` [MiB/s] differs from samples/s times record size: a wrong unit."""
    moved = throughput * record / MIB
    if abs(moved - rate) > _MEAN_TOLERANCE * moved:
        records = f"{throughput:.4g} samples/s of {record:.0f} B"
        message = f"reports {rate:.4g} MiB/s, but {records} are {moved:.4g} MiB/s"
        metric.fault(message, hint="one of them is in another unit")


def _config_path(folder: Path) -> Path | None:
    paths = (folder / name / "config.yaml" for name in _CONFIGS)
    return next((path for path in paths if path.is_file()), None)


def _config(path: Path) -> Workload:
    top = Entry(read_yaml(path, dlio_workload.WANTED), str(path))
    found = dlio_workload.workload(top, path)
    for problem in top.problems:
        about = f"{problem.key}: " if problem.key else ""
        fail(problem.origin, f"{about}{problem.message}")
    return found


def _overrides(folder: Path) -> str:
    """Return the command-line overrides of the run, separated by blanks."""
    path = next((p for n in _CONFIGS if (p := folder / n / "overrides.yaml").is_file()), None)
    if path is None:
        return ""
    data = read_yaml(path, "overrides of a run")
    words = [str(word) for word in data] if isinstance(data, list) else []
    return " ".join(word.lstrip("+").replace("workload.", "") for word in words)


def _names(folder: Path, config: Workload | None, top: Entry) -> tuple[str, str]:
    """Return workload and accelerator, from the overrides, the configuration or folder names."""
    chosen = _WORKLOAD.search(_overrides(folder))
    if chosen is not None:
        return chosen[1], chosen[2]
    said = config.name if config is not None else top.text_at("model") or ""
    for part in reversed((*folder.parts, said)):
        named = _NAMED.search(part)
        if named is not None and (not said or named[1] == said or said.startswith(named[1])):
            return named[1], named[2]
    return said or "not read", "not read"


def _version(folder: Path, top: Entry) -> str:
    if top.get("model") is not None:
        return "0.5"
    later = (folder / "dlio_config").is_dir() or (folder / "0_per_epoch_stats.json").is_file()
    return "2.0" if later else "1.0"


def _ranks(folder: Path, problems: list[Problem]) -> list[Rank]:
    """Return the step times of each rank, by rank."""
    paths = {int(path.name.partition("_")[0]): path for path in folder.glob("[0-9]*_output.json")}
    lengths = _durations(folder)
    tops = {
        number: Entry(read_json(path, "the steps of a rank"), str(path), problems=problems)
        for number, path in sorted(paths.items())
    }
    ranks = (_rank(number, top, lengths) for number, top in tops.items())
    return [rank for rank in ranks if rank is not None]


def _durations(folder: Path) -> dict[str, float]:
    """Return the duration of each epoch that has one [s]."""
    names = ("per_epoch_stats.json", "0_per_epoch_stats.json")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        return {}
    top = Entry(read_json(path, "the times of epochs"), str(path))
    found = {str(epoch.path[-1]): epoch.number_at("duration") for epoch in top.entries()}
    return {epoch: length for epoch, length in found.items() if length is not None}


def _rank(number: int, top: Entry, lengths: dict[str, float]) -> Rank | None:
    firsts, later, waits = [], [], 0.0
    for epoch in top.entries() if top.is_mapping() else ():
        if not str(epoch.path[-1]).isdecimal():
            continue
        blocks = list(_blocks(epoch))
        taken = sum(sum(whole) for _, whole in blocks)
        length = lengths.get(str(epoch.path[-1]))
        if length is not None and taken > length * (1.0 + _MEAN_TOLERANCE) + _CLOCK_TOLERANCE:
            message = f"has steps of {taken:.4g} s in all, but the epoch took {length:.4g} s"
            epoch.fault(message, hint="times are in seconds")
        for load, whole in blocks:
            firsts.append(whole[0])
            later += whole[1:]
            waits += sum(load[1:])
    if not firsts:
        top.fault("notes no step")
        return None
    mean = sum(later) / len(later) if later else math.nan
    share = waits / sum(later) if sum(later) else math.nan
    return number, sum(firsts) / len(firsts), mean, share


def _blocks(epoch: Entry) -> Iterator[tuple[list[float], list[float]]]:
    """Yield load times and total times of the steps of each training block of an epoch [s]."""
    load, whole = epoch.need("load"), epoch.need("proc")
    if load is None or whole is None or not load.is_mapping() or not whole.is_mapping():
        return
    for block in load.entries():
        name = str(block.path[-1])
        other = whole.need(name)
        if name == "eval" or other is None:
            continue
        loading = [entry.number() for entry in block.entries()]
        taken = [entry.number() for entry in other.entries()]
        times = [
            (a, b) for a, b in zip(loading, taken, strict=False) if a is not None and b is not None
        ]
        if len(loading) != len(taken):
            other.fault(f"has {len(taken)} steps, but {len(loading)} were loaded")
        if times:
            yield [a for a, _ in times], [b for _, b in times]


def _submission(path: Path) -> dict[str, str]:
    """Parse division, submitter and system from a path DIVISION/SUBMITTER/results/SYSTEM/..."""
    parts = path.parts
    lower = [part.lower() for part in parts]
    if "results" not in lower:
        return {}
    at = len(lower) - 1 - lower[::-1].index("results")
    if at < 1 or len(parts) <= at + 2:
        return {}
    division = lower[at - 2] if at > 1 and lower[at - 2] in {"closed", "open"} else ""
    rest = "/".join(parts[at + 2 :])
    return {"division": division, "submitter": parts[at - 1], "system": parts[at + 1], "run": rest}


def _warnings(run: Run) -> Iterator[str]:
    cells, ranks = run.cells, run.cells["num_accelerators_total"]
    if run.ranks and len(run.ranks) != ranks:
        yield f"{run.path}: {len(run.ranks)} of {ranks} ranks left their steps behind"
    if cells["au_pct_mean"] is None:
        yield f"{run.path}: reports no utilization"
    if cells["throughput_samples_s"] is None:
        yield f"{run.path}: reports no throughput"
    if not cells["source_config"]:
        yield f"{run.path}: has no config.yaml: batch, workers and compute time are left empty"
    if cells["accelerator"] == "not read":
        yield f"{run.path}: no name says which accelerator was emulated"


def _summary(runs: Sequence[Run]) -> list[str]:
    heading = ("run", "workload", "ranks", "AU", "samples/s", "per rank", "MiB/s", "per rank", "")
    lines = aligned([heading, *(_run_row(run) for run in runs)])
    for run in runs:
        if run.ranks:
            lines += ["", f"{run.path}: means over epochs", *aligned(_rank_rows(run.ranks))]
    return lines


def _run_row(run: Run) -> tuple[str, ...]:
    cells = run.cells
    ranks, share = cells["num_accelerators_total"], cells["au_pct_mean"]
    rates = []
    for name in ("throughput_samples_s", "throughput_MiB_s"):
        rate = cells[name]
        known = isinstance(rate, float) and isinstance(ranks, int)
        rates += [f"{rate:,.1f}", f"{rate / ranks:,.2f}"] if known else ["-", "-"]
    return (
        str(run.path),
        f"{cells['workload']}/{cells['accelerator']}",
        str(ranks),
        "-" if share is None else f"{share:.2f}%",
        *rates,
        str(cells["pass"]),
    )


def _rank_rows(ranks: Sequence[Rank]) -> list[tuple[str, ...]]:
    """Return table rows of all ranks, or of the fastest and slowest ones if there are many."""
    half, more = _MAX_RANKS_SHOWN // 2, len(ranks) - _MAX_RANKS_SHOWN
    by_speed = sorted(ranks, key=lambda rank: rank[2])
    shown = sorted(ranks) if more <= 0 else [*by_speed[:half], *by_speed[-half:]]
    rows = [
        (
            str(number),
            units.show(first, units.SECOND),
            units.show(step, units.SECOND),
            f"{waiting:.1%}",
        )
        for number, first, step, waiting in shown
    ]
    if more > 0:
        rows.insert(half, ("...", f"{more} more", "", ""))
    return [("rank", "first step", "later steps", "waits for data"), *rows]
