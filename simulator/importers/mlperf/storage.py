"""Result folders of MLPerf Storage, as rows of the table ``mlperf_storage``.

The rows have the columns that ``evidence/convert.py mlperf_storage`` takes; what a
folder does not say stays empty.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.mlperf.storage_run import Rank, Run, read_run
from simulator.importers.reading import refuse
from simulator.reading.reading import fail, neighbour

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
"""What a row holds, named as in the table."""

_DEFINITIONS: Final = {
    "0.5": "v0.5",
    "1.0": "v1.0: nominal compute, step 1 excluded; throughput incl. step 1",
}
_LATER: Final = "v2.0+: measured sleep, step 1 excluded; throughput x (n-2)/(n-1)"
_MOST_RUNS: Final = 2000
_GIB: Final = units.parse("1 GiB", units.BYTE)
_RANKS_SHOWN: Final = 8
_LOADERS: Final = {"tf.data": "tensorflow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Runs as a table: `csv` for files, `summary` for people."""

    csv: str
    summary: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a folder does not say: the names a submission would have, and the version."""

    system: str = ""
    submitter: str = ""
    version: str = ""


def read(folders: Sequence[Path], given: Given) -> Results:
    """The runs in one or more folders, each anywhere below.

    Parameters
    ----------
    folders : sequence of pathlib.Path
        Result folders: those that hold ``summary.json``, or trees of them.
    given : Given
        Names and version.

    Raises
    ------
    InputError
        With the problems of all runs: folders without a run, runs that did not finish, figures
        that contradict each other.
    """
    paths = [path for folder in folders for path in _runs_below(folder)]
    runs: list[Run] = []
    problems: list[Problem] = []
    for path in paths:
        run, more = read_run(path, given.version)
        problems += more
        if run is not None:
            runs.append(run)
    refuse(problems)
    return Results(
        csv=_csv([_row(run, given) for run in runs]),
        summary=tuple(_summary(runs)),
        warnings=tuple(warning for run in runs for warning in run.warnings),
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
    if len(found) > _MOST_RUNS:
        fail(str(folder), f"holds {len(found)} runs", hint=f"at most {_MOST_RUNS} at once")
    return found


def _csv(rows: Sequence[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(run: Run, given: Given) -> dict[str, str]:
    """A run as cells, empty where nothing is known."""
    return {key: _cell(value) for key, value in (_about(run, given) | _measured(run)).items()}


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _about(run: Run, given: Given) -> dict[str, object]:
    """What describes a run."""
    config, hosts, data = run.config, run.hosts, _data(run)
    place = _submission(run.path)
    total = run.accelerators
    return {
        "version": run.version,
        "division": place.get("division", ""),
        "submitter": given.submitter or place.get("submitter", "own"),
        "system": given.system or place.get("system", run.path.resolve().parent.name),
        "workload": run.workload,
        "accelerator": run.accelerator,
        "run_id": place.get("run", run.path.resolve().name),
        "au_definition": _DEFINITIONS.get(run.version, _LATER),
        "source_summary": str(run.path / "summary.json"),
        "source_config": "" if run.config_path is None else str(run.config_path),
        "num_hosts": hosts,
        "num_accelerators_total": total,
        "accelerators_per_host": None if hosts is None else total / hosts,
        "host_cpu_count_measured": run.cpus,
        "host_memory_GiB_measured": run.memory,
        "num_files_train": run.files,
        "samples_per_file": run.samples_per_file,
        "record_length_bytes": None if config is None else f"{config.record:.10g}",
        "dataset_size_GiB": None if data is None else data / _GIB,
        "data_per_host_GiB": None if data is None or hosts is None else data / hosts / _GIB,
        "potential_caching": run.caching,
        "batch_size": run.batch,
        "read_threads": None if config is None else config.threads,
        "prefetch_size": None if config is None else config.queue,
        "computation_time_s": None if config is None else config.compute,
        "epochs": run.epochs or (len(run.utilizations) or None),
        "data_loader": None if config is None else _LOADERS.get(config.loader, config.loader),
        "au_threshold_pct": _percent(None if config is None else config.threshold),
        "start": run.start,
        "overrides": run.overrides,
    }


def _measured(run: Run) -> dict[str, object]:
    """What was measured, and what follows from it."""
    batch, throughput = run.batch, run.throughput
    compute = None if run.config is None else run.config.compute
    ideal = None if not batch or not compute else run.accelerators * batch / compute
    samples = _samples(run)
    steps = None if samples is None or not batch else samples // (run.accelerators * batch)
    step = None if not batch or not throughput else run.accelerators * batch / throughput
    share = None if ideal is None or throughput is None else throughput / ideal
    mean = sum(run.utilizations) / len(run.utilizations) if run.utilizations else 0.0
    spread = math.sqrt(
        sum((value - mean) ** 2 for value in run.utilizations) / max(1, len(run.utilizations))
    )
    return {
        "au_pct_mean": run.utilization,
        "au_pct_sd_epochs": spread if run.utilizations else None,
        "au_pct_epochs": ";".join(f"{value:.3f}" for value in run.utilizations),
        "throughput_samples_s": throughput,
        "throughput_sd_epochs": run.throughput_deviation,
        "throughput_MiB_s": run.rate,
        "pass": run.verdict,
        "ideal_throughput_samples_s": ideal,
        "throughput_over_ideal": share,
        "mean_step_time_s": step,
        "steps_per_epoch": None if steps is None else int(steps),
        "first_step_s_est": _mean([rank.first for rank in run.ranks]),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100.0


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _samples(run: Run) -> float | None:
    if run.files is None or run.samples_per_file is None:
        return None
    return run.files * run.samples_per_file


def _data(run: Run) -> float | None:
    samples = _samples(run)
    return None if samples is None or run.config is None else samples * run.config.record


def _submission(path: Path) -> dict[str, str]:
    """Names from the folders of a submission: DIVISION/SUBMITTER/results/SYSTEM/..."""
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


def _summary(runs: Sequence[Run]) -> list[str]:
    heading = ("run", "workload", "ranks", "AU", "samples/s", "per rank", "MiB/s", "per rank", "")
    rows: list[tuple[str, ...]] = [heading, *(_run_row(run) for run in runs)]
    lines = _aligned(rows)
    for run in runs:
        if run.ranks:
            lines += ["", f"{run.path}: means over epochs", *_aligned(_rank_rows(run))]
    return lines


def _run_row(run: Run) -> tuple[str, ...]:
    return (
        str(run.path),
        f"{run.workload}/{run.accelerator}",
        str(run.accelerators),
        "-" if run.utilization is None else f"{run.utilization:.2f}%",
        *_both(run.throughput, run.accelerators),
        *_both(run.rate, run.accelerators),
        run.verdict,
    )


def _both(value: float | None, ranks: int) -> tuple[str, str]:
    return ("-", "-") if value is None else (f"{value:,.1f}", f"{value / ranks:,.2f}")


def _rank_rows(run: Run) -> list[tuple[str, ...]]:
    """The ranks, or the fastest and slowest of many."""
    rows: list[tuple[str, ...]] = [("rank", "first step", "later steps", "waits for data")]
    ranks = sorted(run.ranks, key=lambda rank: rank.step)
    if len(ranks) > _RANKS_SHOWN:
        half = _RANKS_SHOWN // 2
        left = len(ranks) - 2 * half
        chosen = (*map(_rank_row, ranks[:half]), ("...", f"{left} more", "", ""))
        return [*rows, *chosen, *map(_rank_row, ranks[-half:])]
    return [*rows, *map(_rank_row, sorted(ranks, key=lambda rank: rank.number))]


def _rank_row(rank: Rank) -> tuple[str, ...]:
    return (
        str(rank.number),
        units.show(rank.first, units.SECOND),
        units.show(rank.step, units.SECOND),
        f"{rank.waiting:.1%}",
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return lines
