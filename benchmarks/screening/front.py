"""Whether a screened search finds the front of an exhaustive one, and what both take.

``python benchmarks/screening/front.py [--jobs N] [SCENARIO] [KEY=VALUES ...]``: by default 2,058
candidates of the sweep of ``resnet50-imagenet-sweep``, all its machines with fewer workers and
batches. Exit code 1 if the fronts differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from dataclasses import replace

from simulator.reading.search.axes import parse_axis, with_axes
from simulator.reading.search.candidates import CandidateReader
from simulator.studies.search.candidates import expand
from simulator.studies.search.explore import TIME_AND_COST, Request, explore
from simulator.studies.search.findings import findings
from simulator.studies.search.outcome import Outcome
from simulator.studies.search.workers import local_workers

SCENARIO = "resnet50-imagenet-sweep"
SMALLER = ("input.workers=2..32 step 6", "train.batch_size=64..448 step 64")


def asked(name: str, over: list[str]) -> Request:
    """The search of a scenario's own sweep with some axes replaced."""
    reader = CandidateReader(name)
    axes = with_axes(reader.axes, [parse_axis(text) for text in over])
    return Request(reader=reader, candidates=expand(axes, reader))


def timed(request: Request, jobs: int) -> tuple[Outcome, ...]:
    """What the search finds; what it took is printed."""
    began, spent = time.perf_counter(), sum(os.times()[:4])
    with local_workers(jobs) as workers:
        found = explore(request, workers=workers)
    wall, cpu = time.perf_counter() - began, sum(os.times()[:4]) - spent
    counts = ", ".join(f"{n} {status}" for status, n in Counter(o.status for o in found).items())
    how = "exhaustive" if request.exhaustive else "screened"
    sys.stdout.write(f"{how}: {cpu:.1f} s of CPU, {wall:.1f} s; {counts}\n")
    return found


def front_of(found: tuple[Outcome, ...]) -> list[tuple[object, ...]]:
    """Candidates of the front with their time and cost, equally good ones named."""
    metrics = [objective.metric for objective in TIME_AND_COST]
    return [
        (
            place.outcome.candidate.index,
            *(place.outcome.figures[name] for name in metrics),
            *place.equal,
        )
        for place in findings(found, TIME_AND_COST).front
    ]


def main() -> int:
    """Search twice and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="?", default=SCENARIO)
    parser.add_argument("over", nargs="*", metavar="KEY=VALUES")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    request = asked(given.scenario, given.over or list(SMALLER))
    sys.stdout.write(f"{given.scenario}: {len(request.candidates):,} candidates\n")
    screened = front_of(timed(request, given.jobs))
    full = front_of(timed(replace(request, exhaustive=True), given.jobs))
    for row in screened:
        sys.stdout.write(f"  {row}\n")
    if screened == full:
        sys.stdout.write("the fronts are the same\n")
        return 0
    sys.stdout.write(f"only screened: {[row for row in screened if row not in full]}\n")
    sys.stdout.write(f"only exhaustive: {[row for row in full if row not in screened]}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
