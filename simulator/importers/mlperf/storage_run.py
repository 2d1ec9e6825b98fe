"""One run of MLPerf Storage: its summary, its configuration and what each rank noted of its steps.

Layout: argonne-lcf/dlio_benchmark ``utils/statscounter.py`` (2.0.0 of PyPI was run; the branches
mlperf_storage_v1.0 and v2.0). ``summary.json`` holds means over epochs, ``RANK_output.json`` the
seconds each step took to load, in all, and to compute. The configuration lies in ``configs``,
``dlio_config`` or ``.hydra``. MB are MiB there, of nominal records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.entries import Entry
from simulator.importers.mlperf import dlio_workload
from simulator.importers.mlperf.dlio_workload import Workload
from simulator.importers.reading import read_json
from simulator.importers.yaml_reading import read_yaml
from simulator.reading.reading import fail
from simulator.units import Bytes, PerSecond, Seconds

WANTED: Final = "the summary of a run of MLPerf Storage"
MIB: Final = units.parse("1 MiB", units.BYTE)

_CONFIGS: Final = ("configs", "dlio_config", ".hydra")
_NAMED: Final = re.compile(r"([a-z0-9]+)[_-]([abhv]\d+)")
_WORKLOAD: Final = re.compile(r"workload=([a-z0-9]+)_([a-z]+\d+)")
_PERCENT: Final = 100.0
_MOST: Final = 100.5
"""A utilization that rounding and clocks may still make [%]."""
_AGREE: Final = 0.01
_CLOCK: Final = 0.05
"""What a rank's own clock may add to an epoch [s]."""
_MOST_COUNT: Final = 5e6
"""Of accelerators, hosts, epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """What one rank noted, means over epochs [s].

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
    """The run that left `folder` behind, and what is wrong with it.

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
        utilization=_finite(metric, "train_au_mean_percentage", _MOST),
        utilizations=_each(metric, "train_au_percentage", _MOST),
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
    value = None if found is None else found.number(1.0, _MOST_COUNT)
    return None if value is None else int(value)


def _finite(metric: Entry, name: str, most: float = math.inf) -> float | None:
    """A figure of the summary; None where it is missing or NaN, which a run may report."""
    found = metric.get(name)
    if found is None or (isinstance(found.value, float) and math.isnan(found.value)):
        return None
    return found.number(0.0, most)


def _each(metric: Entry, name: str, most: float) -> tuple[float, ...]:
    found = metric.get(name)
    values = [] if found is None else [entry.number(0.0, most) for entry in found.entries()]
    return tuple(value for value in values if value is not None)


def _joined(top: Entry, name: str) -> str:
    """A figure of each host (one, where all are equal); older versions write a single one."""
    found = top.get(name)
    if found is None:
        return ""
    values = found.value if isinstance(found.value, list) else [found.value]
    texts = [
        f"{value:.1f}".removesuffix(".0") for value in values if isinstance(value, int | float)
    ]
    return ";".join(dict.fromkeys(texts))


def _check(found: Run, metric: Entry) -> None:
    """Figures that contradict each other: one of them is in another unit, or was changed."""
    if found.utilization is None and found.throughput is None:
        metric.fault("has neither a utilization nor a throughput")
    mean = found.utilization
    if mean is not None and found.utilizations:
        exact = sum(found.utilizations) / len(found.utilizations)
        if abs(exact - mean) > _AGREE * _PERCENT:
            message = f"has a mean utilization of {mean:g}%, but epochs of {exact:.4g}% on average"
            metric.fault(message)
    config, rate, throughput = found.config, found.rate, found.throughput
    if config is None or rate is None or not throughput:
        return
    moved = throughput * config.record / MIB
    if abs(moved - rate) > _AGREE * moved:
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
    """The overrides of the command line, in one line."""
    path = next((p for n in _CONFIGS if (p := folder / n / "overrides.yaml").is_file()), None)
    if path is None:
        return ""
    data = read_yaml(path, "overrides of a run")
    words = [str(word) for word in data] if isinstance(data, list) else []
    return " ".join(word.lstrip("+").replace("workload.", "") for word in words)


def _names(folder: Path, config: Workload | None, top: Entry) -> tuple[str, str]:
    """Workload and accelerator, from the overrides, the configuration or the folders' names."""
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
    """What each rank noted, in their order."""
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
    """How long each epoch took [s], where it stands."""
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
        if length is not None and taken > length * (1.0 + _AGREE) + _CLOCK:
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
    """Loading times and whole times of the steps of each block of an epoch that trains [s]."""
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
