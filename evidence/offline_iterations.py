"""What an engine of 2024 spent its iterations on, from batches of equal prompts and answers.

    python evidence/offline_iterations.py FILE --hardware "AMD MI300X GPU" --gpu gpu/mi300x

FILE is `argonne_llm_inference_bench.csv`.

The time of an iteration is that of a run over the tokens of an answer: the batch decodes, with its
prompts' share. It is the sum of the engine's own times, of products (either bound by weights that
are read or by what few rows reach), of prompts and of the cache. The last is read once by all heads
that share keys and values, or once by each of them; what fits tells which. Figures are
fitted to some models and judged by the others. Nothing of this ships.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fitting import posterior, serving_scores
from fitting.serving import model_shape
from simulator.compute.description import Shape
from simulator.equations.decoding import touched_experts
from simulator.files.catalogue import Catalogue
from simulator.scenario.hardware.gpu import Gpu
from simulator.scenario.precision import Precision

Vector = NDArray[np.float64]

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
ENGINE: Final = "vLLM"
DEVIATION: Final = 0.05
"""Log error that is taken as none."""
_BYTES: Final = Precision.BF16.bytes_per_element


class Expected(NamedTuple):
    """What is expected of a figure, and the standard deviation of its logarithm."""

    value: float
    spread: float
    unit: str


EXPECTED: Final = {
    "iteration": Expected(3e-3, 1.0, "s"),
    "sequence": Expected(5e-5, 1.0, "s a sequence"),
    "layer": Expected(1e-4, 1.0, "s a layer"),
    "few_rows": Expected(0.1, 1.0, "of the 16-bit peak, products of sequences that decode"),
    "prompts": Expected(0.3, 0.7, "of the 16-bit peak, products of prompts"),
    "stream": Expected(0.8, 0.12, "of the memory's bandwidth, weights"),
    "cache": Expected(0.5, 0.7, "of the memory's bandwidth, keys and values"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One batch of equal prompts and answers, and the measured time of an iteration [s]."""

    model: str
    shape: Shape
    devices: int
    tokens: int
    batch: int
    seconds: float


def runs(path: Path, hardware: str) -> Iterator[Run]:
    """Runs of a table on some hardware."""
    names = {**FITTED, **JUDGED}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["hardware"] != hardware or row["framework"] != ENGINE:
                continue
            if row["model"] in names:
                yield Run(
                    model=row["model"],
                    shape=model_shape(names[row["model"]]),
                    devices=int(row["n_devices"]),
                    tokens=int(row["input_output_len"]),
                    batch=int(row["batch"]),
                    seconds=float(row["latency_s"]) / int(row["input_output_len"]),
                )


def iteration(run: Run, gpu: Gpu, x: Vector, *, by_head: bool) -> float:
    """Time of an iteration at deviations of the figures from what is expected, in spreads [s]."""
    known = {
        name: each.value * float(np.exp(each.spread * deviation))
        for (name, each), deviation in zip(EXPECTED.items(), x, strict=True)
    }
    s, batch, peak = run.shape, run.batch, gpu.peak[Precision.BF16] * run.devices
    bandwidth = gpu.memory_bandwidth * run.devices
    reading = s.heads if by_head else s.kv_heads
    context = batch * run.tokens * 1.5
    cache = context * s.layers * reading * (s.head_width + s.value_width) * _BYTES
    touched = float(touched_experts(s.experts, s.top_k, batch)) if s.routed else 0.0
    read = _weights(s, touched) * _BYTES
    work = 2.0 * batch * _weights(s, float(s.top_k))
    products = max(read / (known["stream"] * bandwidth), work / (known["few_rows"] * peak))
    prompts = work / (known["prompts"] * peak)
    own = known["iteration"] + batch * known["sequence"] + s.layers * known["layer"]
    return float(own + products + prompts + cache / (known["cache"] * bandwidth))


def _weights(s: Shape, experts: float) -> float:
    """Weights of linear layers with so many experts each, and of the head."""
    attention = s.hidden * (s.heads + s.kv_heads) * (s.head_width + s.value_width)
    mlp = (1.0 - s.routed) * s.ffn + s.routed * experts * s.expert_ffn
    layer = attention + (2.0 + s.gated) * s.hidden * mlp
    return float(s.layers * layer + s.hidden * s.vocabulary)


def log_errors(found: Sequence[Run], gpu: Gpu, x: Vector, *, by_head: bool) -> Vector:
    """Logs of predicted over measured times."""
    predicted = [iteration(run, gpu, x, by_head=by_head) for run in found]
    return np.log(predicted) - np.log([run.seconds for run in found])


def report(found: Sequence[Run], gpu: Gpu, *, by_head: bool) -> Iterator[str]:
    """Figures of the fit, and errors by model."""
    fitted = [run for run in found if run.model in FITTED]
    count = len(EXPECTED)
    best = posterior.fit(
        lambda x: log_errors(fitted, gpu, x, by_head=by_head),
        posterior.weights(run.model for run in fitted),
        np.zeros(count),
        (np.full(count, -4.0), np.full(count, 4.0)),
        DEVIATION,
    )
    yield f"cache read by {'each head' if by_head else 'all heads that share it, at once'}"
    for (name, each), x, error in zip(EXPECTED.items(), best.x, best.errors, strict=True):
        value = each.value * np.exp(each.spread * x)
        yield f"  {name:10s} {value:9.3g} {each.unit}; sure to {error:.0%} of what was expected"
    groups = {
        model: [run for run in found if run.model == model] for model in (*FITTED, *JUDGED)
    } | {"all left out": [run for run in found if run.model in JUDGED]}
    for name, own in groups.items():
        if own:
            title = f"{name}{' (fitted)' if name in FITTED else ''}"
            errors = log_errors(own, gpu, best.x, by_head=by_head)
            yield f"  {serving_scores.summary(title, errors)}"


def main() -> int:
    """Print what fits with the cache read either way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--hardware", required=True, help="as the table names it")
    parser.add_argument("--gpu", required=True, help="its profile")
    given = parser.parse_args()
    gpu = Catalogue.default(()).gpu(given.gpu)
    found = list(runs(given.table, given.hardware))
    for by_head in (False, True):
        for line in report(found, gpu, by_head=by_head):
            sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
