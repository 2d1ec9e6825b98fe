"""How well three measured runs tell of a service: the others of its series, predicted with them.

    python evidence/serving_calibration.py

A series are the closed loops of the shipped set with one model, engine, accelerator, number format
and source. Three are fitted (those at a sixth, a half and five sixths of the requests at once, the
work of a request deciding among equals); figures of the model itself had no part in any figure.
Prints the errors before and after of the rows that were not fitted, and the standard deviations
that `fitted_forward_pass` and `fitted_request` of ``simulator/data/forward_pass.toml`` hold.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from simulator.calibration.service_factors import (
    Figures,
    calibrate_service,
    figures_of,
    settings_of,
)
from simulator.errors import InputError
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.figures import unseen as without
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.measurement import Row
from simulator.schema.software import ServiceFactors
from simulator.schema.uncertainty import P90

FITTED: Final = 3
LEAST: Final = 6
"""Rows of a series, at least."""
LATER: Final = "per_token_s.p50"
FIRST: Final = "first_token_s.mean"
WANTED: Final = (LATER, FIRST)
BESIDE: Final = "beside"
INSIDE: Final = 0.8
SERIES: Final = ("hardware.gpu", "model.name", "serving.engine", "serving.weights", "scripted")


@dataclass(frozen=True)
class Error:
    """A row that was not fitted: log errors of a figure before the fit and after it.

    `beside` is the share of the predicted first token that passes outside iterations.
    """

    series: str
    metric: str
    before: float
    after: float
    beside: float


def unseen(row: Row, factors: ServiceFactors, wanted: Sequence[str]) -> Figures:
    """A row by figures that its model had no part in, and factors."""
    own = settings(row)
    service = reader(row.base).read({**own, **settings_of(factors)})
    plain = without(service, own["model.name"])
    found, serving = dict(figures_of(plain, wanted)), plain.serving
    if found:
        beside = serving.request_overhead + serving.prompt_overhead * plain.load.prompt.mean
        beside += serving.reply_lag * found[LATER]
        found[BESIDE] = beside / found[FIRST]
    return found


@cache
def reader(base: str) -> ServiceReader:
    """What reads the rows of a base."""
    return ServiceReader(chain_of(base), base)


def settings(row: Row) -> dict[str, str]:
    """What the row says of its service."""
    return dict(override.split("=", 1) for override in row.overrides)


def series_of(row: Row) -> str:
    """Its series; whether lengths vary tells the two sources apart."""
    known = settings(row)
    known["scripted"] = "ratio = 1 " if "ratio = 1 }" in known["load.prompt"] else "ratio"
    return " ".join(known[key] for key in SERIES)


def work(row: Row) -> tuple[int, str, str]:
    """By what rows of a series are put in order."""
    known = settings(row)
    return int(known["load.concurrency"]), known["load.prompt"], row.id


def errors(rows: Sequence[Row]) -> list[Error]:
    """The rows of a series that are left after three were fitted."""
    ordered = sorted(rows, key=work)
    at = [len(ordered) * (2 * i + 1) // (2 * FITTED) for i in range(FITTED)]
    fitted = [ordered[i] for i in at]
    try:
        factors = calibrate_service(fitted, WANTED, unseen).factors
    except InputError:
        return []
    return [
        Error(
            series=series_of(row),
            metric=name,
            before=math.log(before[name] / row.measured[name]),
            after=math.log(after[name] / row.measured[name]),
            beside=after[BESIDE],
        )
        for row in ordered
        if row not in fitted
        for before in [unseen(row, ServiceFactors(), WANTED)]
        for after in [unseen(row, factors, WANTED)]
        for name in WANTED
    ]


def lines(found: Sequence[Error]) -> Iterator[str]:
    """Errors by series and of all, and the deviations with which intervals hold 80%."""
    for metric in WANTED:
        own = [one for one in found if one.metric == metric]
        for series in (*sorted({one.series for one in own}), ""):
            part = [one for one in own if series in ("", one.series)]
            shares = [
                np.abs(np.expm1([getattr(one, which) for one in part]))
                for which in ("before", "after")
            ]
            told = "  ".join(
                f"median {np.median(s):6.1%} p90 {np.quantile(s, 0.9):6.1%}" for s in shares
            )
            yield f"{metric:20s} {series or 'all':70s} {len(part):4d}  {told}"
    forward, request = deviations(found)
    yield f"intervals that hold 80%: forward_pass {forward:.3f}, request {request:.3f}"


def deviations(found: Sequence[Error]) -> tuple[float, float]:
    """Return deviations of iterations, and of the time outside, with which intervals hold 80%."""
    tokens = [abs(one.after) for one in found if one.metric == LATER]
    forward = float(np.quantile(tokens, INSIDE)) / P90
    firsts = [one for one in found if one.metric == FIRST]

    def held(request: float) -> float:
        """Share of the first tokens between those of the P10 and of the P90 run."""
        return float(np.mean([_ends(one, forward, request) for one in firsts]))

    tried = np.linspace(0.0, 2.0, 201)
    return forward, float(next((one for one in tried if held(float(one)) >= INSIDE), tried[-1]))


def _ends(one: Error, forward: float, request: float) -> bool:
    low, high = (
        (1.0 - one.beside) * math.exp(side * P90 * forward)
        + one.beside * math.exp(side * P90 * request)
        for side in (-1.0, 1.0)
    )
    return low <= math.exp(-one.after) <= high


def main() -> int:
    """Print what three rows of each series tell of its others."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in load_set("serving").rows:
        if "first_token_s.mean" in row.measured:
            groups[series_of(row)].append(row)
    parts = [rows for rows in groups.values() if len(rows) >= LEAST]
    found = list[Error]()
    with ProcessPoolExecutor() as pool:
        for part in pool.map(errors, parts):
            found += part
            sys.stderr.write("\n".join(lines(part)) + "\n" if part else "a row does not fit\n")
    sys.stdout.write("\n".join(lines(found)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
