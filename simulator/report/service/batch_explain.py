"""Why a model that answers in one pass does as it does: what batches take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from simulator.physics.forward_pass import BatchPass, Iteration
from simulator.report.format.table import Table, as_markdown
from simulator.report.numbers import significant
from simulator.report.prediction.json import SCHEMA
from simulator.report.text import columns, section, wrapped
from simulator.results.serving import ServicePrediction
from simulator.units import SECOND, show

HEAD: Final = ("samples", "seconds", "samples_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedBatches:
    """A prediction, and the batches it rests on."""

    prediction: ServicePrediction
    work: BatchPass


class BatchReport:
    """Its methods are those of `report.format.table.Report`."""

    def as_text(self, found: ExplainedBatches) -> str:
        """The report."""
        service = found.prediction.service
        rows = [("samples", "a batch takes", "samples/s")]
        rows += [
            (f"{n:,}", show(time, SECOND), significant(rate, 3)) for n, time, rate in _rows(found)
        ]
        title = f"{service.name}: what a batch of {service.model.name} takes on a device"
        return "\n".join(
            [
                *wrapped(title, hang=""),
                "",
                *columns(rows, ">>>"),
                *section("A request", list(_request(found))),
            ]
        )

    def as_object(self, found: ExplainedBatches) -> dict[str, Any]:
        """The same for programs [s]."""
        rows = [dict(zip(HEAD, row, strict=True)) for row in _rows(found)]
        return {"schema": SCHEMA, "scenario": found.prediction.service.name, "batches": rows}

    def as_table(self, found: ExplainedBatches) -> Table:
        """A row for each size [s]."""
        return Table(head=HEAD, rows=tuple(_rows(found)))

    def as_page(self, found: ExplainedBatches) -> str:
        """The table as Markdown."""
        return as_markdown(self.as_table(found))


def _rows(found: ExplainedBatches) -> Iterator[tuple[int, float, float]]:
    """Batches by powers of two, and the largest."""
    most, size = found.prediction.service.serving.max_batched_tokens, 1
    while True:
        time = found.work.seconds(Iteration(prefill_tokens=size))
        yield size, time, size / time
        if size == most:
            return
        size = min(most, 2 * size)


def _request(found: ExplainedBatches) -> Iterator[str]:
    service, told = found.prediction.service, found.prediction.answered
    serving = service.serving
    if serving.host_time:
        beside, threads = show(serving.host_time, SECOND), serving.host_threads
        yield f"It takes {beside} of one of {threads:g} threads of the host first."
    if told is not None:
        wait, batch = show(told.wait.mean, SECOND), significant(told.batch, 3)
        yield f"It waits {wait} in the mean until its batch goes, of {batch} samples on average."
