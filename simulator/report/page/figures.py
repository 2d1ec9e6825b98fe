"""Rows of the run and of its bill, to the precision of their intervals."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.report.called import batch_called
from simulator.report.rounded import known
from simulator.report.rows import Row, cost_rows, run_rows
from simulator.report.stores import in_all
from simulator.results.prediction import Prediction

_ASIDE = frozenset({"throughput", "epoch", "first epoch", "total", "bounds"})
"""Rows of the full report that are said here in fewer words, or that only experts ask for."""


def run_figures(prediction: Prediction) -> Iterator[Row]:
    """Speed, epochs, the whole run, and what is done once."""
    timing, batch = prediction.timing, batch_called(prediction.scenario)
    first = f"first {batch}"
    many = "batches" if batch == "batch" else f"{batch}s"
    yield "speed", known(prediction, "throughput_samples_per_s")
    yield f"{first} ends after", known(prediction, "first_step_s")
    if timing.total_time > 1.5 * timing.epoch_time:
        epoch = known(prediction, "epoch_time_s")
        yield "an epoch", f"{epoch}, {prediction.steps_per_epoch:,} {many}"
    yield "whole run", f"{known(prediction, 'total_time_s')}, {prediction.total_steps:,} {many}"
    yield from (row for row in run_rows(prediction) if row[0] not in {*_ASIDE, first})


def cost_figures(prediction: Prediction) -> Iterator[Row]:
    """The bill; what a single step costs is in `plan simulate --full`."""
    metrics = {"samples per $": "cost.samples_per_usd"}
    whole = in_all(prediction, known(prediction, "cost.usd_to_train"))
    for name, text in cost_rows(prediction):
        if name in {batch_called(prediction.scenario), "1,000 samples"}:
            continue
        if name in {"to train", "bill"} and whole:
            yield name, whole
        else:
            yield name, known(prediction, metrics[name]) if name in metrics else text
