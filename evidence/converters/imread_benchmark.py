"""Rates of a DataLoader that decodes images with one library or another, against its workers.

The rows have the columns of the table `input_pipeline`, and name a decoder. What a decoder takes
for an image is its own rate without workers: that row is an input of the others of its platform
and decoder, and is itself left out. A curve without it cannot be predicted.

How many cores stand behind the virtual CPUs follows from the processor: x86 machines in a cloud
are sold by hardware threads, two to a core; Arm ones have no second threads (a guess, as the
shipped set says).

Anchors are the curves that the hash of platform and decoder does not hold out: what handing an
image over takes is fitted to them, platform by platform.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from converters import TableRow, input_pipeline
from simulator.schema.measurement import held_out

SHIPPED: Final = "imread_benchmark"

COLUMNS: Final = input_pipeline.COLUMNS

_PLATFORM: Final = re.compile(r"linux_([^/]+)/")
_DECODER: Final = re.compile(r"decoder=([^,\s]+)")
_THREADS: Final = re.compile(r"(\d+) vCPU")
_ARM: Final = re.compile(r"neoverse|graviton|ampere|axion|\barm", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_SPREAD: Final = re.compile(rf"\bstd ({_NUMBER.pattern})")
_BATCH: Final = "32"
"""Samples of a batch in the base scenario."""
_MILLI: Final = 1e-3

Curve = tuple[str, str]
"""Platform and decoder."""


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    alone = _alone(rows)
    return [_cells(row, alone) for row in rows]


def _alone(rows: Sequence[TableRow]) -> dict[Curve, float]:
    """Images a second of each decoder without workers; repeats are averaged."""
    found: dict[Curve, list[float]] = defaultdict(list)
    for row in rows:
        rate = _rate(row)
        if not _stated(row) and row.text("workers_or_cores") == "0" and rate:
            found[_curve(row)].append(rate)
    return {curve: fmean(rates) for curve, rates in found.items()}


def _cells(row: TableRow, alone: Mapping[Curve, float]) -> dict[str, str]:
    platform, decoder = _curve(row)
    workers = row.text("workers_or_cores")
    labels = {
        "id": "-".join(part for part in (platform, decoder, workers) if part) or "a row",
        "platform": platform,
        "decoder": decoder,
        "source": f"{row.text('source')} {row.text('source_ref')}".strip(),
    }
    unknown, unused = _stated(row), ""
    if not unknown:
        unused = _input(row, alone)
    if unknown or (platform, decoder) not in alone:
        return {**labels, "exclude": unknown or unused}
    fitted = not unused and not held_out((platform, decoder))
    return {
        **labels,
        **_overrides(row, alone[platform, decoder]),
        **_measured(row),
        "anchor": "yes" if fitted else "",
        "exclude": unused,
    }


def _curve(row: TableRow) -> Curve:
    platform = _PLATFORM.search(row.text("source_ref"))
    decoder = _DECODER.search(row.text("loader"))
    return (
        platform.group(1) if platform else row.text("hardware"),
        decoder.group(1) if decoder else "",
    )


def _stated(row: TableRow) -> str:
    return next((reason for applies, reason in _gaps(row) if applies), "")


def _gaps(row: TableRow) -> Iterator[tuple[bool, str]]:
    """What may be missing in a row, and how it is called."""
    kind, workers = (row.text("metric"), row.text("unit")), row.text("workers_or_cores")
    yield kind != ("loader throughput", "img/s"), "no rate of a loader in images a second"
    named = all(_curve(row)) and "DataLoader" in row.text("loader")
    yield not named, "the platform, or the decoder of a DataLoader, is not stated"
    yield "RAM" not in row.text("cache"), "the images are not all in RAM"
    yield _THREADS.search(row.text("hardware")) is None, "virtual CPUs are not stated"
    yield not workers.isdecimal(), f"workers are no whole number, found {workers!r}"
    yield _rate(row) is None, f"no rate was measured, found {row.text('value')!r}"


def _input(row: TableRow, alone: Mapping[Curve, float]) -> str:
    """Why a run of this kind is not predicted; empty if it is."""
    if int(row.text("workers_or_cores")) == 0:
        return "the decoder's rate without workers is an input of the other rows"
    if _curve(row) not in alone:
        return "the decoder's rate without workers is not in the table"
    return ""


def _rate(row: TableRow) -> float | None:
    found = _NUMBER.fullmatch(row.text("value"))
    return (float(found.group()) or None) if found else None


def _overrides(row: TableRow, alone: float) -> dict[str, str]:
    threads = _THREADS.search(row.text("hardware"))
    number = float(threads.group(1)) if threads else 0.0
    arm = _ARM.search(f"{row.text('hardware')} {_curve(row)[0]}")
    batch = row.text("batch_per_gpu")
    other = batch not in ("", _BATCH)
    return {
        "hardware.cores": f"{number if arm else number / 2.0:g}",
        "hardware.vcpus": f"{number:g}",
        "input.workers": row.text("workers_or_cores"),
        "input.persistent_workers": "true",
        "input.decode": f"{1.0 / alone / _MILLI:.9g} ms",
        "train.batch_size": batch if other else "",
        "model.step_times": f'[{{ batch_size = {batch}, time = "1 ns" }}]' if other else "",
    }


def _measured(row: TableRow) -> dict[str, str]:
    metric, rate, spread = (
        "throughput_samples_per_s",
        _rate(row) or 0.0,
        _SPREAD.search(row.text("notes")),
    )
    return {
        f"measured.{metric}": f"{rate:.7g}",
        f"spread.{metric}": f"{float(spread.group(1)) / rate:.3g}" if spread else "",
    }
