"""Cost of ranks in addition to the bytes they exchange, fitted to rows on several devices.

Constants of ``simulator/data/measured/bases/data-parallel*.toml``, and that for samples of varying
length in the converters, which is printed only. Rows of split ``fit`` on 2 to 80 GPUs of the
shipped set of NVIDIA's examples, each compared with its own row on one GPU; the least mean absolute
log error, cut at 0.4, since rows held up by their input say nothing of the exchange. Test rows are
read only to print the error there. In closed form: a step, what the backward pass doesn't hide,
contention of what it hides, delay, and the latest of the ranks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fitting.part import DATA, Outcome, Say
from simulator.equations.step import harmonic
from simulator.physics.device_time import BACKWARD_SHARE
from simulator.pipeline.stages.communication import all_reduce_time, bucket_shares
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario
from simulator.schema.measurement import Row, Split
from simulator.units import SECOND, parse, show

Vector = NDArray[np.float64]
RATE = "throughput_samples_per_s"
CUT = 0.4
HIGH = np.array([0.2, 0.2, 0.02, 0.02, 1.0])
NAMES = (
    "straggling",
    "straggling, varying lengths",
    "delay, Horovod",
    "delay, others",
    "contention",
)
SET = "nvidia_examples_training"
PARTS = 10
"""Parts of the rows that are left out in turn."""
_PLAIN, _HOROVOD = (f"measured/bases/data-parallel{kind}.toml" for kind in ("", "-horovod"))
PLACES = {
    "straggling": (_PLAIN, "straggling"),
    "delay, Horovod": (_HOROVOD, "exchange_delay"),
    "delay, others": (_PLAIN, "exchange_delay"),
    "contention": (_PLAIN, "exchange_contention"),
}
"""File and key of each constant that a scenario has."""
STARTS = ([0.02, 0.07, 0.01, 0.003, 0.4], [0.01, 0.05, 0.015, 0.001, 0.1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A row compared with the one on one GPU: its facts, and the efficiency it reached."""

    held_out: float
    horovod: float
    varying: float
    late: float
    step: float
    backward: float
    exchange: float
    last: float
    efficiency: float


def points(name: str) -> Iterator[Point]:
    """All rows on several GPUs that have one on one GPU."""
    catalogue = Catalogue.default(())
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in load_set(name).rows:
        if row.labels.get("kind") == "one GPU" and not row.excluded:
            groups[row.labels["series"]].append(row)
    for rows in groups.values():
        alone = np.mean([row.measured[RATE] for row in rows if row.anchor])
        yield from (point(row, float(alone), catalogue) for row in rows if not row.anchor)


def point(row: Row, alone: float, catalogue: Catalogue) -> Point:
    """One row, `alone` samples a second being what one GPU makes."""
    scenario = load_scenario(row.base, overrides=row.overrides, catalogue=catalogue)
    train = scenario.job.train
    exchange = float(all_reduce_time(scenario))
    return Point(
        held_out=float(row.split is Split.TEST),
        horovod=float(scenario.job.software.framework.startswith("tensorflow")),
        varying=float(any(one.startswith("train.straggling=") for one in row.overrides)),
        late=float(harmonic(scenario.ranks)) - 1.0,
        step=train.batch_size * train.accumulation / alone,
        backward=BACKWARD_SHARE * train.batch_size / alone,
        exchange=exchange,
        last=exchange * bucket_shares(scenario)[-1],
        efficiency=row.measured[RATE] / alone / scenario.ranks,
    )


def predicted(x: Vector, table: Vector) -> Vector:
    """Efficiency of every row, shape (rows,), at the constants `x`."""
    _, horovod, varying, late, step, backward, exchange, last, _ = table.T
    same, differ, agreed, plain, contention = x
    hidden = np.minimum(exchange - last, backward)
    straggling = np.where(varying > 0.0, differ, same) * late * step
    delay = np.where(horovod > 0.0, agreed, plain)
    found: Vector = step / (step + exchange - hidden + contention * hidden + delay + straggling)
    return found


def fitted(fit: Vector) -> Vector:
    """The constants with the least mean absolute log error, cut at `CUT`."""

    def loss(x: Vector) -> Any:  # noqa: ANN401 - scipy takes what numpy gives
        errors = np.abs(np.log(predicted(np.clip(x, 0.0, HIGH), fit) / fit[:, -1]))
        return np.mean(np.minimum(errors, CUT))

    runs = [
        minimize(loss, start, method="Nelder-Mead", options={"maxiter": 9000, "maxfev": 9000})
        for start in STARTS
    ]
    return np.asarray(np.clip(min(runs, key=lambda run: run.fun).x, 0.0, HIGH))


def resampled(fit: Vector, best: Vector) -> Vector:
    """Standard errors of the constants: fits to a part of the rows, each tenth left out in turn."""
    parts = [fitted(np.delete(fit, np.arange(i, len(fit), PARTS), axis=0)) for i in range(PARTS)]
    spread = np.sum((np.array(parts) - best) ** 2, axis=0) * (PARTS - 1) / PARTS
    return np.asarray(np.sqrt(spread))


def part(tables: Path | None, say: Say) -> Outcome:
    """The part of ``evidence/fit.py``."""
    name = SET if tables is None else str(tables / f"{SET}.toml")
    table = np.array([astuple(one) for one in points(name)])
    fit = table[table[:, 0] == 0.0]
    say(f"{len(fit)} rows")
    best = fitted(fit)
    lines = []
    for label, value, high, error in zip(NAMES, best, HIGH, resampled(fit, best), strict=True):
        bound = " (at its bound)" if value in (0.0, high) else ""
        lines.append(f"{label:30} {value:.4g}, error {error:.2g}, from 0 to {high:g}{bound}")
    for split, rows in (("fit", fit), ("test", table[table[:, 0] == 1.0])):
        errors = np.abs(predicted(best, rows) / rows[:, -1] - 1.0)
        linear = np.abs(1.0 / rows[:, -1] - 1.0)
        lines.append(
            f"{split:5}{len(rows):4} rows: median {np.median(errors):.1%}, linear scaling "
            f"{np.median(linear):.1%}"
        )
    figures = {label: float(f"{value:.3g}") for label, value in zip(NAMES, best, strict=True)}
    texts = {
        file: (DATA / file).read_text(encoding="utf-8") for file in {f for f, _ in PLACES.values()}
    }
    shipped = {}
    for label, (file, key) in PLACES.items():
        shipped[label], texts[file] = _put(texts[file], key, figures[label])
    return Outcome(
        figures={label: figures[label] for label in PLACES},
        shipped=shipped,
        files=texts,
        lines=tuple(lines),
    )


def _put(text: str, key: str, value: float) -> tuple[float, str]:
    """What a file holds under a key, a number or seconds; the file with another value."""
    found = re.search(rf"^{key} = (.*?)(\s*#.*)?$", text, re.MULTILINE)
    if found is None:
        msg = f"{key} is not in the file"
        raise KeyError(msg)
    old = found.group(1)
    seconds = old.startswith('"')
    known = parse(old.strip('"'), SECOND) if seconds else float(old)
    new = f'"{show(value, SECOND, 3)}"' if seconds else f"{value:.3g}"
    start, end = found.span(1)
    return float(known), text[:start] + new.ljust(len(old)) + text[end:]
