"""Results of MLPerf Inference, datacenter: one submission of one benchmark in one scenario a row.

Predicted are language models on engines that are known, in both scenarios by the most that replicas
complete without end: offline runs last ten minutes at least, compared with which start and end are
short, and of a server the submitter searches for the highest rate that meets limits on the slowest
percent of the requests, which is somewhat less.

A row states the accelerators of a system, not how a model lies on them. As in the code of
submissions, a replica has the fewest accelerators of which the weights fill half at most, and the
others hold replicas of their own; what was measured is divided among them. Lengths of prompts stand
in no row: means are those that the benchmark's data sets are said to have, unchecked
here; means of answers are those of the results' accuracy runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from converters import Columns, TableRow
from simulator.importers.nvidia_smi import matching
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.accelerators import Precision
from simulator.units import THOUSAND

SHIPPED: Final = "mlperf_inference"

COLUMNS: Final = Columns(
    required=(
        *("id", "submitter", "category", "platform", "model", "scenario", "nodes"),
        *("accelerator", "accelerators_per_node", "weight_dtype", "software", "result", "unit"),
    ),
    filled=("id", "model", "scenario"),
    numbers=("nodes", "accelerators_per_node", "result", "power"),
    measured=("result", "power"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A model of the library, its parameters, and mean tokens of prompts and of answers.

    `spread` are their standard deviations over the means (guesses), `most` the longest of both.
    """

    model: str
    parameters: float
    prompt: float
    output: float
    spread: tuple[float, float]
    most: tuple[int, int]


# Prompts: OpenOrca of at most 1,024 tokens; a third each of OpenOrca, GSM8K and MBXP; long texts
# of LongBench, RULER and GovReport (9,400 in MLCommons' announcement): guesses, not looked up.
# Answers: summary_results.json of inference_results_v5.1@965182b, means of the accuracy runs.
BENCHMARKS: Final = {
    "llama2-70b": Benchmark(
        model="llama-2-70b",
        parameters=69.0e9,
        prompt=294.0,
        output=290.0,
        spread=(0.8, 0.7),
        most=(1024, 1024),
    ),
    "mixtral-8x7b": Benchmark(
        model="mixtral-8x7b",
        parameters=46.7e9,
        prompt=240.0,
        output=144.0,
        spread=(0.8, 0.7),
        most=(2048, 1024),
    ),
    "llama3.1-405b": Benchmark(
        model="llama-3.1-405b",
        parameters=405.8e9,
        prompt=9400.0,
        output=652.0,
        spread=(0.6, 0.8),
        most=(20000, 2000),
    ),
}
ENGINES: Final = {"tensorrt": "tensorrt-llm", "vllm": "vllm", "sglang": "sglang"}
"""Engines by what is said of the software, in small letters."""
WEIGHTS: Final = {"fp8": Precision.FP8, "fp4": Precision.FP4}
FILLED: Final = 0.5
"""Share of an accelerator's memory that weights fill at most."""
REQUESTS: Final = 1000
"""Requests that are there from the start: more wait than run at once."""
LONG: Final = 4000.0
"""Tokens of prompts, some of which no iteration of an engine's own settings holds whole."""
OFFLINE: Final = "Offline"
SERVER: Final = "Server"
_METRIC: Final = "measured.saturation.output_tokens_per_s"
_MAKERS: Final = ("amd instinct", "virtualized")
"""Words that tell no two accelerators apart."""
_TWICE: Final = "-99.9"
_SPLIT: Final = "deepseek"


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    first = {_run(row): row.text("id") for row in reversed(rows) if not _is_twin(row)}
    return [_cells(row, again=_is_twin(row) and _run(row) in first) for row in rows]


def _is_twin(row: TableRow) -> bool:
    return row.text("model").endswith(_TWICE)


def _run(row: TableRow) -> tuple[str, ...]:
    name = row.text("model").removesuffix(_TWICE).removesuffix("-99")
    return name, *(row.text(c) for c in ("submitter", "platform", "scenario", "category"))


def _cells(row: TableRow, *, again: bool) -> dict[str, str]:
    benchmark = _benchmark(row.text("model"))
    labels = {
        "id": " ".join(row.text(c) for c in ("id", "submitter", "platform", "model", "scenario")),
        "family": f"{row.text('scenario').lower()}, {benchmark.model if benchmark else 'others'}",
        "submitter": row.text("submitter"),
        "software": row.text("software"),
        "source": row.text("source"),
    }
    reason = next(_reasons(row, again=again), "")
    if reason or benchmark is None:
        return {**labels, "exclude": reason}
    tensor, every = _tensor(row, benchmark) or 1, _accelerators(row)
    return {
        **labels,
        "replicas": str(every // tensor),
        "hardware.gpu": _gpu(row.text("accelerator")),
        "hardware.gpus": str(tensor),
        "model.name": benchmark.model,
        "serving.engine": _engine(row),
        "serving.tensor": str(tensor),
        "serving.weights": row.text("weight_dtype"),
        "serving.chunked_prefill": "true" if benchmark.prompt > LONG else "",
        "load.requests": str(REQUESTS),
        "load.prompt": _lengths(benchmark, 0),
        "load.output": _lengths(benchmark, 1),
        _METRIC: f"{(row.number('result') or 0.0) * tensor / every:.6g}",
    }


def _lengths(benchmark: Benchmark, which: int) -> str:
    tokens = (benchmark.prompt, benchmark.output)[which]
    deviation, most = benchmark.spread[which], benchmark.most[which]
    kind = 'spread = "lognormal"'
    return f"{{ tokens = {tokens:g}, {kind}, deviation = {deviation:g}, most = {most} }}"


def _reasons(row: TableRow, *, again: bool) -> Iterator[str]:
    """Why a row cannot be predicted."""
    model, benchmark = row.text("model"), _benchmark(row.text("model"))
    if model.startswith(_SPLIT):
        yield "groups of accelerators hold requests of their own: how many is not stated"
    if benchmark is None:
        yield f"lengths of the requests of {model} are not known, or it writes no tokens"
        return
    if row.text("category") != "closed":
        yield "open division: what was changed in the model is not stated"
    if again:
        yield "the run for the lower accuracy target represents both"
    if row.text("scenario") not in (OFFLINE, SERVER):
        yield f"{row.text('scenario')} has limits so narrow that its rate is not that of saturation"
    if not _gpu(row.text("accelerator")):
        yield f"no one accelerator of the catalogue is '{row.text('accelerator')}'"
    elif row.text("weight_dtype") not in WEIGHTS:
        yield f"'{row.text('weight_dtype')}' is no number format of weights that is known"
    elif not _engine(row):
        yield "its serving engine is unknown"
    elif _tensor(row, benchmark) is None:
        yield "its accelerators cannot be dealt out in equal groups that hold the weights"


def _benchmark(model: str) -> Benchmark | None:
    known = model.replace("llama3_1", "llama3.1").removesuffix(_TWICE).removesuffix("-99")
    return BENCHMARKS.get(known)


def _engine(row: TableRow) -> str:
    said = row.text("software").lower()
    return next((engine for word, engine in ENGINES.items() if word in said), "")


@cache
def _catalogue() -> Catalogue:
    return Catalogue.default(())


@cache
def _gpu(accelerator: str) -> str:
    """The profile of an accelerator; empty if none, or several, may be meant."""
    said = accelerator.lower()
    for word in _MAKERS:
        said = said.replace(word, " ")
    size = re.search(r"(\d+)\s*gb\b", said)
    every = [_catalogue().gpu(name) for name in _catalogue().names("gpu")]
    found = matching(said, float(size[1]) * THOUSAND**3 if size else None, every)
    return found[0].name if len(found) == 1 else ""


def _accelerators(row: TableRow) -> int:
    return int((row.number("nodes") or 1) * (row.number("accelerators_per_node") or 0))


def _tensor(row: TableRow, benchmark: Benchmark) -> int | None:
    """Accelerators of a replica; None where no number of them in one machine will do."""
    gpu, inside = _gpu(row.text("accelerator")), int(row.number("accelerators_per_node") or 0)
    size = benchmark.parameters * WEIGHTS[Precision(row.text("weight_dtype"))].bytes_per_element
    room = _catalogue().gpu(gpu).memory
    degrees = [d for d in (1, 2, 4, 8) if d <= inside and inside % d == 0 and size < d * room]
    return next((d for d in degrees if size <= FILLED * d * room), degrees[-1] if degrees else None)
