"""DLIO workloads (MLPerf Storage) as scenarios: emulated accelerators that wait for data.

Keys and defaults: argonne-lcf/dlio_benchmark, ``utils/config.py`` (2.0.0 of PyPI, which is of
v1.0's time, and the branch mlperf_storage_v2.0). Loader rules: ``data_loader/torch_data_loader.py``
and ``reader/tf_reader.py``; each rank is one process that reads, waits for `computation_time` and
meets the others at a barrier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from simulator import units
from simulator.importers.foreign import Entry, changed, read_yaml, refuse
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import binary_size, comment, quantity, quote
from simulator.reading.reading import fail

WANTED: Final = "a DLIO workload"
SECTIONS: Final = (
    "model",
    "framework",
    "workflow",
    "dataset",
    "reader",
    "train",
    "checkpoint",
    "metric",
)
"""The sections of a workload, of which any may be left out."""

_DEFAULT_RECORD: Final = 65536.0
_DEFAULT_FILES: Final = 8.0
_DEFAULT_QUEUE: Final = 2.0
_LOADERS: Final = {
    "pytorch": "pytorch",
    "tensorflow": "tf.data",
    "native_dali": "dali",
    "dali": "dali",
}
_MAX_FILES: Final = 5e12
_MAX_COUNT: Final = 5e6
"""Files and samples, and all other counts: more is a slip."""
_MAX_STEP: Final = 10.0 * units.MINUTE
_LONG_STEP: Final = 30.0
"""Times of a step that nothing takes, and that few do: the file may be in another unit [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload file with defaults filled in; sizes in bytes, times in seconds."""

    name: str
    loader: str
    samples: float
    files: float
    samples_per_file: float
    record: float
    deviation: float
    resized: float
    batch: int
    threads: int
    queue: int
    epochs: float
    compute: float
    preprocess: float
    shuffled: bool
    threshold: float | None
    warnings: tuple[str, ...] = ()


def workload(top: Entry, path: Path) -> Workload:
    """Return the workload in a document; problems are noted in `top`."""
    inner = top.get("workload")
    entry = inner if inner is not None and inner.is_mapping() else top
    if not entry.is_mapping() or not any(entry.get(name) for name in SECTIONS):
        fail(str(path), f"is not {WANTED}", hint=f"it should hold {', '.join(SECTIONS)}")
    workflow = _Section.of(entry, "workflow")
    if not workflow.flag("train", default=True):
        fail(str(path), "doesn't train (workflow.train is false)", hint="nothing reads data")
    return _of_sections(
        _Section.of(entry, "dataset"),
        _Section.of(entry, "reader" if entry.get("data_reader") is None else "data_reader"),
        _Section.of(entry, "train"),
        _About(
            name=_model_name(entry, path),
            threshold=_Section.of(entry, "metric").optional("au", most=1.0),
            checkpoint=workflow.flag("checkpoint", default=False),
            evaluation=workflow.flag("evaluation", default=False),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """Context of the sections: the file and its problems."""

    name: str
    threshold: float | None
    checkpoint: bool
    evaluation: bool


@dataclass(frozen=True, slots=True)
class _Section:
    """A section, which may be missing, and the keys whose defaults were taken."""

    entry: Entry
    assumed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, entry: Entry, name: str) -> _Section:
        """Return the section called `name`."""
        found = entry.get(name)
        if found is None:
            return cls(Entry({}, entry.origin, (*entry.path, name), entry.problems))
        if not found.is_mapping():
            found.fault("is not a section", found=found.value)
        return cls(found)

    def number(
        self, keys: str, default: float, *, least: float = 0.0, most: float = math.inf
    ) -> float:
        """Return the number under the first of `keys` that is there."""
        for key in keys.split():
            found = self.entry.get(key)
            if found is not None:
                value = found.number(least, most)
                return default if value is None else value
        self.assumed.append(f"{self.entry.path[-1]}.{keys.split(maxsplit=1)[0]} = {default:g}")
        return default

    def count(
        self, key: str, default: float, *, least: float = 1.0, most: float = _MAX_COUNT
    ) -> int:
        """Return the whole number under `key`."""
        value = self.number(key, default, least=least, most=most)
        if value != int(value):
            self.entry.fault(f"has a '{key}' that is not a whole number", found=value)
        return int(value)

    def optional(self, keys: str, *, most: float = math.inf) -> float | None:
        """Return the number under the first of `keys` that is there; None if there is none."""
        names = keys.split()
        here = next((key for key in names if self.entry.get(key) is not None), None)
        return None if here is None else self.entry.number_at(here, most=most)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the switch under `key`.

        YAML writes them as booleans, Hydra's overrides as text.
        """
        value = self.entry.text_at(key) if self.entry.get(key) is not None else None
        found = self.entry.get(key)
        if found is not None and isinstance(found.value, bool):
            return found.value
        return default if value is None else value.lower() in {"true", "yes", "on"}

    def text(self, key: str, default: str) -> str:
        """Return the text under `key`."""
        return self.entry.text_at(key) or default


def _model_name(entry: Entry, path: Path) -> str:
    model = entry.get("model")
    if model is not None and model.is_mapping():
        return model.text_at("name") or path.stem
    return entry.text_at("model") or path.stem


def _of_sections(dataset: _Section, reader: _Section, train: _Section, about: _About) -> Workload:
    files = dataset.number("num_files_train", _DEFAULT_FILES, least=1.0, most=_MAX_FILES)
    each = dataset.number("num_samples_per_file", 1.0, least=1.0, most=_MAX_FILES)
    record = dataset.number("record_length_bytes record_length", _DEFAULT_RECORD, least=1.0)
    deviation = dataset.optional("record_length_bytes_stdev record_length_stdev") or 0.0
    resized = dataset.optional("record_length_bytes_resize record_length_resize") or 0.0
    named = reader.text("data_loader", "")
    if not named:
        named = "tensorflow"
        reader.assumed.append(f"reader.data_loader = {named}")
    loader = _LOADERS.get(named.lower())
    if loader is None:
        reader.entry.fault("has an unknown 'data_loader'", found=named, hint=", ".join(_LOADERS))
    compute, varies = _compute(train)
    found = Workload(
        name=about.name,
        loader=loader or "pytorch",
        samples=files * each,
        files=files,
        samples_per_file=each,
        record=record,
        deviation=deviation,
        resized=resized,
        batch=reader.count("batch_size", 1.0),
        threads=reader.count("read_threads", 1.0, least=0.0, most=4096.0),
        queue=reader.count("prefetch_size", _DEFAULT_QUEUE, least=0.0),
        epochs=train.number("epochs", 1.0, least=1.0, most=_MAX_COUNT),
        compute=compute,
        preprocess=_mean(reader.entry.get("preprocess_time")),
        shuffled=any(
            section.text(key, "off").lower() not in {"off", "false"}
            for section in (reader, dataset)
            for key in ("sample_shuffle", "file_shuffle")
        ),
        threshold=about.threshold,
    )
    assumed = [*dataset.assumed, *reader.assumed, *train.assumed]
    warnings = (*_warnings(found, about, varies, train), *_defaults(assumed))
    return replace(found, warnings=warnings)


def _compute(train: _Section) -> tuple[float, bool]:
    """Return mean time of a step without data [s], and whether it varies."""
    given = train.entry.get("computation_time")
    if given is None:
        hint = "seconds that an accelerator computes on a batch"
        train.entry.fault("has no 'computation_time'", hint=hint)
        return 0.0, False
    mean = _mean(given)
    if mean > _MAX_STEP:
        given.fault("is longer than ten minutes", found=f"{mean:g}", hint="it is in seconds")
    spread = given.number_at("stdev") if given.is_mapping() else None
    spread = spread or train.optional("computation_time_stdev")
    return mean, bool(spread)


def _mean(given: Entry | None) -> float:
    """Return the mean of a time that is a number, or a distribution.

    0 where nothing is given [s].
    """
    if given is None:
        return 0.0
    found = given.need("mean") if given.is_mapping() else given
    value = None if found is None else found.number()
    return value or 0.0


def _defaults(assumed: list[str]) -> Iterator[str]:
    if assumed:
        yield f"not in the file, so DLIO's defaults: {', '.join(assumed)}"


def _warnings(found: Workload, about: _About, varies: bool, train: _Section) -> Iterator[str]:  # noqa: FBT001 - an internal fact passed on
    if found.compute > _LONG_STEP:
        yield f"computation_time is {found.compute:g} s; is it in seconds?"
    if varies:
        yield "the compute time varies in the file; its mean is taken for every step"
    if found.preprocess:
        yield "reader.preprocess_time is a wait in DLIO; it is taken as CPU time"
    if found.queue == 0 and found.loader == "tf.data":
        yield "prefetch_size = 0: nothing is read ahead; one batch is the least that can be said"
    if about.checkpoint:
        yield "checkpoints are left out; DLIO writes them outside the time it measures"
    if about.evaluation:
        yield "evaluation is left out"
    steps = train.optional("total_training_steps")
    if steps:
        yield f"the run stops after {steps:g} steps; whole epochs are described"
    yield "CPU time of reading a sample is not in the file: input.decode is 0 until measured"


_INSTANT: Final = 1e-9
"""Time of a batch below which an accelerator takes it at once [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Machine and storage of the workload, which are not in its file; all of it is optional.

    `accelerators` are those of one of `hosts` equal machines.
    """

    machine: str = ""
    storage: str = ""
    accelerators: int | None = None
    hosts: int = 1


def read(path: Path, place: Place) -> Fragment:
    """Return a scenario (without a machine unless `place` names one) from a workload file.

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
    """Return sizes of files.

    Both sides of a matrix of bytes vary, each by half of what is configured.
    """
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
    """Return batches read ahead.

    By each worker for PyTorch, in all for the others; 0 to leave it out.
    """
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
    """Return the rate at which an accelerator takes its batches."""
    if found.compute < _INSTANT:
        return "as soon as they are there: it never limits"
    rate = found.batch / found.compute
    bandwidth = units.show(rate * found.record, units.BYTE_PER_SECOND)
    return f"every {units.show(found.compute, units.SECOND)}: {rate:,.1f} samples/s, {bandwidth}"
