"""Training throughput that NVIDIA/DeepLearningExamples states in its README files, one cell a row.

Two kinds of groups are predicted:

``one GPU``
    Rows with equal source, framework, model, GPU, precision, batch, accumulation, sequence length,
    unit, column and heading (variants of the column ``other`` apart). The row on one GPU is the
    anchor: the time of its step is fitted to it, all else about 2 to 80 GPUs follows from the
    description. Judged by throughput.
``strong scaling``
    Rows that differ in batch or accumulation too, over three sizes or more. The two smallest are
    anchors: time of a step (that is, compute efficiency) and overhead of a step are fitted to
    them. Judged by the time of a step. Series without a row on one GPU are among them.

What the README files don't say, and this converter adds: parameters of the models (their
gradients are exchanged), what a sample is where they count tokens or frames, batch sizes where
the row has none, and which samples vary in length (`converters.example_models`). Batches that
are accumulated are merged to at most `_MOST_BATCHES` larger ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from converters import Columns, TableRow
from converters.example_models import EXAMPLE_MODELS
from converters.table_machines import TableMachine, machine_of
from simulator.units import THOUSAND

SHIPPED: Final = "nvidia_examples_training"

COLUMNS: Final = Columns(
    required=("source", "framework", "model", "gpu", "n_gpus", "precision", "throughput"),
    filled=("source", "framework", "model", "throughput"),
    numbers=("n_gpus", "batch_resolved", "seq_len", "throughput"),
    measured=("throughput", "latency", "scaling_factor"),
)


_ALIKE: Final = [
    "source",
    "framework",
    "model",
    "gpu",
    "precision",
    "seq_len",
    "unit",
    "column",
    "heading",
]
"""Columns that are equal in a group or series."""
_PRECISIONS: Final = {"AMP": "fp16", "FP32": "fp32", "TF32": "tf32"}
_BASES: Final = {"TensorFlow": "data-parallel-horovod", "TensorFlow2": "data-parallel-horovod"}
_MILLION: Final = THOUSAND**2
_IN_MILLIONS: Final = frozenset({("TensorFlow", "NCF")})
"""Tables that count millions of samples without saying so: a GPU's 9.73 cannot be samples."""
_MOST_GPUS: Final = 80
_SIZES: Final = 3
"""Sizes that make a series of strong scaling."""
_ANCHORS: Final = 2
_MOST_BATCHES: Final = 4
_VARYING: Final = 0.062
"""Mean delay of a rank's step where samples vary in length, as a share of it. The base has that of
samples of one size. Both were fitted, with the delay and the contention of the bases, to rows of
this table on several GPUs that are not held out."""
_DIGITS: Final = 3
_GLOBAL: Final = 1000
"""A batch of BERT from here on is that of all accumulated batches together."""

_STEPS: Final = 6
"""Return the steps of an epoch: all but the first are equal."""

Key = tuple[str, ...]


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    reasons = [_unknown(row) for row in rows]
    for number in _told_twice(rows, reasons):
        reasons[number] = "several rows with this description: what differs is not stated"
    groups = _groups(rows, reasons)
    largest = _largest(rows, groups)
    anchors = _anchors(rows, groups)
    return [
        _cells(
            row,
            groups.get(number),
            reasons[number],
            is_anchor=number in anchors,
            reference=largest.get(groups.get(number, ()), 1),
        )
        for number, row in enumerate(rows)
    ]


def _cells(
    row: TableRow, group: Key | None, reason: str, *, is_anchor: bool, reference: int
) -> dict[str, str]:
    labels = _labels(row, group)
    if reason or group is None:
        return {**labels, "exclude": reason or _alone(row)}
    return {
        **labels,
        "base": _BASES.get(row.text("framework"), "data-parallel"),
        **_overrides(row, reference),
        **_measured(row, strong=group[0] == "strong scaling"),
        "anchor": "yes" if is_anchor else "",
    }


def _unknown(row: TableRow) -> str:
    """Why nothing can be said about a row; empty if something can."""
    model, gpu, precision = row.text("model"), row.text("gpu"), row.text("precision")
    reasons = (
        ("the number of GPUs is not stated", bool(_gpus(row))),
        (f"the parameters of {model} are not known", model in EXAMPLE_MODELS),
        (f"no machine is known with '{gpu}'", _machine(row) is not None),
        (f"the precision '{precision}' is not known", precision in _PRECISIONS),
    )
    missing = next((reason for reason, known in reasons if not known), "")
    return missing or _unfit(row)


def _unfit(row: TableRow) -> str:
    """Why a row of a known model and machine cannot be predicted; empty if it can."""
    if not _batch(row):
        return "the batch size is not stated"
    if not row.number("throughput"):
        return "no throughput"
    if _gpus(row) > _per_machine(row) and _gpus(row) % _per_machine(row):
        return "GPUs are not spread evenly over machines"
    return ""


def _alone(row: TableRow) -> str:
    if _gpus(row) == 1:
        return "nothing like it on several GPUs"
    return "no row on one GPU with the same configuration, and no series of three sizes"


def _told_twice(rows: Sequence[TableRow], reasons: Sequence[str]) -> Iterator[int]:
    """Rows of a table that also has others with the same description."""
    known = [number for number, reason in enumerate(reasons) if not reason]
    for members in _by(rows, known, _description).values():
        if len(members) > 1:
            yield from members


def _description(row: TableRow) -> Key:
    return (*_configuration(row), row.text("n_gpus"), row.text("line"))


def _largest(rows: Sequence[TableRow], groups: dict[int, Key]) -> dict[Key, int]:
    """The largest batch of each group."""
    found: dict[Key, int] = {}
    for number, key in groups.items():
        found[key] = max(found.get(key, 1), _micro_batch(rows[number]))
    return found


def _groups(rows: Sequence[TableRow], reasons: Sequence[str]) -> dict[int, Key]:
    """The group of each row that is in one."""
    known = [number for number, reason in enumerate(reasons) if not reason]
    found = dict(_weak(rows, known))
    rest = [number for number in known if number not in found]
    return {**found, **dict(_strong(rows, rest))}


def _weak(rows: Sequence[TableRow], known: Sequence[int]) -> Iterator[tuple[int, Key]]:
    """Rows of one configuration on one GPU and on several, up to the most that are asked for."""
    asked = [number for number in known if _gpus(rows[number]) <= _MOST_GPUS]
    for key, members in _by(rows, asked, _configuration).items():
        sizes = {_gpus(rows[number]) for number in members}
        if 1 in sizes and len(sizes) > 1:
            yield from ((number, ("one GPU", *key)) for number in members)


def _strong(rows: Sequence[TableRow], known: Sequence[int]) -> Iterator[tuple[int, Key]]:
    """Rows of a series of at least three sizes, one row each.

    First those with equal batches that are accumulated fewer times, then those with smaller ones.
    """
    first = dict(_long(rows, known, _accumulating))
    yield from first.items()
    yield from _long(rows, [number for number in known if number not in first], _series)


def _long(
    rows: Sequence[TableRow], numbers: Sequence[int], key_of: Callable[[TableRow], Key]
) -> Iterator[tuple[int, Key]]:
    for key, members in _by(rows, numbers, key_of).items():
        sizes = [_gpus(rows[number]) for number in members]
        if len(set(sizes)) >= _SIZES and len(set(sizes)) == len(sizes):
            yield from ((number, ("strong scaling", *key)) for number in members)


def _by(
    rows: Sequence[TableRow], numbers: Sequence[int], key: Callable[[TableRow], Key]
) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = defaultdict(list)
    for number in numbers:
        found[key(rows[number])].append(number)
    return dict(found)


def _configuration(row: TableRow) -> Key:
    batch = (row.text("batch_per_gpu"), row.text("batch_resolved"), row.text("accum"))
    return (*_series(row), *batch)


def _accumulating(row: TableRow) -> Key:
    return (*_series(row), f"{_micro_batch(row)}")


def _series(row: TableRow) -> Key:
    return (*(row.text(name) for name in _ALIKE), _variant(row))


def _variant(row: TableRow) -> str:
    """The named variant of a row, such as a data set; not what was measured."""
    return ";".join(
        part
        for part in (p.strip() for p in row.text("other").split(";"))
        if part.partition("=")[0] in {"Dimension", "Dataset", "XLA", "Optimizer"}
    )


def _anchors(rows: Sequence[TableRow], groups: dict[int, Key]) -> set[int]:
    """One GPU in groups that have it, the two smallest sizes in series."""
    found = set[int]()
    members: dict[Key, list[int]] = defaultdict(list)
    for number, key in groups.items():
        members[key].append(number)
    for key, numbers in members.items():
        ordered = sorted(numbers, key=lambda number: _gpus(rows[number]))
        if key[0] == "one GPU":
            found |= {number for number in ordered if _gpus(rows[number]) == 1}
        else:
            found |= set(ordered[:_ANCHORS])
    return found


def _gpus(row: TableRow) -> int:
    return int(row.number("n_gpus") or 0)


def _machine(row: TableRow) -> TableMachine | None:
    return machine_of(SHIPPED, row.text("gpu"), row.text("heading"))


def _per_machine(row: TableRow) -> int:
    machine = _machine(row)
    return 1 if machine is None else machine.devices


def _numbers(text: str) -> list[int]:
    """The whole numbers in a text; a comma without space may set off thousands."""
    parts = text.strip().split(",")
    thousands = len(parts[0]) <= _DIGITS and all(len(part) == _DIGITS for part in parts[1:])
    if len(set(parts)) > 1 and thousands and all(part.isdigit() for part in parts):
        return [int("".join(parts))]
    return [int(found) for found in re.findall(r"\d+", text)]


def _pick(text: str, row: TableRow) -> int:
    """Of figures for two precisions the one of the row: full precision first after "and"."""
    found = _numbers(text.rpartition(";")[2])
    if not found:
        return 0
    mixed = row.text("precision") == "AMP"
    first = mixed != (" and " in text)
    return found[0 if first else -1]


def _accumulated(row: TableRow) -> int:
    return max(1, _pick(row.text("accum"), row))


def _batch(row: TableRow) -> float:
    """Samples of a GPU as stated; 0 where nothing is."""
    stated = row.number("batch_resolved")
    if stated:
        return stated
    listed = _pick(row.text("batch_per_gpu").partition(";")[0], row)
    return listed or dict(EXAMPLE_MODELS[row.text("model")].batches).get(row.text("precision"), 0)


def _micro_batch(row: TableRow) -> int:
    batch = _batch(row)
    whole = row.text("model") == "BERT" and batch >= _GLOBAL
    return max(1, round(batch / _accumulated(row))) if whole else round(batch)


def _merged(row: TableRow) -> tuple[int, int]:
    accumulated = _accumulated(row)
    together = -(-accumulated // _MOST_BATCHES)
    return _micro_batch(row) * together, max(1, round(accumulated / together))


def _labels(row: TableRow, group: Key | None) -> dict[str, str]:
    names = ("framework", "model", "gpu", "precision", "column", "heading")
    kind = group[0] if group else ""
    series = "" if group is None else "|".join(group)
    suffix = ", strong scaling" if kind == "strong scaling" else ""
    batch = row.text("batch_per_gpu") or row.text("batch_resolved")
    name = (
        *(row.text(n) for n in ("framework", "model", "gpu", "precision")),
        f"{_gpus(row)} GPUs",
        f"batch {batch}" if batch else "",
        f"accumulated {row.text('accum')}" if row.text("accum") else "",
        f"line {row.text('line')}",
    )
    return {
        "id": " ".join(part for part in name if part),
        "family": f"{row.text('framework')} {row.text('model')}{suffix}",
        **{name: row.text(name) for name in names},
        "gpus": f"{_gpus(row)}",
        "batch": batch,
        "accumulation": row.text("accum"),
        "sequence": row.text("seq_len"),
        "variant": _variant(row),
        "kind": kind,
        "series": series,
        "source": f"{row.text('source')}, line {row.text('line')}",
    }


def _overrides(row: TableRow, reference: int) -> dict[str, str]:
    features, gpus, most = EXAMPLE_MODELS[row.text("model")], _gpus(row), _per_machine(row)
    batch, accumulated = _merged(row)
    machines, machine = max(1, gpus // most), _machine(row)
    return {
        "hardware.machine": "" if machine is None else machine.machine,
        "hardware.gpus": f"{min(gpus, most)}",
        "hardware.count": f"{machines}",
        "data.samples": f"{batch * accumulated * gpus * _STEPS}",
        "model.parameters": f"{features.parameters:.7g}",
        # The same in all rows of a group: what is fitted holds for the group.
        "model.step_time_batch": f"{reference}",
        "train.batch_size": f"{batch}",
        "train.accumulation": f"{accumulated}",
        "train.precision": _PRECISIONS[row.text("precision")],
        "train.straggling": f"{_VARYING:g}" if features.varying else "",
        "software.framework": row.text("framework").lower(),
    }


def _measured(row: TableRow, *, strong: bool) -> dict[str, str]:
    counted = _MILLION if (row.text("framework"), row.text("model")) in _IN_MILLIONS else 1.0
    rate = counted * (row.number("throughput") or 0.0) / EXAMPLE_MODELS[row.text("model")].units
    batch, accumulated = _merged(row)
    step = batch * accumulated * _gpus(row) / rate
    return {
        "measured.throughput_samples_per_s": "" if strong else f"{rate:.7g}",
        "measured.step_time_s.mean": f"{step:.7g}" if strong else "",
    }
