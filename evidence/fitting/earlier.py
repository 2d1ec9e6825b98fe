"""What older versions of an engine reached on an architecture, from batches of equal requests.

Each run is a batch of requests that are all there at once, with prompts and answers of one length:
prompts are computed first, and then all sequences decode together. Figures are fitted to the runs
of two models, and judged by those of the others. Whether heads that share keys and values read
them once or each for itself is a property of the kernels of a software stack: what fits the former
better on all its accelerators. Runs whose cache is too small for all
requests at once are left out of the fit, and of the judgement.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fitting import posterior, serving_scores
from fitting.part import DATA, Outcome, Say
from fitting.serving import model_shape
from fitting.tables import SERVING
from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import (
    ForwardPass,
    Iteration,
    ServingParallelism,
    forward_pass,
    serving_device,
)
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.service.engines import engine_file, usual_settings
from simulator.reading.service.figures import (
    EARLIER,
    earlier_file,
    serving_figures,
    serving_kernels,
)
from simulator.schema.accelerators import Gpu, Precision
from simulator.serving.replica import pool_of

Vector = NDArray[np.float64]

TABLE: Final = Path(SERVING) / "argonne_llm_inference_bench.csv"
HARDWARE: Final = {
    "Nvidia A100 GPU": "gpu/a100-sxm4-40gb",
    "Nvidia H100 GPU": "gpu/h100-sxm5-80gb",
    "AMD MI300X GPU": "gpu/mi300x",
}
"""Profiles of what the table names."""
FITTED: Final = {
    "meta-llama/Llama-2-7b-hf": "llama-2-7b",
    "meta-llama/Llama-2-70b-hf": "llama-2-70b",
}
"""Models that figures are fitted to: without and with heads that share keys and values."""
JUDGED: Final = {
    "meta-llama/Meta-Llama-3-8B": "llama-3.1-8b",
    "meta-llama/Meta-Llama-3-70B": "llama-3.1-70b",
    "mistralai/Mistral-7B-v0.1": "mistral-7b",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
}
NAMED, ENGINE, OLD, BEFORE = "vLLM", "vllm", "0.6", "0.8"
"""The engine as the table and as its file name it, a version of the runs' time, and the first one
with another scheduler."""
DEVIATION: Final = 0.05
"""Log error that is taken as none."""
_BOUND: Final = 4.0
"""Spreads that a figure may lie from what is expected."""


class Expected(NamedTuple):
    """What is expected of a figure, the standard deviation of its logarithm, and its most."""

    value: float
    spread: float
    most: float = float("inf")

    @property
    def bound(self) -> float:
        """Spreads that it may lie above what is expected."""
        return min(_BOUND, float(np.log(self.most / self.value)) / self.spread)


EXPECTED: Final = {
    "iteration": Expected(3e-3, 1.0),
    "sequence": Expected(5e-5, 1.0),
    "layer": Expected(1e-4, 1.0),
    "few_rows": Expected(0.1, 1.0),
    "stream": Expected(0.8, 0.12, 1.0),
    "cache": Expected(0.5, 0.7, 1.0),
}
KNOWN: Final = {"eager": 1.0}
"""Guesses: an iteration of answers takes as long as if its kernels were launched one by one."""


@dataclass(frozen=True, slots=True)
class Run:
    """One batch of equal prompts and answers, and how long it took [s]."""

    model: str
    name: str
    devices: int
    tokens: int
    batch: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """Figures of one architecture, whether heads share what they read, and errors by model."""

    gpu: Gpu
    figures: Mapping[str, float]
    shared: bool
    best: posterior.Posterior
    errors: Mapping[str, Vector]

    @property
    def judged(self) -> Vector:
        """Log errors of the models that had no part."""
        return np.concatenate([one for model, one in self.errors.items() if model in JUDGED])

    @property
    def deviation(self) -> float:
        """With which an interval holds 80% of those."""
        width = np.quantile(abs(self.judged), serving_scores.INSIDE) / serving_scores.P90
        return float(width)


def runs(path: Path, hardware: str) -> list[Run]:
    """Runs of the engine on some hardware."""
    names = {**FITTED, **JUDGED}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Run(
                model=row["model"],
                name=names[row["model"]],
                devices=int(row["n_devices"]),
                tokens=int(row["input_output_len"]),
                batch=int(row["batch"]),
                seconds=float(row["latency_s"]),
            )
            for row in csv.DictReader(file)
            if row["hardware"] == hardware and row["framework"] == NAMED and row["model"] in names
        ]


def passes(found: Sequence[Run], gpu: Gpu, x: Vector, *, shared: bool) -> list[ForwardPass]:
    """The forward pass of each run at deviations of the figures from what is expected."""
    known = _values(x)
    figures = replace(
        serving_figures(ENGINE),
        iteration=known["iteration"],
        sequence=known["sequence"],
        layer=known["layer"],
        few_rows=known["few_rows"],
        stream=known["stream"],
        cache=known["cache"],
        eager=KNOWN["eager"],
        shared_reads=shared,
    )
    kernels, weights = serving_kernels(gpu, Precision.BF16), Precision.BF16
    if kernels is None:
        raise LookupError(gpu.name)
    catalogue = Catalogue.default(())
    peer, host = (
        None if name is None else catalogue.link(name).peak
        for name in (gpu.peer_link, gpu.host_link)
    )
    device, products = serving_device(gpu, weights, peer, host), kernels.product
    each = {
        key: forward_pass(
            model_shape(key[0]), device, products, figures, ServingParallelism(tensor=key[1])
        )
        for key in dict.fromkeys((run.name, run.devices) for run in found)
    }
    return [each[run.name, run.devices] for run in found]


def seconds(run: Run, one: ForwardPass, budget: int) -> float:
    """Prompts, as many at once as an iteration holds, and then all answers together [s]."""
    together = max(1, min(run.batch, budget // run.tokens))
    prompts = Iteration(
        prefill_tokens=together * run.tokens,
        prefill_pairs=together * float(causal_pairs(run.tokens, 0)),
        first_tokens=together,
    )
    first = run.batch / together * one.seconds(prompts)
    return first + one.decode_seconds(run.batch, run.batch * run.tokens, run.tokens - 1)


def fitting_runs(found: Sequence[Run], gpu: Gpu) -> list[Run]:
    """Runs of whose requests the cache holds all at once."""
    serving = usual_settings(engine_file(ENGINE), OLD, gpu)
    known = passes(found, gpu, np.zeros(len(EXPECTED)), shared=True)
    room = [pool_of(serving, gpu.memory, one).tokens for one in known]
    return [
        run for run, most in zip(found, room, strict=True) if 2 * run.tokens * run.batch <= most
    ]


@dataclass(frozen=True, slots=True)
class Batches:
    """Runs on one accelerator, and the tokens that an iteration holds at most."""

    gpu: Gpu
    runs: Sequence[Run]
    budget: int

    def errors(self, models: Mapping[str, str], x: Vector, *, shared: bool) -> Vector:
        """Logs of predicted over measured times of some models' runs."""
        some = [run for run in self.runs if run.model in models]
        known = passes(some, self.gpu, x, shared=shared)
        took = [seconds(run, one, self.budget) for run, one in zip(some, known, strict=True)]
        return np.log(took) - np.log([run.seconds for run in some])

    def fit(self, *, shared: bool) -> posterior.Posterior:
        """The most likely figures, where heads share what they read or do not."""
        low = np.full(len(EXPECTED), -_BOUND)
        high = np.array([one.bound for one in EXPECTED.values()])
        weight = posterior.weights(run.model for run in self.runs if run.model in FITTED)

        def errors(x: Vector) -> Vector:
            return self.errors(FITTED, x, shared=shared)

        return posterior.fit(errors, weight, np.zeros_like(low), (low, high), DEVIATION, most=25)

    def found(self, best: posterior.Posterior, *, shared: bool) -> Found:
        """Figures, and the errors that they leave."""
        there = {run.model: run.name for run in self.runs}
        each = {
            model: self.errors({model: name}, best.x, shared=shared)
            for model, name in there.items()
        }
        return Found(self.gpu, {**_values(best.x), **KNOWN}, shared, best, each)


def batches(path: Path, hardware: str) -> Batches:
    """Runs on some hardware that the cache holds."""
    gpu = Catalogue.default(()).gpu(HARDWARE[hardware])
    budget = usual_settings(engine_file(ENGINE), OLD, gpu).max_batched_tokens
    return Batches(gpu, fitting_runs(runs(path, hardware), gpu), budget)


def fits(path: Path, say: Say) -> Iterator[Found]:
    """The most likely figures on each accelerator."""
    every = [batches(path, hardware) for hardware in HARDWARE]
    for stack in dict.fromkeys(one.gpu.stack for one in every):
        own = [one for one in every if one.gpu.stack is stack]
        ways = {shared: [one.fit(shared=shared) for one in own] for shared in (True, False)}
        shared = min(ways, key=lambda way: sum(best.cost for best in ways[way]))
        say(f"{stack} done")
        for one, best in zip(own, ways[shared], strict=True):
            yield one.found(best, shared=shared)


def part(folder: Path | None, say: Say) -> Outcome:
    """The figures of older versions.

    Parameters
    ----------
    folder : pathlib.Path or None
        Where the table of runs lies; without it nothing is fitted.
    say : callable
        Called with each line of progress.
    """
    if folder is None or not (folder / TABLE).exists():
        return Outcome(figures={}, shipped={}, lines=("earlier: only with --tables",))
    found = list(fits(folder / TABLE, say))
    figures = {
        f"{one.gpu.architecture}.{name}": float(f"{value:.4g}")
        for one in found
        for name, value in {**one.figures, "deviation": one.deviation}.items()
    }
    shipped = {
        f"{one.architecture}.{name}": float(figure.value)
        for one in earlier_file().earlier
        for name, figure in {**one.figures, "deviation": one.deviation}.items()
    }
    return Outcome(
        figures=figures,
        shipped={name: shipped.get(name, float("nan")) for name in figures},
        files={str(EARLIER.relative_to(DATA)): _text(found)},
        lines=tuple(line for one in found for line in _lines(one)),
    )


def _values(x: Vector) -> dict[str, float]:
    return {
        name: each.value * float(np.exp(each.spread * deviation))
        for (name, each), deviation in zip(EXPECTED.items(), x, strict=True)
    }


def _lines(one: Found) -> Iterator[str]:
    how = "once for all heads that share them" if one.shared else "by each head"
    yield f"{one.gpu.architecture}: keys and values are read {how}"
    for name, error in zip(EXPECTED, one.best.errors, strict=True):
        yield f"  {name:10s} {one.figures[name]:9.3g}; sure to {error:.0%} of what was expected"
    for name, errors in (*one.errors.items(), ("all left out", one.judged)):
        title = f"{name}{' (fitted)' if name in FITTED else ''}"
        yield f"  {serving_scores.summary(title, errors)}"


MEASURED: Final = (
    "argonne-lcf/LLM-Inference-Bench@4211f5d Plots/All_results.csv (BSD-3): batches of Llama 2 7B "
    "and 70B with vLLM, 16 bit assumed, versions not stated (evidence/fitting/earlier.py)"
)
LEFT_OUT: Final = (
    "the same table: with it the P10 to P90 interval holds 80% of the runs of models that had no "
    "part in the fit (Llama 3 8B and 70B, Mistral 7B, Mixtral)"
)
_HEAD: Final = f"""\
# What older versions of an engine reached on an architecture, in place of the figures of
# forward_pass.toml. Written by evidence/fit.py earlier.
schema = 1

[sources.measured]
reference = "{MEASURED}"
date = "2024"

[sources.judged]
reference = "{LEFT_OUT}"
date = "2024"

[sources.guessed]
reference = "a guess: an iteration of answers took as long as kernels that are launched one by one"
date = "2026-11-24"
verified = false
"""


def _text(found: Sequence[Found]) -> str:
    lines = [_HEAD]
    for one in found:
        lines += [
            "[[earlier]]",
            f'engine = "{ENGINE}"',
            f'before = "{BEFORE}"',
            f'architecture = "{one.gpu.architecture}"',
            f"shared_reads = {str(one.shared).lower()}",
            f'deviation = {{ value = {one.deviation:.4g}, source = "judged" }}',
            "",
            "[earlier.figures]",
        ]
        for name, value in one.figures.items():
            source = "guessed" if name in KNOWN else "measured"
            lines.append(f'{name} = {{ value = {value:.4g}, source = "{source}" }}')
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"
