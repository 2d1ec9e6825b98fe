"""How far ends of a spot job that are predicted from means are from replays of recorded traces.

    python evidence/spot_replays.py FILE [--restart MINUTES] [--interval MINUTES]

FILE is `spot_spells.csv`: one row a period, with the columns trace, value (1: machines could be
had) and hours. A job of 24 h is replayed on every trace, and predicted from its means alone. Next
to that stand the two halves of the trace, each replayed: where those differ by more than the error
that is asked for, no law that knows one half has the other within it. The two figures of the law
were chosen on the same traces (`simulator/reading/long_run/interruptions.py`). Nothing of this
ships.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from simulator.errors import InputError
from simulator.long_run.attempts import simulate_runs
from simulator.reading.long_run.interruptions import made_up, read_trace
from simulator.schema.long_run import Failures, LongRun, Outages, Restart, Saving
from simulator.units import HOUR

WORK: Final = 24.0 * HOUR
WRITE: Final = 1.0
"""A checkpoint takes longer than machines that go without notice leave [s]."""
DRAWS: Final = 2000
VARIATION: Final = 2.0
"""Default of `spot.variation`."""
WITHIN: Final = 0.1
FEWEST: Final = 4
"""Pairs of periods of the shortest trace that is cut in two."""


class Ends(NamedTuple):
    """Times by which half and nine tenths of the simulated runs have ended [s]."""

    half: float
    most: float

    def over(self, other: Ends) -> Ends:
        """How far these are from others, as shares; nothing where neither ever comes."""
        return Ends(*(0.0 if a == b else a / b - 1.0 for a, b in zip(self, other, strict=True)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the errors of every trace, and how many are within the share asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--restart", type=float, default=5.0, help="minutes (5)")
    parser.add_argument("--interval", type=float, default=30.0, help="minutes (30)")
    given = parser.parse_args(arguments)
    job = job_of(60.0 * given.restart, 60.0 * given.interval)
    say(f"{'trace':60s}  predicted P50, P90  second half beside first")
    rows = []
    for name, trace in traces(given.file):
        there = ends(job, trace)
        means = (float(np.mean(trace.up)), float(np.mean(trace.down)))
        error = ends(job, made_up(*means, VARIATION)).over(there)
        halves = between_halves(job, trace)
        rows.append((error, halves))
        told = "" if halves is None else f"{halves.half:+10.0%} {halves.most:+6.0%}"
        say(f"{name[-60:]:60s}  {error.half:+9.0%} {error.most:+8.0%}  {told}")
    say(f"predicted: {_within([error for error, _ in rows])}")
    say(f"halves: {_within([halves for _, halves in rows if halves is not None])}")
    return 0


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{line}\n")


def job_of(restart: float, interval: float) -> LongRun:
    """A job that loses what it did since its last checkpoint, and restarts [s]."""
    again = Restart(detection=0.0, replacement=0.0, start=restart, load=0.0)
    return LongRun(
        work=WORK,
        machines=1,
        saving=Saving(interval=interval, blocking=WRITE, durable=WRITE),
        failures=Failures(per_machine=0.0, per_job=0.0, restart=again, doubt=0.0),
    )


def ends(job: LongRun, outages: Outages) -> Ends:
    """When a job ends that meets these periods."""
    drawn = simulate_runs(replace(job, outages=outages), draws=DRAWS)
    return Ends(*(float(one) for one in np.quantile(drawn.finish, (0.5, 0.9), method="higher")))


def between_halves(job: LongRun, trace: Outages) -> Ends | None:
    """How far the second half of a trace is from the first; None for one too short to cut."""
    middle = len(trace.up) // 2
    if len(trace.up) < FEWEST:
        return None
    first = replace(trace, up=trace.up[:middle], down=trace.down[:middle])
    second = replace(trace, up=trace.up[middle:], down=trace.down[middle:])
    return ends(job, second).over(ends(job, first))


def traces(path: Path) -> list[tuple[str, Outages]]:
    """Every trace of the table that has periods of both kinds."""
    rows: dict[str, list[tuple[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["trace"], []).append((row["hours"], row["value"]))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "trace.csv"
        for name, outages in rows.items():
            # A replay goes round: what passes before the first machines follows the last ones.
            first = next((n for n, (_, there) in enumerate(outages) if there == "1"), 0)
            turned = [*outages[first:], *outages[:first]]
            lines = [f"{hours},{there}" for hours, there in turned]
            one.write_text("\n".join(["hours,available", *lines, ""]), encoding="utf-8")
            try:
                found.append((name, read_trace(one)))
            except InputError:
                say(f"{name[-60:]:60s}  has no periods of both kinds")
    return found


def _within(errors: Sequence[Ends]) -> str:
    parts = []
    for name, values in (
        ("P50", [one.half for one in errors]),
        ("P90", [one.most for one in errors]),
    ):
        number = sum(abs(value) <= WITHIN for value in values)
        middle = float(np.median(np.abs(values))) if values else math.nan
        parts.append(f"{name} within 10% on {number} of {len(values)}, median error {middle:.0%}")
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
