"""Steps per second of the event engine and of the recursion.

Run with `plan` installed: ``python benchmarks/solvers/bench.py``. Both solve the same
candidates in the same run, so that the ratios mean something where the seconds do not; that they
give the same answers is checked, not assumed. Two things are timed: the epochs alone, and whole
answers, with the proof that nothing is shared, utilization and percentiles.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Final, TypeVar

from simulator.engine import epoch
from simulator.engine.maxplus import single
from simulator.engine.maxplus.pipeline import pipeline
from simulator.engine.recorder import Epoch
from simulator.engine.run import Options, Question, plan_of, solve
from simulator.pipeline.stages.base import Phase
from simulator.predict import question_of
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario

SCENARIO: Final = Path(__file__).parents[2] / "scenarios" / "resnet18-imagenet-one-worker.toml"
CANDIDATES: Final = 1000
BY_EVENTS: Final = 20
MOST: Final = 0.002
LONG: Final = 300
OPTIONS: Final = Options()

T = TypeVar("T")


def candidate(base: Scenario, number: int) -> Scenario:
    """The base with decoding of its own: up to 2 ms a sample more."""
    job = base.job
    more = MOST * (number + 1) / CANDIDATES
    work = replace(job.preprocessing, decode=job.preprocessing.decode + more)
    return replace(base, jobs=(replace(job, preprocessing=work),))


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The shorter of two CPU times [s], and what came out."""
    took = []
    for _ in range(2):
        before = process_time()
        found = work()
        took.append(process_time() - before)
    return min(took), found


def show(rows: Sequence[tuple[str, float, int]]) -> None:
    """Print steps per second, each over those of the first row."""
    first = rows[0][2] / rows[0][1]
    for name, seconds, steps in rows:
        speed = steps / seconds
        sys.stdout.write(f"| {name} | {speed:,.0f} steps/s | {speed / first:,.1f} |\n")


def epochs(questions: Sequence[Question], options: Options, what: str) -> None:
    """Epochs alone: of what was made ready before."""
    ready = [
        (q, line, plan_of(q, Phase.COLD, options))
        for q in questions
        if (line := pipeline(q.scenario, q.topology, q.demands[Phase.COLD])) is not None
    ]

    def events() -> list[Epoch]:
        return [
            epoch.run_epoch(q.scenario, q.topology, q.demands[Phase.COLD], plan, OPTIONS.seed)
            for q, _, plan in ready[:BY_EVENTS]
        ]

    def recursion() -> list[Epoch]:
        return [single.run_epoch(line, q.topology, plan) for q, line, plan in ready]

    by_events, own = timed(events)
    by_recursion, one = timed(recursion)
    if [e.ends for e in own] != [e.ends for e in one][:BY_EVENTS]:
        sys.exit("the solvers differ")
    show(
        [
            (f"event engine, {what}", by_events, sum(found.steps for found in own)),
            (f"recursion, {what}", by_recursion, sum(found.steps for found in one)),
        ]
    )


def answers(questions: Sequence[Question]) -> None:
    """Whole answers, from a question to its figures; tracing takes the event engine."""
    traced = replace(OPTIONS, trace=True)
    by_events, watched = timed(lambda: [solve(q, traced) for q in questions[:BY_EVENTS]])
    by_recursion, one = timed(lambda: [solve(q, OPTIONS) for q in questions])
    if [t.total_time for t in watched] != [t.total_time for t in one][:BY_EVENTS]:
        sys.exit("the solvers differ")
    show(
        [
            ("event engine, answers", by_events, sum(t.simulated_steps for t in watched)),
            ("recursion, answers", by_recursion, sum(t.simulated_steps for t in one)),
        ]
    )


def main() -> None:
    """Print both tables."""
    base = load_scenario(str(SCENARIO))
    questions = [question_of(candidate(base, number)) for number in range(CANDIDATES)]
    long = [replace(q, lengths=replace(q.lengths, batches=LONG, steps=LONG)) for q in questions]
    with suppress(BrokenPipeError):
        epochs(long, Options(replay=True), "every step of a long epoch")
        epochs(questions, OPTIONS, "epochs until they are steady")
        answers(questions)


if __name__ == "__main__":
    main()
