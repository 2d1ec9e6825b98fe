"""The report of ``plan import utilization``: observed and predicted utilization."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from simulator.importers.utilization import Quantity, Series, Utilization
from simulator.records import dataclass
from simulator.report.document import Document, Table, grid, notes, section
from simulator.report.text import percent
from simulator.results.prediction import Prediction
from simulator.units import BYTE, BYTE_PER_SECOND, SECOND, WATT, show

_P95: Final = 95.0
_UNEVEN: Final = 0.05
"""Difference of utilization between devices from which each device is listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Statistics of one quantity over all devices, in SI units, shares from 0 to 1.

    `mean` and `p95` are means over devices, `peak` is the largest sample of any device, `least` and
    `most` are the smallest and largest mean of a device.
    """

    quantity: Quantity
    mean: float
    p95: float
    peak: float
    least: float
    most: float
    devices: int


def observed(found: Utilization) -> list[Seen]:
    """Return the statistics of each observed quantity, in the order of `Quantity`."""
    return [
        _seen(quantity, here)
        for quantity in Quantity
        if (here := [series for series in found.series if series.quantity is quantity])
    ]


def _seen(quantity: Quantity, series: list[Series]) -> Seen:
    values = [each.values[np.isfinite(each.values)] for each in series]
    means = [float(each.mean()) for each in values]
    return Seen(
        quantity=quantity,
        mean=float(np.mean(means)),
        p95=float(np.mean([np.percentile(each, _P95) for each in values])),
        peak=max(float(each.max()) for each in values),
        least=min(means),
        most=max(means),
        devices=len(series),
    )


def _kernel_runs(prediction: Prediction) -> float | None:
    """Return the share of a step in which a kernel runs: compute and exposed communication."""
    step, split = prediction.timing.step_time.mean, prediction.timing.split
    if prediction.timing.accelerator_utilization is None or step <= 0.0:
        return None
    return min(1.0, (split.compute + split.communication) / step)


def _cpu(prediction: Prediction) -> float | None:
    usage = prediction.timing.usage.get("cpu")
    return None if usage is None else usage.mean


def _device_memory(prediction: Prediction) -> float | None:
    return None if prediction.memory is None else prediction.memory.total


def _device_memory_share(prediction: Prediction) -> float | None:
    memory = prediction.memory
    return None if memory is None else memory.total / memory.capacity


def _host_memory_share(prediction: Prediction) -> float | None:
    return prediction.host_ram.total / prediction.host_ram.capacity


_PREDICTED: Final[Mapping[Quantity, Callable[[Prediction], float | None]]] = {
    Quantity.GPU_BUSY: _kernel_runs,
    Quantity.GPU_ENGINE: _kernel_runs,
    Quantity.DEVICE_MEMORY: _device_memory,
    Quantity.DEVICE_MEMORY_SHARE: _device_memory_share,
    Quantity.CPU_BUSY: _cpu,
    Quantity.HOST_MEMORY_SHARE: _host_memory_share,
}
"""Getters of the predicted value of a quantity; other quantities are not predicted."""

_PEAKS: Final = frozenset(
    {Quantity.DEVICE_MEMORY, Quantity.DEVICE_MEMORY_SHARE, Quantity.HOST_MEMORY_SHARE}
)
"""Quantities compared by their peak, as it has to fit."""
_UNITS: Final = {
    Quantity.DEVICE_MEMORY: BYTE,
    Quantity.POWER: WATT,
    Quantity.TO_DEVICE: BYTE_PER_SECOND,
    Quantity.FROM_DEVICE: BYTE_PER_SECOND,
}


def _shown(quantity: Quantity, value: float) -> str:
    unit = _UNITS.get(quantity)
    return percent(value) if unit is None else show(value, unit)


def predicted(quantity: Quantity, prediction: Prediction | None) -> float | None:
    """Return the predicted value of a quantity; None if it is not predicted."""
    get = _PREDICTED.get(quantity)
    if prediction is None or get is None:
        return None
    value = get(prediction)
    return value if value is not None and math.isfinite(value) else None


def document(found: Utilization, prediction: Prediction | None = None) -> Document:
    """Return the observed utilization as a document, with the predicted one if there is any."""
    seen = observed(found)
    head = _head(prediction)
    rows = [_row(each, prediction) for each in seen]
    samples = max(len(series.values) for series in found.series)
    every = "" if found.interval is None else f", one every {show(found.interval, SECOND)}"
    texts = [f"{samples} samples per device{every}"]
    if prediction is not None:
        texts.append(
            f"predicted: {prediction.scenario.name}; difference: predicted less observed (of "
            "memory the peak, else the mean)"
        )
        texts += _cautions(seen)
    return Document(
        sections=(
            *section("", grid(head, rows, "<" + ">" * (len(head) - 1))),
            *section("Uneven devices", notes(_uneven(found, seen))),
            *section("", notes(texts)),
        ),
        data=lambda: _object(found, prediction),
        table=lambda: _table(found, prediction),
    )


def _head(prediction: Prediction | None) -> tuple[str, ...]:
    own = ("quantity", "mean", "p95", "peak", "devices")
    return own if prediction is None else (*own, "predicted", "difference")


def _row(seen: Seen, prediction: Prediction | None) -> list[str]:
    values = (seen.mean, seen.p95, seen.peak)
    row = [str(seen.quantity), *(_shown(seen.quantity, value) for value in values)]
    row.append(str(seen.devices))
    if prediction is None:
        return row
    expected = predicted(seen.quantity, prediction)
    if expected is None:
        return [*row, "-", "-"]
    return [*row, _shown(seen.quantity, expected), _difference(seen, expected)]


def _difference(seen: Seen, expected: float) -> str:
    """Format predicted minus observed: points for shares, else relative to the observed value."""
    basis = seen.peak if seen.quantity in _PEAKS else seen.mean
    if seen.quantity not in _UNITS:
        return f"{100.0 * (expected - basis):+.1f} points"
    return f"{expected / basis - 1.0:+.1%}" if basis > 0.0 else "-"


def _uneven(found: Utilization, seen: list[Seen]) -> Iterator[str]:
    for each in seen:
        if each.quantity not in _UNITS and each.most - each.least > _UNEVEN:
            parts = [
                f"{s.device} {_shown(s.quantity, float(np.nanmean(s.values)))}"
                for s in found.series
                if s.quantity is each.quantity
            ]
            yield f"{each.quantity}: {', '.join(parts)}"


def _cautions(seen: list[Seen]) -> list[str]:
    quantities = {each.quantity for each in seen}
    notes = []
    if Quantity.GPU_BUSY in quantities:
        notes.append(
            "GPU utilization: share of time with any kernel, also while it waits for peers"
        )
    if Quantity.DEVICE_MEMORY in quantities:
        notes.append("memory used: reserved by the framework, which may use less")
    return notes


def _table(found: Utilization, prediction: Prediction | None) -> Table:
    """Return a row for each quantity in SI units, shares from 0 to 1."""
    rows = tuple(
        (
            seen.quantity.name.lower(),
            "" if (unit := _UNITS.get(seen.quantity)) is None else unit.symbol,
            *(seen.mean, seen.p95, seen.peak),
            seen.devices,
            predicted(seen.quantity, prediction),
        )
        for seen in observed(found)
    )
    head = ("quantity", "unit", "mean", "p95", "peak", "devices", "predicted")
    return Table(head=head, rows=rows)


def _object(found: Utilization, prediction: Prediction | None) -> dict[str, Any]:
    quantities: dict[str, Any] = {
        each.quantity.name.lower(): {
            "mean": each.mean,
            "p95": each.p95,
            "peak": each.peak,
            "devices": each.devices,
            "predicted": predicted(each.quantity, prediction),
        }
        for each in observed(found)
    }
    return {
        "schema": 1,
        "interval_s": found.interval,
        "scenario": None if prediction is None else prediction.scenario.name,
        "utilization": quantities,
    }
