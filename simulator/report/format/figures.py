"""One figure for reading, whatever it is measured in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simulator.report.format.layout import count, printable
from simulator.report.format.named import is_share
from simulator.report.format.rounded import share_known
from simulator.report.format.table import Cell, Table
from simulator.results.metrics import METRICS, USD_PER_HOUR, Metric, Value, select
from simulator.results.prediction import Prediction
from simulator.results.service_metrics import TOKEN, TOKEN_PER_SECOND
from simulator.units import HOUR, PER_SECOND, USD_PER_SECOND, Unit, show


def figure(value: Value, unit: Unit | None) -> str:
    """A metric's value with its unit; a rate of events is a rate of samples.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> figure(0.192, SECOND), figure(42667.0, PER_SECOND), figure(None, SECOND)
    ('192 ms', '42,667 samples/s', 'does not apply')
    """
    if value is None:
        return "does not apply"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(k)} {figure(v, unit)}" for k, v in value.items() if v)
    if unit in {TOKEN, TOKEN_PER_SECOND}:
        return f"{count(value)} {unit.symbol}"
    if unit is None:
        return count(value) if abs(value) >= 1.0 else f"{value:.4g}"
    if unit == USD_PER_HOUR:
        value, unit = value / HOUR, USD_PER_SECOND
    return f"{count(value)} samples/s" if unit is PER_SECOND else show(value, unit)


def metric_figure(name: str, value: Value) -> str:
    """A figure of this name for reading: shares in per cent, others as `figure` has them.

    Examples
    --------
    >>> metric_figure("mfu", 0.3556), metric_figure("step_time_s.mean", 0.192)
    ('36%', '192 ms')
    """
    if is_share(name) and isinstance(value, float):
        return share_known(value)
    return figure(value, select(name)[0].unit)


def _known(
    prediction: Prediction,
) -> Iterator[tuple[Metric, float | int | str, float | None, float | None]]:
    """Metrics that have one value, the value, and its P10 and P90 where there are any."""
    for one in METRICS:
        value = one.get(prediction)
        if value is not None and not isinstance(value, Mapping):
            ends = prediction.interval.get(one.name, {})
            yield one, value, ends.get("p10"), ends.get("p90")


def metric_page(prediction: Prediction) -> Table:
    """The same figures as people write them."""
    rows: list[tuple[Cell, ...]] = []
    for one, value, *ends in _known(prediction):
        shown = ("" if end is None else metric_figure(one.name, end) for end in ends)
        rows.append((one.name, metric_figure(one.name, value), *shown))
    return Table(head=("metric", "value", "P10", "P90"), rows=tuple(rows))


def metric_table(prediction: Prediction) -> Table:
    """Every metric that has one value: name, value in SI units, unit, P10 and P90."""
    rows: list[tuple[Cell, ...]] = []
    for one, value, low, high in _known(prediction):
        unit = "" if one.unit is None else one.unit.symbol
        rows.append((one.name, str(value) if isinstance(value, str) else value, unit, low, high))
    return Table(head=("metric", "value", "unit", "p10", "p90"), rows=tuple(rows))
