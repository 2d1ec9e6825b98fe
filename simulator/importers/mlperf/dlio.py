"""A DLIO workload (MLPerf Storage) as a scenario: emulated accelerators that wait for data.

`dlio_workload` reads the file. Loader rules: argonne-lcf/dlio_benchmark,
``data_loader/torch_data_loader.py`` and ``reader/tf_reader.py``; each rank is one process that
reads, waits for `computation_time` and meets the others at a barrier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator import units
from simulator.importers.entries import Entry
from simulator.importers.mlperf.dlio_workload import WANTED, Workload, workload
from simulator.importers.reading import changed, refuse
from simulator.importers.result import Fragment, Kind
from simulator.importers.yaml_reading import read_yaml
from simulator.reading.hardware.profile_text import binary_size, comment, quantity, quote

_INSTANT: Final = 1e-9
"""Time of a batch below which an accelerator takes it at once [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the workload runs, which its file doesn't say: all of it may be left out.

    `accelerators` are those of one of `hosts` equal machines.
    """

    machine: str = ""
    storage: str = ""
    accelerators: int | None = None
    hosts: int = 1


def read(path: Path, place: Place) -> Fragment:
    """A scenario (without a machine unless `place` names one) from a workload file.

    Parameters
    ----------
    path : pathlib.Path
        YAML: a workload, or the dump of a whole run that holds one under ``workload``.
    place : Place
        Where it runs.

    Raises
    ------
    InputError
        For what is no workload, trains nothing, or holds impossible values.
    """
    data = read_yaml(path, WANTED)
    top = Entry(data, str(path))
    found = workload(top, path)
    refuse(top.problems)
    return _fragment(found, place, path)


def _fragment(found: Workload, place: Place, path: Path) -> Fragment:
    head = comment(
        "\n".join([f"From {path.name} (DLIO workload, {changed(path)}).", *_summary(found)])
    )
    sections = [
        _section("", [("schema", "1"), ("name", quote(found.name))]),
        _section("hardware", _hardware(place)),
        _section("data", _data(found)),
        _spread(found),
        _section("input", _input(found)),
        _section("model", [("step_times", _step_times(found))]),
        _section("train", [("batch_size", str(found.batch)), ("epochs", f"{found.epochs:g}")]),
    ]
    warnings = list(found.warnings)
    if not place.machine:
        warnings.append("no --machine: the scenario has no [hardware] yet")
    text = "\n\n".join(section for section in sections if section)
    return Fragment(
        kind=Kind.SCENARIO,
        text=f"{head}\n{text}\n",
        summary=_summary(found),
        warnings=tuple(warnings),
    )


def _section(name: str, lines: list[tuple[str, str]]) -> str:
    if not lines:
        return ""
    heading = [f"[{name}]"] if name else []
    return "\n".join([*heading, *(f"{key} = {value}" for key, value in lines)])


def _hardware(place: Place) -> list[tuple[str, str]]:
    if not place.machine:
        return []
    lines = [("machine", quote(place.machine))]
    if place.hosts > 1:
        lines.append(("count", str(place.hosts)))
    if place.storage:
        lines.append(("storage", quote(place.storage)))
    return [*lines, ("emulated", str(place.accelerators or 1))]


def _data(found: Workload) -> list[tuple[str, str]]:
    lines = [
        ("samples", f"{found.samples:.0f}"),
        ("bytes_per_sample", quantity(found.record, units.BYTE)),
    ]
    if found.samples_per_file > 1.0:
        size = quantity(found.record * found.samples_per_file, units.BYTE)
        lines += [("layout", '"shards"'), ("shard_size", size)]
    access = "random" if found.shuffled and found.samples_per_file == 1.0 else "sequential"
    return [*lines, ("access", quote(access))]


def _spread(found: Workload) -> str:
    """Sizes of files: both sides of a matrix of bytes vary, each by half of what is configured."""
    if not found.deviation:
        return ""
    share = found.deviation / math.sqrt(2.0) / found.record
    return _section(
        "data.size_spread", [("shape", '"gamma"'), ("relative_deviation", f"{share:.4g}")]
    )


def _input(found: Workload) -> list[tuple[str, str]]:
    lines = [("loader", quote(found.loader)), ("workers", str(found.threads))]
    ahead = _ahead(found)
    if ahead:
        lines.append(("prefetch", str(ahead)))
    if found.loader == "pytorch":
        lines.append(("persistent_workers", "true"))
    lines.append(("drop_last", "true"))
    if found.preprocess:
        lines.append(("augment", quantity(found.preprocess, units.SECOND)))
    lines.append(("output_bytes_per_sample", quantity(found.resized or found.record, units.BYTE)))
    return lines


def _ahead(found: Workload) -> int:
    """Batches read ahead: by each worker for PyTorch, in all for the others; 0 to leave it out."""
    if found.loader != "pytorch":
        return max(1, found.queue)
    if not found.threads:
        return 0
    return max(1, math.ceil(found.queue / found.threads)) if found.queue else 2


def _step_times(found: Workload) -> str:
    time = quantity(found.compute, units.SECOND)
    return f"[{{ batch_size = {found.batch}, time = {time} }}]"


def _summary(found: Workload) -> tuple[str, ...]:
    size = units.show(found.record * found.samples, units.BYTE)
    lines = [
        f"{found.name}: {found.samples:,.0f} samples of {binary_size(found.record)}, {size} in all",
        f"an accelerator takes {found.batch} samples {_pace(found)}",
    ]
    if found.threshold is not None:
        lines.append(f"passes at {found.threshold:.0%} of that")
    return tuple(lines)


def _pace(found: Workload) -> str:
    """How fast an accelerator takes its batches."""
    if found.compute < _INSTANT:
        return "as soon as they are there: it never limits"
    rate = found.batch / found.compute
    bandwidth = units.show(rate * found.record, units.BYTE_PER_SECOND)
    return f"every {units.show(found.compute, units.SECOND)}: {rate:,.1f} samples/s, {bandwidth}"
