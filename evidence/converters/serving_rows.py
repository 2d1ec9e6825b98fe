"""Rows of `silicon_sample.csv`: closed loops of serving engines, repaired and without repeats.

Columns and traps follow the notes that came with the table (ai-dynamo/aiconfigurator@095f58a,
Apache-2.0):

- Expert-parallel rows of some exports hold squared degrees. The number in ``tpX`` of the id is the
  truth; else G = ``moe_ep_size``.
- One run may be in several exports: equal latencies of one configuration are one run.
- NVIDIA's own runs count requests of a replica in ``batch_size``, those of InferenceX are in
  ``concurrency``; lengths of InferenceX are uniform from 0.8 of the nominal ones.
- Engines of InferenceX have the settings of its scripts (`serving_recipes`).
- A run whose tokens come 1.2 times as fast as those of the same configuration elsewhere speculates,
  which no column says.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from converters import TableRow
from converters.serving_recipes import ENGINE_OWN, Recipe, recipe_of
from simulator.schema.accelerators import Precision

MODELS: Final = {
    "deepseek-r1": "deepseek-v3",
    "deepseek-v3": "deepseek-v3",
    "minimax-m2.5": "minimax-m2.5",
    "llama-3.1-70b": "llama-3.1-70b",
    "llama-3.3-70b": "llama-3.1-70b",
    "llama-3.1-8b": "llama-3.1-8b",
    "qwen3-32b": "qwen3-32b",
    "qwen3-235b": "qwen3-235b-a22b",
}
"""Shipped models by what the paths of their checkpoints begin with, after the vendor's name."""
EXPERTS: Final = ("deepseek-v3", "minimax-m2.5", "qwen3-235b-a22b")
"""Those of them whose layers have experts."""
GPUS: Final = {
    "h100_sxm": "gpu/h100-sxm5-80gb",
    "h200_sxm": "gpu/h200-sxm-141gb",
    "b200_sxm": "gpu/b200-sxm-180gb",
    "b300_sxm": "gpu/b300-sxm-288gb",
    "gb200": "gpu/gb200-186gb",
}
ENGINES: Final = {"trtllm": "tensorrt-llm", "vllm": "vllm", "sglang": "sglang"}
PRECISIONS: Final = {"fp8": Precision.FP8, "fp4": Precision.FP4, "bf16": Precision.BF16}
UNIFORM: Final = 0.8
"""Shortest length of InferenceX over the nominal one."""
_OWN: Final = "gap analysis"
_SQUARED: Final = ("2026-04-06", "db-dump")
_FASTER: Final = 1.2
_NODE: Final = 8
_PLAUSIBLE: Final = "tensorrt-llm"
"""The engine of NVIDIA's own runs whose loads agree with their degrees."""
_COMPILES: Final = "sglang"
"""The engine that compiles kernels for shapes as it meets them."""
_WARMED: Final = "2026-01-21"
"""The day from which on the client of InferenceX warms the engine up (its commit d053ae2)."""
_SPECULATES: Final = "took longer elsewhere: it decodes speculatively, which is not stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRow:
    """One run: what was served how, and the latencies of a token and of the first one [s].

    `tensor` accelerators split a layer, `attention` groups of them hold requests of their own,
    `split_experts` says that each holds whole experts. `ratio` is the shortest length over the
    longest. `scripted` runs follow the client and the scripts of InferenceX; what the others ran
    is not stated. `recipe` holds their settings. `exclude` says why a run cannot be predicted.
    """

    id: str
    model: str
    gpu: str
    engine: str
    version: str
    weights: Precision | None
    tensor: int
    attention: int
    split_experts: bool
    concurrency: int
    prompt: int
    output: int
    ratio: float
    first_token: float
    per_token: float
    scripted: bool = True
    recipe: Recipe = ENGINE_OWN
    exclude: str = ""


def rows(table: Iterable[TableRow]) -> list[ServingRow]:
    """The runs of engines that serve alone, each once."""
    found = [_row(each) for each in table if each.text("mode") == "agg"]
    once: dict[tuple[str, float, float], ServingRow] = {}
    for one in sorted(found, key=lambda row: bool(row.exclude)):
        key = one.model, round(one.first_token, 5), round(one.per_token, 7)
        once.setdefault(key, one)
    return list(_speculating(list(once.values())))


def _row(row: TableRow) -> ServingRow:
    own, experts = _OWN in row.text("origin"), _number(row, "moe_ep_size") > 1
    tensor, attention = _degrees(row)
    concurrency = _number(row, "concurrency")
    if own:
        concurrency = min(concurrency, _number(row, "batch_size"))
    plain = ServingRow(
        id=row.text("id"),
        model=_model(row.text("model_path")),
        gpu=GPUS.get(row.text("system"), ""),
        engine=ENGINES.get(row.text("backend"), ""),
        version=row.text("backend_version"),
        weights=PRECISIONS.get(row.text("precision")),
        tensor=tensor,
        attention=attention,
        split_experts=experts,
        concurrency=int(concurrency),
        prompt=int(_number(row, "isl")),
        output=int(_number(row, "osl")),
        ratio=1.0 if own else UNIFORM,
        first_token=_number(row, "silicon_ttft_ms") / 1e3,
        per_token=_number(row, "silicon_tpot_ms") / 1e3,
        scripted=not own,
    )
    found = plain if own else replace(plain, recipe=recipe_of(plain))
    return replace(found, exclude=_reason(row, found, own=own))


def _reason(row: TableRow, found: ServingRow, *, own: bool) -> str:
    """Why a run cannot be predicted; empty if it can."""
    known = bool(found.gpu and found.engine)
    reasons = {
        f"{row.text('model_path')} has layers that no shipped model has": not found.model,
        "the accelerator or the engine is not known": not known,
        "the number format of the weights is not stated": found.weights is None,
        "the number of requests is not stated": not row.text("concurrency"),
        "groups of accelerators hold requests of their own": found.attention > 1,
        # Dumps without versions say of no run that experts, or sequences, are dealt among devices.
        "how experts and sequences are dealt was not recorded": (
            found.model in EXPERTS and not own and not found.version
        ),
        "several engines, whose number is not stated": found.tensor > _NODE,
        "its load outruns the peak, or its weights the memory": own and found.engine != _PLAUSIBLE,
        "several engines behind one address, whose number is a guess": own and _shared(row),
        "its first requests wait for kernels to be compiled: the client did not warm up then": (
            found.engine == _COMPILES and row.text("measured")[:10] < _WARMED
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _shared(row: TableRow) -> bool:
    return _number(row, "batch_size") < _number(row, "concurrency")


def _model(path: str) -> str:
    name = path.lower().rpartition("/")[2].removeprefix("meta-")
    return next((model for start, model in MODELS.items() if name.startswith(start)), "")


def _number(row: TableRow, column: str) -> float:
    return row.number(column) or 0.0


def _degrees(row: TableRow) -> tuple[int, int]:
    """Accelerators that split a layer, and groups of them with requests of their own."""
    tensor = int(_number(row, "tp_size") or 1)
    attention = int(_number(row, "attention_dp_size") or 1)
    wide, experts = int(_number(row, "moe_tp_size") or 1), int(_number(row, "moe_ep_size") or 1)
    named = re.search(r"_tp(\d+)", row.text("id"))
    squared = any(name in row.text("origin") for name in _SQUARED)
    if not squared or experts == 1:
        return tensor, attention
    group = tensor if wide == 1 and attention == tensor else experts
    group = int(named.group(1)) if named else group
    return (1, group) if tensor == 1 else (group, 1)


def _speculating(found: list[ServingRow]) -> Iterator[ServingRow]:
    slowest: dict[ServingRow, float] = defaultdict(float)

    def configuration(row: ServingRow) -> ServingRow:
        return replace(
            row, id="", version="", split_experts=False, first_token=0.0, per_token=0.0, exclude=""
        )

    for row in found:
        key = configuration(row)
        slowest[key] = max(slowest[key], row.per_token)
    for row in found:
        faster = slowest[configuration(row)] > _FASTER * row.per_token
        yield replace(row, exclude=row.exclude or (_SPECULATES if faster else ""))
