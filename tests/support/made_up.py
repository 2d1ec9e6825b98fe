"""A made-up model of two resources, and measurement sets that check_invariants it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from simulator.schema.measurement import MeasurementSet, Parameter, Row, Split, SplitRule

BASE = "cpu-starved-p4d"
STEP = "step_time_s.mean"
CPU = Parameter(key="calibration.cpu", start="1", low="0.1", high="10")
STORE = Parameter(key="calibration.storage", start="1", low="0.01", high="20")
NETWORK = Parameter(key="calibration.network", start="1", low="0.05", high="2")
COMPUTE = Parameter(key="calibration.compute", start="1", low="0.1", high="4")


def values(row: Row, overrides: Sequence[str]) -> dict[str, float]:
    """What all keys say, later ones winning."""
    pairs = (text.split("=", 1) for text in (*row.overrides, *overrides))
    return {key: float(value.split()[0]) for key, value in pairs}


def model(
    row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
) -> Mapping[str, float | None]:
    """A step works on the cores, reads, and computes at least 20 ms beside both.

    The product of cpu and compute is all that the work on the cores depends on.
    """
    said = values(row, overrides)
    workers, batch = said["input.workers"], said["train.batch_size"]
    speed = said.get("calibration.cpu", 1.0) * said.get("calibration.compute", 1.0)
    work = batch * 0.01 / workers / speed
    read = batch * 0.002 / said.get("calibration.storage", 1.0)
    return dict.fromkeys(metrics, max(0.02, work, read))


def made_up(
    truth: Sequence[str] = ("calibration.cpu=0.5", "calibration.storage=0.4"),
    noise: float = 0.02,
    seed: int = 1,
    workers: Sequence[int] = (1, 2, 3, 4, 6, 8),
    batches: Sequence[int] = (32, 64),
    **changes: object,
) -> MeasurementSet:
    """A set measured on the made-up model; one configuration for each number of workers."""
    draw = random.Random(seed)  # noqa: S311 - noise, no secret
    rows = []
    for count in workers:
        for batch in batches:
            row = Row(
                id=f"w{count}-b{batch}",
                base=BASE,
                overrides=(f"input.workers={count}", f"train.batch_size={batch}"),
                measured={},
                family="made up",
                split=Split.FIT,
                labels={"workers": str(count)},
            )
            exact = model(row, tuple(truth), (STEP,))[STEP] or 0.0
            rows.append(with_measured(row, exact * math.exp(draw.gauss(0.0, noise))))
    given: dict[str, object] = {
        "name": "made-up",
        "title": "A made-up set",
        "source": "made up",
        "date": "2026-11-21",
        "rows": tuple(rows),
        "metrics": (STEP,),
        "split": SplitRule.GIVEN,
        "configuration": ("workers",),
    }
    return MeasurementSet(**{**given, **changes})  # type: ignore[arg-type] # fields by name


def with_measured(row: Row, value: float, **changes: object) -> Row:
    """The row with this step time."""
    fields = {name: getattr(row, name) for name in row.__slots__}
    return Row(**{**fields, "measured": {STEP: value}, **changes})
