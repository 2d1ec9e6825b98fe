"""Give odd input to importers, long runs and services, and look for internal errors.

Run from the root of the repository, by hand: ``python benchmarks/fuzz.py --cases 30000 --seed 1``.
Every case has its own seed, printed where it goes wrong. Exit code 1: an exit code 70, a figure
that is negative or not a number, more than 20 s of CPU for one case, or more than 1 GB of memory.
The memory is the peak of the process: the case that raised it above 1 GB is named, and so is the
one that raised it most. ``--every`` prints time and peak of each case.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # to find their support

from support.importing import ANSWERS, call
from support.odd_values import FORMATS, empty, write_odd

from simulator.cli.main import main as plan
from simulator.long_run.attempts import simulate_runs
from simulator.schema.long_run import Failures, LongRun, Near, Outages, Restart, Saving, Spares

SHARES = {"importer": 0.97, "long run": 0.02, "service": 0.01}
MAX_CPU = 20.0
MAX_KILOBYTES = 1_000_000
MAX_MESSAGE = 40_000
SERVICES = ("llama3-8b-chat-h100", "llama3-8b-chat-l4")
SETTINGS = {
    "load.rate": ("0.001 /s", "1 /s", "1000 /s", "1e-9 /s", "1e9 /s"),
    "load.requests": ("1", "3", "50", "1e9"),
    "load.prompt": ("{ tokens = 1 }", "{ tokens = 8000 }", "{ mean = 1, sd = 1e9 }"),
    "load.output": ("{ tokens = 1 }", "{ tokens = 2000 }"),
    "load.concurrency": ("1", "1000000"),
    "load.arrivals": ("poisson", "closed", "at-once", "trace"),
    "hardware.count": ("1", "2", "1000000"),
    "serving.max_sequences": ("1", "100000"),
    "serving.replicas": ("1", "1000"),
    "slo.first_token": ("1 ms", "1 d"),
}


def importer(random: Random, folder: Path) -> str:
    """Import a file with an odd value; return what went wrong."""
    outcome = call(*write_odd(random.randrange(len(FORMATS)), random, folder))
    if outcome.code not in ANSWERS:
        return outcome.err[-300:]
    return "" if len(outcome.err) < MAX_MESSAGE else "a long message"


def long_run(random: Random, _: Path) -> str:
    """Simulate a long run with extreme rates and times; return what went wrong."""

    def any_of(*values: float) -> float:
        return random.choice(values) * random.choice((1.0, 1.0, 7.3))

    blocking = any_of(0.0, 1.0, 300.0, 1e6)
    near = Near(
        durable=blocking, load=any_of(0.0, 60.0), outlives_machine=random.choice((True, False))
    )
    spares = Spares(count=random.choice((0, 1, 50)), repair=any_of(1.0, 3600.0, 1e9))
    run = LongRun(
        work=any_of(1e-3, 60.0, 86400.0, 1e8),
        work_doubt=random.choice((0.0, 1.0)),
        machines=random.choice((1, 2, 1000, 10**6)),
        saving=Saving(
            interval=random.choice((math.inf, 1e-3, 60.0, 1e7)),
            blocking=blocking,
            durable=blocking * random.choice((1.0, 3.0)),
            near=random.choice((None, near)),
        ),
        failures=Failures(
            per_machine=any_of(0.0, 1e-12, 1e-6, 1.0, 1e6),
            per_job=any_of(0.0, 1e-7, 1.0),
            planned=any_of(0.0, 1e-6, 1.0),
            restart=Restart(detection=any_of(0.0, 60.0), replacement=0.0, start=1.0, load=1.0),
            doubt=random.choice((0.0, 1.0, 10.0)),
            spares=random.choice((None, spares)),
        ),
        outages=random.choice(
            (
                None,
                Outages(up=(any_of(1e-3, 3600.0),), down=(any_of(1e-3, 3600.0, 1e9),), notice=30.0),
            )
        ),
    )
    with np.errstate(all="ignore"):
        found = simulate_runs(run, draws=5, seed=random.randrange(100))
    values = [found.finish, found.away, found.elsewhere, *found.parts.values()]
    if any(np.isnan(each).any() or (each < -1e-6 * found.finish.max()).any() for each in values):
        return f"not a number, or negative: {run}"
    return ""


def service(random: Random, _: Path) -> str:
    """Simulate a service with odd settings; return what went wrong."""
    keys = random.sample(list(SETTINGS), random.randint(1, 3))
    settings = [word for key in keys for word in ("--set", f"{key}={random.choice(SETTINGS[key])}")]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = plan(["simulate", random.choice(SERVICES), "--no-actions", *settings])
    return "" if code in ANSWERS else f"{settings}: {output.getvalue()[-300:]}"


def peak() -> int:
    """Return the most memory that this process has held [kB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


CASES = {"importer": importer, "long run": long_run, "service": service}


def main() -> int:
    """Run the cases, print what went wrong, and count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--kind", choices=list(CASES), help="only cases of this kind")
    parser.add_argument("--every", action="store_true", help="print time and peak of each case")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong, most, slowest = 0, (0, ""), (0.0, "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(options.first, options.first + options.cases):
            random = Random(f"{options.seed}-{number}")  # noqa: S311 - drawn
            kind = options.kind or random.choices(list(SHARES), list(SHARES.values()))[0]
            empty(folder)
            started, held = time.process_time(), peak()
            said = CASES[kind](random, folder)
            if (taken := time.process_time() - started) > MAX_CPU:
                said = f"{said} took {taken:.0f} s"
            if (grown := peak() - held) and peak() > MAX_KILOBYTES:
                said = f"{said} raised the peak by {grown / 1e6:.2f} to {peak() / 1e6:.2f} GB"
            counts[kind] += 1
            case = f"case {number} ({kind})"
            most, slowest = max(most, (grown, case)), max(slowest, (taken, case))
            if options.every:
                print(f"{number} {kind} {taken:.2f} s {peak() / 1e6:.3f} GB", flush=True)
            if said:
                wrong += 1
                print(f"{number} {kind}: {said}", flush=True)
    print(f"{dict(counts)}: {wrong} wrong; at most {peak() / 1e6:.2f} GB")
    print(f"slowest: {slowest[0]:.1f} s, {slowest[1]}")
    print(f"most memory added: {most[0] / 1e6:.2f} GB, {most[1]}")
    return int(wrong > 0 or peak() > MAX_KILOBYTES)


if __name__ == "__main__":
    sys.exit(main())
