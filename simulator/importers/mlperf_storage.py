"""Result folders of MLPerf Storage, as rows of the table ``mlperf_storage``.

The rows have the columns of ``evidence/convert.py mlperf_storage``; values that a folder does not
have stay empty. Layout: argonne-lcf/dlio_benchmark ``utils/statscounter.py`` (2.0.0 of PyPI was
run; the branches mlperf_storage_v1.0 and v2.0). ``summary.json`` holds means over epochs,
``RANK_output.json`` the seconds each step took to load, in all, and to compute. The configuration
is in ``configs``, ``dlio_config`` or ``.hydra``. MB are MiB there, of nominal records.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers import dlio as dlio_workload
from simulator.importers.dlio import Workload
from simulator.importers.foreign import Entry, read_json, read_yaml, refuse
from simulator.reading.reading import fail, neighbour
from simulator.units import Bytes, PerSecond, Seconds

WANTED: Final = "the summary of a run of MLPerf Storage"
MIB: Final = units.parse("1 MiB", units.BYTE)

_CONFIGS: Final = ("configs", "dlio_config", ".hydra")
_NAMED: Final = re.compile(r"([a-z0-9]+)[_-]([abhv]\d+)")
_WORKLOAD: Final = re.compile(r"workload=([a-z0-9]+)_([a-z]+\d+)")
_PERCENT: Final = 100.0
_MAX_PERCENT: Final = 100.5
"""A utilization that rounding and clocks may still make [%]."""
_MEAN_TOLERANCE: Final = 0.01
_CLOCK_TOLERANCE: Final = 0.05
"""What a rank's own clock may add to an epoch [s]."""
_MAX_COUNT: Final = 5e6
"""Of accelerators, hosts, epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Times of one rank, means over epochs [s].

    `waiting` is the share of later steps that it waits for data.
    """

    number: int
    first: Seconds
    step: Seconds
    waiting: float
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `utilization` is in percent; None where the run does not say."""

    path: Path
    version: str
    workload: str
    accelerator: str
    accelerators: int
    hosts: int | None
    files: float | None
    samples_per_file: float | None
    cpus: str
    memory: str
    caching: str
    utilization: float | None
    utilizations: tuple[float, ...]
    throughput: PerSecond | None
    throughput_deviation: float | None
    rate: Bytes | None
    verdict: str
    epochs: int | None
    start: str
    config: Workload | None
    config_path: Path | None
    overrides: str
    ranks: tuple[Rank, ...]
    warnings: tuple[str, ...] = ()

    @property
    def batch(self) -> int | None:
        """Samples of a step of one accelerator."""
        return None if self.config is None else self.config.batch


def read_run(folder: Path, version: str = "") -> tuple[Run | None, list[Problem]]:
    """Return the run that left `folder` behind, and what is wrong with it.

    Parameters
    ----------
    folder : pathlib.Path
        Holds a ``summary.json``.
    version : str
        Version of the benchmark; by default what the layout tells.
    """
    path = folder / "summary.json"
    top = Entry(read_json(path, WANTED), str(path))
    metric = top.need("metric", hint="the run did not finish")
    accelerators = _count(top, "num_accelerators", needed=True)
    if metric is None or accelerators is None:
        return None, top.problems
    config_path = _config_path(folder)
    config = None if config_path is None else _config(config_path)
    workload, accelerator = _names(folder, config, top)
    found = Run(
        path=folder,
        version=version or _version(folder, top),
        workload=workload,
        accelerator=accelerator,
        accelerators=accelerators,
        hosts=_count(top, "num_hosts"),
        files=top.number_at("num_files_train"),
        samples_per_file=top.number_at("num_samples_per_file"),
        cpus=_joined(top, "host_cpu_count"),
        memory=_joined(top, "host_memory_GB"),
        caching=_joined(top, "potential_caching"),
        utilization=_finite(metric, "train_au_mean_percentage", _MAX_PERCENT),
        utilizations=_each(metric, "train_au_percentage", _MAX_PERCENT),
        throughput=_finite(metric, "train_throughput_mean_samples_per_second"),
        throughput_deviation=_finite(metric, "train_throughput_stdev_samples_per_second"),
        rate=_finite(metric, "train_io_mean_MB_per_second"),
        verdict=metric.text_at("train_au_meet_expectation") or "",
        epochs=_count(top, "epochs"),
        start=top.text_at("start") or "",
        config=config,
        config_path=config_path,
        overrides=_overrides(folder),
        ranks=(),
    )
    _check(found, metric)
    problems = top.problems
    if not problems:
        ranks, more = _ranks(folder)
        problems, found = more, replace(found, ranks=ranks, warnings=tuple(_doubts(found, ranks)))
    return found, problems


def _count(top: Entry, name: str, *, needed: bool = False) -> int | None:
    found = top.need(name) if needed else top.get(name)
    value = None if found is None else found.number(1.0, _MAX_COUNT)
    return None if value is None else int(value)


def _finite(metric: Entry, name: str, most: float = math.inf) -> float | None:
    """Return a figure of the summary; None where it is missing or NaN, which a run may report."""
    found = metric.get(name)
    if found is None or (isinstance(found.value, float) and math.isnan(found.value)):
        return None
    return found.number(0.0, most)


def _each(metric: Entry, name: str, most: float) -> tuple[float, ...]:
    found = metric.get(name)
    values = [] if found is None else [entry.number(0.0, most) for entry in found.entries()]
    return tuple(value for value in values if value is not None)


def _joined(top: Entry, name: str) -> str:
    """Return a figure of each host (one, where all are equal).

    Older versions write a single one.
    """
    found = top.get(name)
    if found is None:
        return ""
    values = found.value if isinstance(found.value, list) else [found.value]
    texts = [
        f"{value:.1f}".removesuffix(".0") for value in values if isinstance(value, int | float)
    ]
    return ";".join(dict.fromkeys(texts))


def _check(found: Run, metric: Entry) -> None:
    """Return figures that contradict each other: one of them is in another unit, or was changed."""
    if found.utilization is None and found.throughput is None:
        metric.fault("has neither a utilization nor a throughput")
    mean = found.utilization
    if mean is not None and found.utilizations:
        exact = sum(found.utilizations) / len(found.utilizations)
        if abs(exact - mean) > _MEAN_TOLERANCE * _PERCENT:
            message = f"has a mean utilization of {mean:g}%, but epochs of {exact:.4g}% on average"
            metric.fault(message)
    config, rate, throughput = found.config, found.rate, found.throughput
    if config is None or rate is None or not throughput:
        return
    moved = throughput * config.record / MIB
    if abs(moved - rate) > _MEAN_TOLERANCE * moved:
        records = f"{throughput:.4g} samples/s of {config.record:.0f} B"
        message = f"reports {rate:.4g} MiB/s, but {records} are {moved:.4g} MiB/s"
        metric.fault(message, hint="one of them is in another unit")


def _config_path(folder: Path) -> Path | None:
    paths = (folder / name / "config.yaml" for name in _CONFIGS)
    return next((path for path in paths if path.is_file()), None)


def _config(path: Path) -> Workload:
    top = Entry(read_yaml(path, dlio_workload.WANTED), str(path))
    found = dlio_workload.workload(top, path)
    if top.problems:
        problem = top.problems[0]
        fail(
            problem.origin, f"{problem.key}: {problem.message}" if problem.key else problem.message
        )
    return found


def _overrides(folder: Path) -> str:
    """Return the overrides of the command line, in one line."""
    path = next((p for n in _CONFIGS if (p := folder / n / "overrides.yaml").is_file()), None)
    if path is None:
        return ""
    data = read_yaml(path, "overrides of a run")
    words = [str(word) for word in data] if isinstance(data, list) else []
    return " ".join(word.lstrip("+").replace("workload.", "") for word in words)


def _names(folder: Path, config: Workload | None, top: Entry) -> tuple[str, str]:
    """Return workload and accelerator from overrides, configuration or the folders' names."""
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


def _ranks(folder: Path) -> tuple[tuple[Rank, ...], list[Problem]]:
    """Return the times of each rank, in order."""
    paths = {int(path.name.partition("_")[0]): path for path in folder.glob("[0-9]*_output.json")}
    ranks, problems = [], []
    lengths = _durations(folder)
    for number, path in sorted(paths.items()):
        top = Entry(read_json(path, "what a rank noted of its steps"), str(path))
        rank = _rank(number, top, lengths)
        problems += top.problems
        if rank is not None:
            ranks.append(rank)
    return tuple(ranks), problems


def _durations(folder: Path) -> dict[str, float]:
    """Return the duration of each epoch [s], where it is given."""
    names = ("per_epoch_stats.json", "0_per_epoch_stats.json")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        return {}
    top = Entry(read_json(path, "the times of epochs"), str(path))
    found = {str(epoch.path[-1]): epoch.number_at("duration") for epoch in top.entries()}
    return {epoch: length for epoch, length in found.items() if length is not None}


def _rank(number: int, top: Entry, lengths: dict[str, float]) -> Rank | None:
    firsts, sums, waits, steps = [], 0.0, 0.0, 0
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
            sums, waits, steps = sums + sum(whole[1:]), waits + sum(load[1:]), steps + len(whole)
    if not firsts:
        top.fault("notes no step")
        return None
    later = steps - len(firsts)
    return Rank(
        number=number,
        first=sum(firsts) / len(firsts),
        step=sums / later if later else math.nan,
        waiting=waits / sums if sums else math.nan,
        steps=steps,
    )


def _blocks(epoch: Entry) -> Iterator[tuple[list[float], list[float]]]:
    """Return loading and total times of the steps of each training block of an epoch [s]."""
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


def _doubts(found: Run, ranks: tuple[Rank, ...]) -> Iterator[str]:
    if ranks and len(ranks) != found.accelerators:
        yield f"{found.path}: {len(ranks)} of {found.accelerators} ranks left their steps behind"
    if found.utilization is None:
        yield f"{found.path}: reports no utilization"
    if found.throughput is None:
        yield f"{found.path}: reports no throughput"
    if found.config is None:
        yield f"{found.path}: has no config.yaml: batch, workers and compute time are left empty"
    if found.accelerator == "not read":
        yield f"{found.path}: no name tells which accelerator was emulated"


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
_MAX_RUNS: Final = 2000
_GIB: Final = units.parse("1 GiB", units.BYTE)
_MAX_RANKS_SHOWN: Final = 8
_LOADERS: Final = {"tf.data": "tensorflow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Runs as a table: `csv` for files, `summary` for people."""

    csv: str
    summary: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Values that a folder does not have: the names of a submission, and the version."""

    system: str = ""
    submitter: str = ""
    version: str = ""


def read(folders: Sequence[Path], given: Given) -> Results:
    """Return the runs in one or more folders, each anywhere below.

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
    if len(found) > _MAX_RUNS:
        fail(str(folder), f"holds {len(found)} runs", hint=f"at most {_MAX_RUNS} at once")
    return found


def _csv(rows: Sequence[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(run: Run, given: Given) -> dict[str, str]:
    return {key: _cell(value) for key, value in (_about(run, given) | _measured(run)).items()}


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _about(run: Run, given: Given) -> dict[str, object]:
    """Return the cells that describe a run."""
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
    """Return the measured cells and those derived from them."""
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
    """Return names from the folders of a submission: DIVISION/SUBMITTER/results/SYSTEM/..."""
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
    """Return the ranks, or the fastest and slowest of many."""
    rows: list[tuple[str, ...]] = [("rank", "first step", "later steps", "waits for data")]
    ranks = sorted(run.ranks, key=lambda rank: rank.step)
    if len(ranks) > _MAX_RANKS_SHOWN:
        half = _MAX_RANKS_SHOWN // 2
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
