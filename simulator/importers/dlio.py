"""DLIO workloads (MLPerf Storage) as scenarios: accelerators that wait for data, or checkpoints.

Keys and defaults: argonne-lcf/dlio_benchmark, ``utils/config.py`` (2.0.0 of PyPI, as old
as v1.0, and the branch mlperf_storage_v2.0). Loader rules: ``data_loader/torch_data_loader.py``
and ``reader/tf_reader.py``; each rank is one process that reads, waits for `computation_time` and
meets the others at a barrier. A workload that only writes checkpoints states a transformer, how it
is spread and how many checkpoints are written (the same branch, ``checkpointing``; the MLPerf
Storage rules, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from simulator import units
from simulator.importers.foreign import Entry, changed, read_yaml, refuse
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import binary_size, comment, quantity, quote
from simulator.reading.reading import fail
from simulator.records import dataclass

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
"""Sections of a workload file; all are optional."""

_DEFAULT_RECORD: Final = 65536.0
_DEFAULT_FILES: Final = 8.0
_DEFAULT_QUEUE: Final = 2
_LOADERS: Final = {
    "pytorch": "pytorch",
    "tensorflow": "tf.data",
    "native_dali": "dali",
    "dali": "dali",
}
_SHARDING: Final = ("none", "optimizer", "gradients", "parameters")
"""Values of ``parallelism.sharding``, by ZeRO stage."""
_NUMBERS: Final = {
    "fp16": "fp16",
    "float16": "fp16",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp32": "fp32",
    "float32": "fp32",
}
_DEFAULT_CHECKPOINTS: Final = 10
_MAX_FILES: Final = 5e12
_MAX_COUNT: Final = 5e6
"""Upper bounds of the number of files and samples, and of other counts."""
_MAX_STEP: Final = 10.0 * units.MINUTE
_INSTANT: Final = 1e-9
"""Compute time of a step below which it counts as zero [s]."""
_LONG_STEP: Final = 30.0
"""Step times that are impossible, and that are suspicious (a wrong unit) [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload file with defaults filled in; sizes in bytes, times in seconds.

    `record` is the mean size of a sample in the file, `deviation` its standard deviation, `resized`
    the size passed to the accelerator (0: `record`). `threads` are reader threads, `queue` the
    prefetch depth, `compute` the compute time of a step, `preprocess` the CPU time per sample, and
    `threshold` the required accelerator utilization.
    """

    name: str
    loader: str
    samples: float
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
    """Convert the content of a workload file; problems are added to ``top.problems``."""
    entry = _inner(top)
    workflow, dataset, train = (_section(entry, name) for name in ("workflow", "dataset", "train"))
    reader = _section(entry, "reader" if entry.get("data_reader") is None else "data_reader")
    if not workflow.flag("train", default=True):
        fail(
            str(path),
            "doesn't train (workflow.train is false)",
            hint="nothing reads data or writes checkpoints",
        )
    model = entry.get("model")
    named = model.text_at("name") if model and model.is_mapping() else entry.text_at("model")
    files = dataset.number("num_files_train", _DEFAULT_FILES, least=1.0, most=_MAX_FILES)
    per_file = dataset.number("num_samples_per_file", 1.0, least=1.0, most=_MAX_FILES)
    record = dataset.number("record_length_bytes record_length", _DEFAULT_RECORD, least=1.0)
    given = reader.text("data_loader", "")
    if not given:
        given = "tensorflow"
        reader.assumed.append(f"reader.data_loader = {given}")
    loader = _LOADERS.get(given.lower())
    if loader is None:
        reader.entry.fault("has an unknown 'data_loader'", found=given, hint=", ".join(_LOADERS))
    compute, varies = _compute(train)
    found = Workload(
        name=named or path.stem,
        loader=loader or "pytorch",
        samples=files * per_file,
        samples_per_file=per_file,
        record=record,
        deviation=dataset.optional("record_length_bytes_stdev record_length_stdev") or 0.0,
        resized=dataset.optional("record_length_bytes_resize record_length_resize") or 0.0,
        batch=reader.count("batch_size", 1),
        threads=reader.count("read_threads", 1, least=0.0, most=4096.0),
        queue=reader.count("prefetch_size", _DEFAULT_QUEUE, least=0.0),
        epochs=train.number("epochs", 1.0, least=1.0, most=_MAX_COUNT),
        compute=compute,
        preprocess=_mean(reader.entry.get("preprocess_time")),
        shuffled=any(
            section.text(key, "off").lower() not in {"off", "false"}
            for section in (reader, dataset)
            for key in ("sample_shuffle", "file_shuffle")
        ),
        threshold=_section(entry, "metric").optional("au", most=1.0),
    )
    warnings = [*_warnings(found, workflow, train)]
    if varies:
        warnings.append("the compute time varies in the file; its mean is taken for every step")
    assumed = [*dataset.assumed, *reader.assumed, *train.assumed]
    if assumed:
        warnings.append(f"not in the file, so DLIO's defaults: {', '.join(assumed)}")
    return replace(found, warnings=tuple(warnings))


def _inner(top: Entry) -> Entry:
    """Return the workload of a file, which the configuration of a run nests under ``workload``."""
    inner = top.get("workload")
    entry = inner if inner is not None and inner.is_mapping() else top
    if not entry.is_mapping() or not any(entry.get(name) for name in SECTIONS):
        fail(top.origin, f"is not {WANTED}", hint=f"it should hold {', '.join(SECTIONS)}")
    return entry


@dataclass(frozen=True, slots=True)
class _Section:
    """A section of the workload file, possibly empty; `assumed` lists keys left at defaults."""

    entry: Entry
    assumed: list[str] = field(default_factory=list)

    def number(
        self, keys: str, default: float, *, least: float = 0.0, most: float = math.inf
    ) -> float:
        """Return the number under the first key of `keys` (separated by blanks) that is present."""
        for key in keys.split():
            found = self.entry.get(key)
            if found is not None:
                value = found.number(least, most)
                return default if value is None else value
        self.assumed.append(f"{self.entry.path[-1]}.{keys.split(maxsplit=1)[0]} = {default:g}")
        return default

    def count(self, key: str, default: int, *, least: float = 1.0, most: float = _MAX_COUNT) -> int:
        """Return the integer under `key`, or `default`."""
        found = self.entry.get(key)
        if found is None:
            self.assumed.append(f"{self.entry.path[-1]}.{key} = {default}")
        value = None if found is None else found.whole(least, most)
        return default if value is None else value

    def needed(self, key: str) -> int:
        """Return the integer under `key`; report a problem and return 1 if there is none."""
        found = self.entry.need(key)
        value = None if found is None else found.whole(1.0, _MAX_COUNT)
        return value or 1

    def optional(self, keys: str, *, most: float = math.inf) -> float | None:
        """Return the number under the first of `keys` that is present; else None."""
        names = keys.split()
        here = next((key for key in names if self.entry.get(key) is not None), None)
        return None if here is None else self.entry.number_at(here, most=most)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the Boolean under `key`.

        YAML files hold Booleans, overrides of Hydra hold text.
        """
        value = self.entry.text_at(key)
        found = self.entry.get(key)
        if found is not None and isinstance(found.value, bool):
            return found.value
        return default if value is None else value.lower() in {"true", "yes", "on"}

    def text(self, key: str, default: str) -> str:
        return self.entry.text_at(key) or default


def _section(entry: Entry, name: str) -> _Section:
    """Return the section `name`; an empty section if it is missing."""
    found = entry.get(name)
    if found is None:
        return _Section(Entry({}, entry.origin, (*entry.path, name), entry.problems))
    if not found.is_mapping():
        found.fault("is not a section", found=found.value)
    return _Section(found)


def _compute(train: _Section) -> tuple[float, bool]:
    """Return the mean compute time of a step [s] and True if it varies from step to step."""
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
    """Return a time given as a number or as the mean of a distribution; 0 if it is missing [s]."""
    if given is None:
        return 0.0
    found = given.need("mean") if given.is_mapping() else given
    value = None if found is None else found.number()
    return value or 0.0


def _warnings(found: Workload, workflow: _Section, train: _Section) -> Iterator[str]:
    if found.compute > _LONG_STEP:
        yield f"computation_time is {found.compute:g} s; is it in seconds?"
    if found.preprocess:
        yield "reader.preprocess_time is a wait in DLIO; it is taken as CPU time"
    if found.queue == 0 and found.loader == "tf.data":
        yield "prefetch_size = 0: nothing is read ahead; one batch is the least that can be said"
    if workflow.flag("checkpoint", default=False):
        yield "checkpoints are left out; DLIO writes them outside the time it measures"
    if workflow.flag("evaluation", default=False):
        yield "evaluation is left out"
    steps = train.optional("total_training_steps")
    if steps:
        yield f"the run stops after {steps:g} steps; whole epochs are described"
    yield "CPU time of reading a sample is not in the file: input.decode is 0 until measured"


def read(  # noqa: PLR0913 - one parameter for each option
    path: Path,
    *,
    machine: str = "",
    storage: str = "",
    accelerators: int | None = None,
    hosts: int = 1,
    leave_out: Collection[str] = (),
) -> Fragment:
    """Convert a DLIO workload file to a scenario, without a ``[hardware]`` section if no `machine`.

    Parameters
    ----------
    path : pathlib.Path
        YAML file: a workload, or the configuration of a run with one under ``workload``.
    machine, storage : str
        Profiles of the machine and of the store, which are not in the file.
    accelerators : int, optional
        Number of emulated accelerators on each of `hosts` identical machines.
    leave_out : collection of str
        Dotted keys that are not written, as they have no effect in this scenario.

    Raises
    ------
    InputError
        If the file is not a workload, the workload doesn't train, or values are impossible.
    """
    top = Entry(read_yaml(path, WANTED), str(path))
    place: dict[str, object] = {}
    if machine:
        place["machine"] = quote(machine)
        place |= {"count": hosts} if hosts > 1 else {}
        place |= {"storage": quote(storage)} if storage else {}
    entry = _inner(top)
    workflow = _section(entry, "workflow")
    if not workflow.flag("train", default=True) and workflow.flag("checkpoint", default=False):
        place |= {"gpus": accelerators} if machine and accelerators else {}
        return _checkpoints(entry, path, place, (accelerators or 1) * hosts, leave_out)
    found = workload(top, path)
    refuse(top.problems)
    warnings = list(found.warnings)
    if machine:
        place["emulated"] = accelerators or 1
    else:
        warnings.append(_NO_MACHINE)
    time = quantity(found.compute, units.SECOND)
    step_times = f"[{{ batch_size = {found.batch}, time = {time} }}]"
    sections: dict[str, dict[str, object]] = {
        "": {"schema": 1, "name": quote(found.name)},
        "hardware": place,
        "data": _data(found),
        "data.size_spread": _size_spread(found),
        "input": _input(found),
        "model": {"step_times": step_times},
        "train": {"batch_size": found.batch, "epochs": f"{found.epochs:g}"},
    }
    return _scenario(path, sections, _summary(found), warnings, leave_out)


def _scenario(
    path: Path,
    sections: Mapping[str, Mapping[str, object]],
    summary: tuple[str, ...],
    warnings: Sequence[str],
    leave_out: Collection[str],
) -> Fragment:
    sections = {
        name: {key: value for key, value in keys.items() if f"{name}.{key}" not in leave_out}
        for name, keys in sections.items()
    }
    head = comment("\n".join([f"From {path.name} (DLIO workload, {changed(path)}).", *summary]))
    tables = [
        "\n".join([*([f"[{name}]"] if name else []), *(f"{k} = {v}" for k, v in keys.items())])
        for name, keys in sections.items()
        if keys
    ]
    return Fragment(
        kind=Kind.SCENARIO,
        text="\n".join([head, "\n\n".join(tables)]) + "\n",
        summary=summary,
        warnings=tuple(warnings),
    )


_NO_MACHINE: Final = "no --machine: the scenario has no [hardware] yet"
_STEP_IS_CHECKPOINT: Final = (
    "the model computes one token a step, so that a step is its checkpoint; DLIO computes nothing"
)


_SAVED: Final = (
    "DLIO writes 14 bytes a parameter (16-bit weights, fp32 weights and two moments); a checkpoint "
    "here has 12, without the 16-bit weights"
)


def _checkpoints(
    entry: Entry, path: Path, place: Mapping[str, object], ranks: int, leave_out: Collection[str]
) -> Fragment:
    """Convert a workload that only writes checkpoints to a scenario with one in each step."""
    model, checkpoint = _section(entry, "model"), _section(entry, "checkpoint")
    if model.entry.get("transformer") is None:
        fail(
            str(path),
            "writes checkpoints of a model without model.transformer",
            hint="only checkpoints of transformers given by their shape are read",
        )
    spread, stack = _section(model.entry, "parallelism"), _section(model.entry, "transformer")
    shape = {
        "layers": model.needed("num_layers"),
        "hidden": stack.needed("hidden_size"),
        "heads": stack.needed("num_attention_heads"),
        "kv_heads": stack.count("num_kv_heads", 0, least=0.0)
        or stack.needed("num_attention_heads"),
        "ffn": stack.needed("ffn_hidden_size"),
        "vocabulary": stack.needed("vocab_size"),
        "sequence": 1,
    }
    tensor, pipeline = (spread.count(key, 1, most=1e5) for key in ("tensor", "pipeline"))
    stage = spread.count("zero_stage", 0, least=0.0, most=3.0)
    kind = model.text("model_datatype", "fp16").lower()
    if kind not in _NUMBERS:
        model.entry.fault("has an unknown 'model_datatype'", found=kind, hint=", ".join(_NUMBERS))
    masters = model.text("optimizer_datatype", "fp32").lower() in {"fp32", "float32"}
    masters = masters and _NUMBERS.get(kind) != "fp32"
    written = checkpoint.count("num_checkpoints_write", _DEFAULT_CHECKPOINTS)
    read_back = checkpoint.number("num_checkpoints_read", 0.0)
    refuse(entry.problems)
    parallelism = {
        key: size for key, size in (("tensor", tensor), ("pipeline", pipeline)) if size > 1
    }
    sharding = {"sharding": quote(_SHARDING[stage])} if stage else {}
    sections: dict[str, Mapping[str, object]] = {
        "": {"schema": 1, "name": quote(model.text("name", path.stem))},
        "hardware": place,
        "data": {
            "samples": written * max(1, ranks // (tensor * pipeline)),
            "bytes_per_sample": '"1 B"',
            "cache": '"preloaded"',
        },
        "input": {"workers": 1, "decode": '"0 s"', "output_bytes_per_sample": '"1 B"'},
        "model": {"family": '"llama"'},
        "model.shape": shape,
        "parallelism": {**parallelism, **sharding},
        "train": {
            "batch_size": 1,
            "precision": quote(_NUMBERS[kind]),
            "optimizer": '"adam"',
            **({"mixed_precision": "true"} if masters else {}),
            "checkpoint_every_steps": 1,
        },
    }
    spread_over = f"tensor {tensor}, pipeline {pipeline}, ZeRO stage {stage}"
    summary = (
        f"{model.text('name', path.stem)}: {shape['layers']} layers of width {shape['hidden']}",
        f"{written} checkpoints are written, {spread_over}",
    )
    warnings = [
        _STEP_IS_CHECKPOINT,
        *([_SAVED] if masters else []),
        *([] if place else [_NO_MACHINE]),
    ]
    if read_back:
        warnings.append(f"{read_back:g} checkpoints are read back in DLIO: plan goodput loads them")
    return _scenario(path, sections, summary, warnings, leave_out)


def _data(found: Workload) -> dict[str, object]:
    keys: dict[str, object] = {
        "samples": f"{found.samples:.0f}",
        "bytes_per_sample": quantity(found.record, units.BYTE),
    }
    if found.samples_per_file > 1.0:
        size = quantity(found.record * found.samples_per_file, units.BYTE)
        keys |= {"layout": '"shards"', "shard_size": size}
    access = "random" if found.shuffled and found.samples_per_file == 1.0 else "sequential"
    return keys | {"access": quote(access)}


def _size_spread(found: Workload) -> dict[str, object]:
    """Return the keys of ``[data.size_spread]``, the distribution of file sizes.

    The configured deviation is of both sides of a square byte matrix, hence the factor 1/sqrt(2).
    """
    share = found.deviation / math.sqrt(2.0) / found.record
    return {"shape": '"gamma"', "relative_deviation": f"{share:.4g}"} if share else {}


def _input(found: Workload) -> dict[str, object]:
    keys: dict[str, object] = {"loader": quote(found.loader), "workers": found.threads}
    ahead = _ahead(found)
    if ahead:
        keys["prefetch"] = ahead
    if found.loader == "pytorch" and found.threads:
        keys["persistent_workers"] = "true"
    keys["drop_last"] = "true"
    if found.preprocess:
        keys["augment"] = quantity(found.preprocess, units.SECOND)
    size = quantity(found.resized or found.record, units.BYTE)
    return keys | {"output_bytes_per_sample": size}


def _ahead(found: Workload) -> int:
    """Return the prefetch depth in batches: of each worker for PyTorch, in total for other loaders.

    0: the key is left out of the scenario.
    """
    if found.loader != "pytorch":
        return max(1, found.queue)
    if not found.threads:
        return 0
    return max(1, math.ceil(found.queue / found.threads)) if found.queue else 2


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
    """Describe the time per batch and the sample rate of one accelerator, for the summary."""
    if found.compute < _INSTANT:
        return "as soon as they are there: it never limits"
    rate = found.batch / found.compute
    bandwidth = units.show(rate * found.record, units.BYTE_PER_SECOND)
    return f"every {units.show(found.compute, units.SECOND)}: {rate:,.1f} samples/s, {bandwidth}"
