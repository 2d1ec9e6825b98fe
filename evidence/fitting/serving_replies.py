"""Time of a request outside its iterations: figures of the way to the engine and back.

Each run is simulated as its benchmark ran it, with its burst of first requests and its end.
A request that takes time to reach the engine arrives in the midst of an iteration and waits for
its end: runs are simulated with `BEFORE` that time, which is taken off again. What
the measured time to the first token has beyond the simulated mean is put down to the request
itself, to each token of its prompt, and to iterations that pass until a token reaches the client
(engines schedule one iteration ahead, poll for new requests every few, and stream in pieces).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from converters.serving_rows import ServingRow
from fitting import posterior
from simulator.physics.forward_pass import ForwardPass
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.service.engines import engine_file, usual_settings
from simulator.reading.service.figures import engines
from simulator.schema.serving import ClosedLoop, LengthDistribution, Lengths, Load, Slo
from simulator.serving.engine import Replica
from simulator.serving.fleet import Fleet, run
from simulator.serving.load import requests_of, usual_count
from simulator.serving.replica import pool_of
from simulator.serving.run import Ran, answered

Vector = NDArray[np.float64]

REQUEST: Final = 0.02
TOKEN: Final = 8e-6
LAG: Final = 3.0
"""What is expected of a request [s], of a token of its prompt [s], of the lag [iterations]."""
BEFORE: Final = 0.005
"""Time of a request before the scheduler has it with which runs are simulated [s]."""
SPREAD: Final = 1.0
DEVIATION: Final = 0.1
"""Log error that is taken as none: repeats of a configuration differ by 3 to 26%."""
_BOUND: Final = 3.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """Mean times of a run to the first token, less `BEFORE`, and for each further one [s]."""

    first_token: float
    per_token: float


def simulated(row: ServingRow, one: ForwardPass, catalogue: Catalogue) -> Simulated:
    """What the benchmark of a row would measure if requests took no time outside iterations."""
    gpu = catalogue.gpu(row.gpu)
    usual = row.recipe.applied(usual_settings(engine_file(row.engine), None, gpu))
    serving = replace(
        usual,
        tensor=row.tensor,
        request_overhead=BEFORE,
        prompt_overhead=0.0,
        reply_lag=0.0,
    )
    load = Load(
        arrivals=ClosedLoop(concurrency=row.concurrency),
        prompt=_lengths(row.prompt, row.ratio),
        output=_lengths(row.output, row.ratio),
    )
    pool = pool_of(serving, gpu.memory, one)
    longest = pool.tokens or row.prompt + row.output
    requests = requests_of(load, usual_count(load) or 0, 0, longest)
    blocks = max(pool.blocks, (row.prompt + row.output) // serving.block_tokens + 2)
    replica = Replica(serving, blocks, one, requests)
    counts = run(Fleet(lambda: replica, 1, serving.router), requests)
    told = answered(requests, Ran(counts), Slo(), blocks=blocks, steady=False)
    return Simulated(told.first_token.mean - BEFORE, told.per_token.p50)


def _lengths(tokens: int, ratio: float) -> Lengths:
    return Lengths(tokens=tokens, spread=LengthDistribution.UNIFORM, ratio=ratio)


def fit(rows: Sequence[ServingRow], found: Sequence[Simulated]) -> Mapping[str, float]:
    """The most likely figures, by name in the file, of runs whose procedure is known."""
    names = engines()
    known = [(row, one) for row, one in zip(rows, found, strict=True) if row.scripted]
    rows, found = [row for row, _ in known], [one for _, one in known]
    count = 2 * len(names) + 1

    def errors(x: Vector) -> Vector:
        return log_errors(rows, found, _figures(x))

    bounds = np.full(count, -_BOUND), np.full(count, _BOUND)
    weight = posterior.weights(row.model for row in rows)
    best = posterior.fit(errors, weight, np.zeros(count), bounds, DEVIATION, most=20)
    return _figures(best.x)


def _figures(x: Vector) -> dict[str, float]:
    names = engines()
    token, requests, lags = x[0], x[1 : len(names) + 1], x[len(names) + 1 :]
    found = {"figures.prompt_token": TOKEN * np.exp(SPREAD * token)}
    for name, request, lag in zip(names, requests, lags, strict=True):
        found[f"engine.{name}.request"] = REQUEST * np.exp(SPREAD * request)
        found[f"engine.{name}.lag"] = LAG * np.exp(SPREAD * lag)
    return {name: float(value) for name, value in found.items()}


def beside(
    rows: Sequence[ServingRow], found: Sequence[Simulated], figures: Mapping[str, float]
) -> Vector:
    """Return the time outside iterations until the first token of each row [s]."""
    return np.array(
        [
            figures[f"engine.{row.engine}.request"]
            + figures["figures.prompt_token"] * row.prompt * 0.5 * (1.0 + row.ratio)
            + figures[f"engine.{row.engine}.lag"] * one.per_token
            for row, one in zip(rows, found, strict=True)
        ]
    )


def log_errors(
    rows: Sequence[ServingRow], found: Sequence[Simulated], figures: Mapping[str, float]
) -> Vector:
    """Log of predicted over measured times to the first token."""
    predicted = np.array([one.first_token for one in found]) + beside(rows, found, figures)
    return np.asarray(np.log(predicted / np.array([row.first_token for row in rows])))
