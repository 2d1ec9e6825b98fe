"""Figures of the forward pass of serving engines, from the times of output tokens of closed loops.

The time of an output token is that of an iteration in which all requests decode halfway through
their answers, and of the part of a prompt that falls on it: each iteration ends ``concurrency /
answer`` requests, whose followers' prompts are computed in the same forward pass, or in one of
their own where the engine computes prompts first; where engines look for requests, or start them,
every few iterations only, several at once. The engine itself is simulated when the rows are
validated; this form is its mean and is used in the fit alone.

Runs in which requests wait for more than half of their answer are left out: what binds there is
the engine's limit of requests or its cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from converters import TableRow
from converters.serving_rows import ServingRow, rows
from fitting import posterior, serving_replies, serving_scores
from fitting.part import DATA, Outcome, Say
from fitting.serving_scores import Checked, Predicted
from fitting.tables import SERVING
from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import (
    ForwardPass,
    Iteration,
    ServingParallelism,
    forward_pass,
    serving_device,
)
from simulator.physics.transformer import Shape, shape_of
from simulator.reading.document import check, read_document
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.model_library import load_model
from simulator.reading.service.engines import cache_of, engine_file
from simulator.reading.service.figures import (
    PATH,
    UNSEEN,
    ServingFigure,
    ServingFile,
    serving_figures,
    serving_file,
    serving_kernels,
    with_values,
)
from simulator.schema.accelerators import Precision
from simulator.schema.transformers import Transformer

Vector = NDArray[np.float64]

TABLE: Final = Path(SERVING) / "silicon_sample.csv"
EXPECTED: Final = Path(__file__).resolve().with_suffix(".toml")
DEVIATION: Final = 0.05
"""Log error that is taken as none: repeats of a configuration differ by up to 9%."""
ALONE: Final = "sglang"
"""The engine that computes prompts in iterations of their own."""
_NARROW_CACHE: Final = "Blackwell"
"""Architectures on which the scripts keep keys and values in 8 bit with any engine."""
_WAITED: Final = 0.5
_SHARED: Final = "deviations."
_BOUND: Final = 4.0
"""Spreads that a figure may lie from what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEntry:
    """What is expected of figures that share a value."""

    names: list[str]
    """Figures."""
    prior: float
    """What is expected."""
    spread: float
    """Standard deviation of its logarithm."""
    why: str
    """The reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFile:
    """The file of expectations."""

    figure: list[FigureEntry]
    """One for each value."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What runs of one forward pass have in common."""

    model: str
    gpu: str
    engine: str
    spread: ServingParallelism


@cache
def expected() -> ExpectedFile:
    """What is expected of each figure."""
    return check(ExpectedFile, read_document(EXPECTED))


def with_figures(x: Vector) -> ServingFile:
    """The shipped file at deviations of the fitted figures from what is expected, in spreads."""
    file = serving_file()
    figures = dict(file.figures)
    engine = {name: dict(own) for name, own in file.engine.items()}
    for entry, deviation in zip(expected().figure, x, strict=True):
        for name in entry.names:
            *path, last = name.split(".")
            table = figures if path == ["figures"] else engine[path[1]]
            value = float(entry.prior * np.exp(entry.spread * deviation))
            table[last] = ServingFigure(value=value, source=table[last].source)
    return replace(file, figures=figures, engine=engine)


def setup(row: ServingRow) -> Setup:
    """What decides the forward pass of a run."""
    weights = row.weights or Precision.BF16
    scripted = _architecture(row.gpu).startswith(_NARROW_CACHE) and weights is not Precision.BF16
    own = cache_of(engine_file(row.engine), weights)
    return Setup(
        row.model,
        row.gpu,
        row.engine,
        ServingParallelism(
            tensor=row.tensor,
            split_experts=row.split_experts,
            weights=weights,
            cache=Precision.FP8 if scripted else own,
        ),
    )


@cache
def _catalogue() -> Catalogue:
    return Catalogue.default(())


@cache
def _architecture(gpu: str) -> str:
    return _catalogue().gpu(gpu).architecture


@cache
def model_shape(name: str) -> Shape:
    """The shape of a language model of the library."""
    model = load_model(name)
    if not isinstance(model, Transformer):
        raise TypeError(name)
    return shape_of(model)


def passes(setups: Sequence[Setup], file: ServingFile) -> dict[Setup, ForwardPass]:
    """The forward pass of each setup."""
    return {one: _pass(one, file) for one in setups}


def _pass(one: Setup, file: ServingFile) -> ForwardPass:
    gpu = _catalogue().gpu(one.gpu)
    peer, host = (
        None if name is None else _catalogue().link(name).peak
        for name in (gpu.peer_link, gpu.host_link)
    )
    kernels = serving_kernels(gpu, one.spread.weights)
    if kernels is None:
        raise LookupError(one.gpu)
    device = serving_device(gpu, one.spread.weights, peer, host)
    return forward_pass(
        model_shape(one.model),
        device,
        kernels.product,
        serving_figures(one.engine, file),
        one.spread,
    )


def token_time(row: ServingRow, one: ForwardPass) -> float:
    """Mean time of an output token of a closed loop [s]."""
    shrunk = 0.5 * (1.0 + row.ratio)
    prompt, output, count = row.prompt * shrunk, row.output * shrunk, row.concurrency
    context = count * (prompt + output / 2.0)
    decoding = one.seconds(Iteration(decoding=count, context_tokens=context))
    beside = 0 if row.engine == ALONE else count
    recipe = row.recipe
    wait = recipe.poll_interval if recipe.held_prompts is None else recipe.held_prompts.iterations
    together = max(1.0, wait * count / output)
    mixed = Iteration(
        prefill_tokens=int(together * prompt),
        prefill_pairs=together * float(causal_pairs(int(prompt), 0)),
        first_tokens=round(together),
        decoding=beside,
        context_tokens=context if beside else 0.0,
    )
    longer = one.seconds(mixed) - (decoding if beside else 0.0)
    return decoding + count / output * longer / together


def log_errors(found: Sequence[ServingRow], file: ServingFile) -> Vector:
    """Log of predicted over measured times of a token."""
    setups = [setup(row) for row in found]
    known = passes(list(dict.fromkeys(setups)), file)
    predicted = [token_time(row, known[one]) for row, one in zip(found, setups, strict=True)]
    return np.log(predicted) - np.log([row.per_token for row in found])


def usable(folder: Path) -> list[ServingRow]:
    """Runs of the table that can be predicted, without those in which requests wait long."""
    table = pd.read_csv(folder / TABLE, dtype=str, keep_default_na=False)
    cells = [
        TableRow(line=number + 2, cells={str(key): str(value) for key, value in row.items()})
        for number, row in enumerate(table.to_dict("records"))
    ]
    return [
        row
        for row in rows(cells)
        if not row.exclude and row.first_token < _WAITED * row.output * row.per_token
    ]


def fit(found: Sequence[ServingRow]) -> posterior.Posterior:
    """The most likely deviations of the figures from what is expected, in spreads."""
    count = len(expected().figure)

    def errors(x: Vector) -> Vector:
        return log_errors(found, with_figures(x))

    bounds = np.full(count, -_BOUND), np.full(count, _BOUND)
    weight = posterior.weights(row.model for row in found)
    return posterior.fit(errors, weight, np.zeros(count), bounds, DEVIATION, most=12)


def families(found: Sequence[ServingRow]) -> tuple[str, ...]:
    """Models of the rows, sorted."""
    return tuple(sorted({row.model for row in found}))


def checked(
    rows: Sequence[ServingRow],
    file: ServingFile,
    found: Sequence[serving_replies.Simulated],
    replies: Mapping[str, float],
) -> Checked:
    """Rows predicted by a file, as simulated, with the time of requests outside iterations."""
    beside = serving_replies.beside(rows, found, replies)
    predicted = Predicted(
        per_token=np.array([one.per_token for one in found]),
        first_token=beside + np.array([one.first_token for one in found]),
        beside=beside,
    )
    return serving_scores.checked(rows, log_errors(rows, file), predicted)


def simulate(rows: Sequence[ServingRow], file: ServingFile) -> list[serving_replies.Simulated]:
    """What the benchmarks of rows measure, without the time of requests outside iterations."""
    setups = [setup(row) for row in rows]
    known = passes(list(dict.fromkeys(setups)), file)
    return [
        serving_replies.simulated(row, known[one], _catalogue())
        for row, one in zip(rows, setups, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A model predicted by the others: errors of its rows, and the figures."""

    errors: Checked
    figures: ServingFile


def left_out(found: Sequence[ServingRow], say: Say) -> dict[str, LeftOut]:
    """Every model by figures that were fitted to the others."""
    each = {}
    for model in families(found):
        others = [row for row in found if row.model != model]
        own = [row for row in found if row.model == model]
        file = with_figures(fit(others).x)
        replies = serving_replies.fit(others, simulate(others, file))
        errors = checked(own, file, simulate(own, file), replies)
        each[model] = LeftOut(errors, with_values(file, replies))
        say(f"without {model}")
    return each


def part(folder: Path | None, say: Say) -> Outcome:
    """The figures of the forward pass.

    Parameters
    ----------
    folder : pathlib.Path or None
        Where the table of runs lies; without it nothing is fitted.
    say : callable
        Called with each line of progress.
    """
    if folder is None or not (folder / TABLE).exists():
        return Outcome(figures={}, shipped={}, lines=("serving: only with --tables",))
    found = usable(folder)
    say(f"serving: {len(found)} runs of {len(families(found))} models")
    best = fit(found)
    file = with_figures(best.x)
    runs = simulate(found, file)
    replies = serving_replies.fit(found, runs)
    own = _each(found, checked(found, file, runs, replies))
    lines = [*_sure(best), "fitted to all", *serving_scores.by_model(own)]
    unseen = left_out(found, say)
    others = {model: one.errors for model, one in unseen.items()}
    lines += ["model left out", *serving_scores.by_model(others), *serving_scores.coverage(others)]
    whole = with_values(file, {**replies, **_named(serving_scores.deviations(others))})
    return Outcome(
        figures=_values(whole),
        shipped=_values(serving_file()),
        files={
            str(PATH.relative_to(DATA)): _text(whole),
            str(UNSEEN.relative_to(DATA)): _unseen_text(unseen),
        },
        lines=tuple(lines),
    )


def _named(deviations: Mapping[str, float]) -> dict[str, float]:
    return {f"deviations.{name}": value for name, value in deviations.items()}


def _each(found: Sequence[ServingRow], errors: Checked) -> dict[str, Checked]:
    own = {model: np.array([row.model == model for row in found]) for model in families(found)}
    return {model: errors.part(at) for model, at in own.items()}


def _sure(best: posterior.Posterior) -> Iterator[str]:
    for entry, x, error in zip(expected().figure, best.x, best.errors, strict=True):
        value = entry.prior * np.exp(entry.spread * x)
        name = ", ".join(entry.names)
        yield f"{name:48s} {value:10.4g}  expected {entry.prior:8.3g}  sure to {error:4.0%} of it"


def _values(file: ServingFile) -> dict[str, float]:
    common = {f"figures.{name}": _rounded(one) for name, one in file.figures.items()}
    common |= {f"deviations.{name}": _rounded(one) for name, one in file.deviations.items()}
    own: Mapping[str, float] = {
        f"engine.{engine}.{name}": _rounded(one)
        for engine, tables in file.engine.items()
        for name, one in tables.items()
    }
    return {**common, **own}


def _rounded(one: ServingFigure) -> float:
    return float(f"{float(one.value):.5g}")


def _unseen_text(unseen: Mapping[str, LeftOut]) -> str:
    """The file of the figures without each model; the deviations are those of all."""
    lines = [
        "# Figures of forward_pass.toml as fitted without each model: plan validate predicts it",
        "# by them. Written by evidence/fit.py serving.",
        "schema = 1",
    ]
    for model, one in unseen.items():
        lines += ["", f'[without."{model}"]']
        values = _values(one.figures).items()
        lines += [f'"{name}" = {value!r}' for name, value in values if not name.startswith(_SHARED)]
    return "\n".join(lines) + "\n"


def _text(file: ServingFile) -> str:
    """The shipped text with other values."""
    lines, table = [], ""
    values = _values(file)
    for line in PATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        name = f"{table}.{line.partition(' ')[0]}"
        if name in values and "value = " in line:
            head, _, rest = line.partition("value = ")
            line = f"{head}value = {values[name]!r},{rest.partition(',')[2]}"  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines) + "\n"
