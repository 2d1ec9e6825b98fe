"""Importer of MLPerf training logs: run time, batch size and samples per second.

Each line of interest contains ``:::MLLOG`` and a JSON object; text before it (a rank's prefix) and
other lines are skipped. The score is run_stop - run_start, if the status is success. Progress is in
the metadata as samples_count, or as epoch_num, which some submissions count in samples;
tracked_stats is free-form and its throughput may count tokens. Structure: mlcommons/logging,
mllog.py, and the compliance rules training_5.1.0/common.yaml.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.foreign import Entry, first_json, read_text, refuse
from simulator.importers.result import MeasuredRun, measurement_set
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.schema.provenance import Source
from simulator.units import Seconds

WANTED: Final = "an MLPerf training log"

_MARK: Final = ":::MLLOG"
_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_MAX_EPOCHS: Final = 1000.0
"""Larger epoch numbers count samples."""
_NUMBER: Final = (int, float)
_MIN_RATE: Final = 1e-9
_MAX_RATE: Final = 5e14
"""Bounds of plausible training rates [samples/s]."""
_RATE_TOLERANCE: Final = 0.25
"""Tolerated relative difference between tracked throughput and samples over time, as only one of
them includes evaluation and checkpoints."""
_LABELS: Final = {
    "submission_benchmark": "benchmark",
    "submission_org": "submitter",
    "submission_platform": "platform",
    "submission_division": "division",
}
_EVALUATION: Final = ("eval_start", "eval_stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """One event of the log; `time` is in seconds since 1970."""

    key: str
    time: Seconds
    value: Entry | None
    metadata: Entry | None

    def progress(self, name: str) -> float | None:
        """Return the metadata value `name`, such as ``epoch_num``; None if it is not a number.

        No problem is reported, as the type of these values is not fixed.
        """
        found = None if self.metadata is None else self.metadata.get(name)
        if found is None or isinstance(found.value, bool) or not isinstance(found.value, _NUMBER):
            return None
        return found.number()


@dataclass(slots=True)
class _Log:
    """All events of a file, in file order."""

    origin: str
    problems: list[Problem] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)

    def of(self, key: str) -> list[_Event]:
        return [event for event in self.events if event.key == key]

    def number(self, key: str) -> float | None:
        """Return the value of the last event with this key as a number; None if there is none."""
        found = [event.value for event in self.of(key) if event.value is not None]
        return found[-1].number() if found else None


def read(path: Path) -> MeasuredRun:
    """Read throughput, step time and global batch size of one run.

    Parameters
    ----------
    path : pathlib.Path
        The log of one run.

    Returns
    -------
    MeasuredRun
        With `throughput_samples_per_s` over the training time without evaluation, and the
        global batch size as an override of a scenario.

    Raises
    ------
    InputError
        For files without ``:::MLLOG`` lines, truncated logs or logs of several runs, decreasing
        times, and logs without the number of trained samples.
    """
    log = _Log(origin=str(path))
    for number, line in enumerate(read_text(path, WANTED).split("\n"), start=1):
        if _MARK in line:
            _take(log, number, line.partition(_MARK)[2].strip())
    if not log.events and not log.problems:
        fail(log.origin, "has no line with :::MLLOG", hint=f"it should be {WANTED}")
    refuse(log.problems)
    start, stop = _ends(log)
    batch, samples = log.number("global_batch_size"), log.number("train_samples")
    refuse(log.problems)
    evaluating = _evaluating(log, start.time, stop.time)
    rate, basis, warnings = _rate(log, samples, stop.time - start.time - evaluating)
    refuse(log.problems)
    measured = {"throughput_samples_per_s": rate}
    if batch:
        measured["step_time_s.mean"] = batch / rate
    status = _status(stop)
    if status != "success":
        warnings = (*warnings, f"the run ended with status '{status}': its time is not a score")
    if not batch:
        warnings = (*warnings, "the log has no global_batch_size: the step time is left out")
    return MeasuredRun(
        id=path.name.partition(".")[0] or path.name,
        overrides=(f"train.global_batch_size={batch:.0f}",) if batch else (),
        measured=measured,
        source=Source(reference=f"MLPerf training log: {path.name}", date=_day(start.time)),
        labels=_labels(log, status),
        summary=tuple(_summary(start, stop, evaluating, batch, rate, basis)),
        warnings=warnings,
    )


def _take(log: _Log, number: int, text: str) -> None:
    """Append the event on a line to the log; text after its JSON object is ignored."""
    try:
        data, _ = first_json(text)
    except ValueError:
        message = "has a :::MLLOG line whose JSON is broken or cut off"
        log.problems.append(Problem(origin=log.origin, line=number, message=message))
        return
    entry = Entry(data, f"{log.origin}:{number}", problems=log.problems)
    key = entry.text_at("key")
    if key is None or not isinstance(data, Mapping):
        entry.fault("has no 'key'")
        return
    time = entry.need("time_ms")
    milliseconds = None if time is None else time.number()
    if milliseconds is not None:
        log.events.append(
            _Event(
                key=key,
                time=milliseconds * _MILLISECOND,
                value=entry.get("value"),
                metadata=entry.get("metadata"),
            )
        )


def _ends(log: _Log) -> tuple[_Event, _Event]:
    """Return the events run_start and run_stop; raise an `InputError` unless each occurs once."""
    starts, stops = log.of("run_start"), log.of("run_stop")
    if not starts:
        fail(log.origin, "has no run_start", hint="is its beginning cut off?")
    if len(starts) > 1 or len(stops) > 1:
        runs = max(len(starts), len(stops))
        fail(log.origin, f"holds {runs} runs", hint="give each run a file of its own")
    if not stops:
        fail(log.origin, "is cut off: it has no run_stop")
    if stops[0].time <= starts[0].time:
        length = stops[0].time - starts[0].time
        fail(log.origin, f"ends {-length:g} s before it starts")
    return starts[0], stops[0]


def _status(stop: _Event) -> str:
    found = None if stop.metadata is None else stop.metadata.text_at("status")
    return found or "unknown"


def _evaluating(log: _Log, start: Seconds, stop: Seconds) -> Seconds:
    """Return the time between eval_start and eval_stop events within the run [s]."""
    total, begun = 0.0, None
    for event in log.events:
        if event.key == _EVALUATION[0]:
            begun = max(start, event.time)
        elif event.key == _EVALUATION[1] and begun is not None:
            total += max(0.0, min(stop, event.time) - begun)
            begun = None
    return total


def _rate(
    log: _Log, samples: float | None, training: Seconds
) -> tuple[float, str, tuple[str, ...]]:
    """Return samples per second, the events they were derived from, and warnings."""
    tracked = _tracked(log)
    trained, basis = _trained(log, samples)
    if training <= 0.0:
        fail(log.origin, "spends all of its time in evaluation")
    refuse(log.problems)
    if trained:
        rate = trained / training
        if not _MIN_RATE <= rate <= _MAX_RATE:
            fail(log.origin, f"says {trained:g} samples in {training:g} s, which nothing trains")
        if tracked is not None and abs(tracked / rate - 1.0) > _RATE_TOLERANCE:
            return rate, basis, (_other_unit(tracked, rate),)
        return rate, basis, ()
    if not tracked:
        hint = "one of samples_count, epoch_stop with train_samples, tracked_stats is needed"
        fail(log.origin, "doesn't say how many samples were trained", hint=hint)
    if not _MIN_RATE <= tracked <= _MAX_RATE:
        fail(log.origin, f"says {tracked:g} samples/s in tracked_stats, which nothing trains")
    doubt = "samples/s are those of tracked_stats, which may count tokens"
    return tracked, "tracked_stats, median", (doubt,)


def _other_unit(tracked: float, rate: float) -> str:
    return (
        f"tracked_stats says {tracked:,.1f}/s, samples over time are {rate:,.1f}/s: it counts "
        "something else, or another part of the run"
    )


def _tracked(log: _Log) -> float | None:
    """Return the median throughput of tracked_stats; None if there is none."""
    entries = [event.value for event in log.of("tracked_stats") if event.value is not None]
    found = [each.number_at("throughput") for each in entries if each.is_mapping()]
    values = [value for value in found if value]
    return statistics.median(values) if values else None


def _trained(log: _Log, samples: float | None) -> tuple[float | None, str]:
    """Return the number of samples trained in the run (None if unknown), and its source."""
    counts = [c for event in log.events if (c := event.progress("samples_count")) is not None]
    if any(counts):
        return max(counts), "samples_count"
    numbers = [n for event in log.events if (n := event.progress("epoch_num")) is not None]
    if numbers and max(numbers) > _MAX_EPOCHS:
        return max(numbers), "epoch_num, which counts samples here"
    epochs = len(log.of("epoch_stop"))
    if epochs and samples:
        return epochs * samples, f"{epochs} epochs of train_samples"
    if numbers and max(numbers) > 0.0 and samples:
        return max(numbers) * samples, f"epoch_num {max(numbers):g} x train_samples"
    return None, ""


def _labels(log: _Log, status: str) -> dict[str, str]:
    labels = {"status": status}
    for key, name in _LABELS.items():
        said = [event.value for event in log.of(key) if event.value is not None]
        if said and isinstance(said[-1].value, str):
            labels[name] = said[-1].value
    return labels


def _day(seconds: Seconds) -> str:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "undated"


def _summary(  # noqa: PLR0913, PLR0917 - one line for each
    start: _Event,
    stop: _Event,
    evaluating: Seconds,
    batch: float | None,
    rate: float,
    basis: str,
) -> Iterator[str]:
    yield f"time        {units.show(stop.time - start.time, units.SECOND)}, status {_status(stop)}"
    yield f"evaluation  {units.show(evaluating, units.SECOND)} of it"
    if batch:
        yield f"batch       {batch:,.0f} samples, {units.show(batch / rate, units.SECOND)} a step"
    yield f"rate        {rate:,.1f} samples/s while training, by {basis}"


def set_files(runs: Sequence[MeasuredRun], base: str, name: str) -> tuple[str, str]:
    """Return a measurement set of the runs: its TOML and its CSV.

    Parameters
    ----------
    runs : sequence of MeasuredRun
        The runs.
    base : str
        Scenario file from which the runs are predicted.
    name : str
        Name of the set, and of its CSV file without ``.csv``.
    """
    return measurement_set(
        runs,
        base=base,
        name=name,
        title="MLPerf training runs",
        source="MLPerf training logs",
        date=max(run.source.date for run in runs),
        metrics=["throughput_samples_per_s"],
    )
