"""How far services are off: errors of rows by model, and the deviations that ship with them.

Output tokens a second are those of a closed loop whose requests each take a first token and the
rest of an answer: the table has no rate of its own, so that measured and predicted ones are worked
out equally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from converters.serving_rows import ServingRow

Vector = NDArray[np.float64]
Held = NDArray[np.bool_]

P90: Final = NormalDist().inv_cdf(0.9)
INSIDE: Final = 0.8
"""Share of rows that an interval from P10 to P90 holds."""
_WIDEST: Final = 2.0
_TRIED: Final = 200


@dataclass(frozen=True, slots=True)
class Predicted:
    """Rows as predicted [s]: a token, the first one, and of that the time outside iterations."""

    per_token: Vector
    first_token: Vector
    beside: Vector


@dataclass(frozen=True, slots=True)
class Checked:
    """Log errors of rows: of a token by the mean form, and simulated of a token, the first, a rate.

    `beside` is the share of the predicted first token that passes outside iterations; `scripted`
    says for which rows the benchmark's procedure is known.
    """

    mean: Vector
    per_token: Vector
    first_token: Vector
    rate: Vector
    beside: Vector
    scripted: NDArray[np.bool_]

    def part(self, at: NDArray[np.bool_]) -> Checked:
        """Some of the rows."""
        return Checked(*(getattr(self, one.name)[at] for one in fields(self)))


def checked(rows: Sequence[ServingRow], mean: Vector, predicted: Predicted) -> Checked:
    """Predictions and measured values; `mean` are log errors of the mean form."""
    per_token = np.array([row.per_token for row in rows])
    first = np.array([row.first_token for row in rows])
    later = np.array([0.5 * (1.0 + row.ratio) * row.output - 1.0 for row in rows])
    measured, expected = (
        first + later * per_token,
        predicted.first_token + later * predicted.per_token,
    )
    return Checked(
        mean=mean,
        per_token=np.log(predicted.per_token / per_token),
        first_token=np.log(predicted.first_token / first),
        rate=np.log(measured / expected),
        beside=predicted.beside / predicted.first_token,
        scripted=np.array([row.scripted for row in rows]),
    )


def together(parts: Mapping[str, Checked]) -> Checked:
    """The rows of all models."""
    names = [one.name for one in fields(Checked)]
    return Checked(*(np.concatenate([getattr(one, n) for one in parts.values()]) for n in names))


def deviations(errors: Mapping[str, Checked]) -> dict[str, float]:
    """Deviations with which intervals hold `INSIDE` of the rows, each model counting equally.

    That of the forward pass comes from times of a token, that of the time outside iterations
    from times to the first token of runs whose procedure is known.
    """
    forward = _quantile({name: abs(one.per_token) for name, one in errors.items()}) / P90
    known = {name: one.part(one.scripted) for name, one in errors.items() if one.scripted.any()}

    def held(request: float) -> float:
        each = (_held(one, forward, request).mean() for one in known.values())
        return float(np.mean(list(each)))

    tried = np.linspace(0.0, _WIDEST, _TRIED + 1)
    request = next((one for one in tried if held(float(one)) >= INSIDE), _WIDEST)
    return {"forward_pass": float(forward), "request": float(request)}


def _quantile(values: Mapping[str, Vector]) -> float:
    """The value that `INSIDE` of all are below, each family counting equally."""
    every = np.concatenate(list(values.values()))
    weight = np.concatenate([np.full(len(one), 1.0 / len(one)) for one in values.values()])
    order = np.argsort(every)
    share = np.cumsum(weight[order]) / weight.sum()
    return float(every[order][np.searchsorted(share, INSIDE)])


def _held(one: Checked, forward: float, request: float) -> NDArray[np.bool_]:
    """Return whether each measured first token lies between those of the P10 and the P90 run."""
    ends = [
        (1.0 - one.beside) * np.exp(sign * P90 * forward)
        + one.beside * np.exp(sign * P90 * request)
        for sign in (-1.0, 1.0)
    ]
    measured = np.exp(-one.first_token)
    return np.asarray((ends[0] <= measured) & (measured <= ends[1]))


def coverage(errors: Mapping[str, Checked]) -> Iterator[str]:
    """How many rows of each model lie in intervals whose width the other models gave."""
    tokens, firsts = list[Held](), list[Held]()
    for model, own in errors.items():
        width = deviations({name: one for name, one in errors.items() if name != model})
        forward, request = width["forward_pass"], width["request"]
        tokens.append(abs(own.per_token) <= P90 * forward)
        firsts.append(_held(own, forward, request))
        token, first = (float(np.mean(one[-1])) for one in (tokens, firsts))
        yield f"80% interval {model:20s} token {token:4.0%}  first token {first:4.0%}"
    token, first = (float(np.mean(np.concatenate(one))) for one in (tokens, firsts))
    yield f"80% interval {'all':20s} token {token:4.0%}  first token {first:4.0%}"


def summary(name: str, errors: Vector) -> str:
    """Median and 90% quantile of the relative errors, and the median signed one."""
    shares = np.expm1(errors)
    median, high = np.quantile(abs(shares), [0.5, 0.9])
    return (
        f"{name:20s} {len(shares):5d} rows  median {median:6.1%}  p90 {high:6.1%}"
        f"  bias {np.median(shares):+6.1%}"
    )


def by_model(errors: Mapping[str, Checked]) -> Iterator[str]:
    """Summaries of each kind of error, by model and of all rows."""
    for kind in ("mean", "per_token", "first_token", "rate"):
        for model, each in errors.items():
            yield f"{kind:12s} {summary(model, getattr(each, kind))}"
        every = together(errors)
        yield f"{kind:12s} {summary('all', getattr(every, kind))}"
        if kind == "first_token":
            known = every.first_token[every.scripted]
            yield f"{kind:12s} {summary('procedure known', known)}"
