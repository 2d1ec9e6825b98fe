"""Recipes of Megatron-Bridge runs: shape, kernels and layout of a row, joined by its layout.

The recipes lie in `training_recipes.csv`: read off the recipe code of each
release, run on a CPU through its launcher; no measured value is in them. Precision ``fp8`` is taken
as per-tensor current scaling, as the page does not say.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from converters import TableRow

_FILE: Final = Path(__file__).resolve().parent / "training_recipes.csv"
_EQUAL: Final = (*("seq_len", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "global_batch"),)
_CONTAINER: Final = "NeMo "
_YES: Final = "true"
_WINDOW: Final = 256.0
"""Tokens that every second layer of GPT-OSS attends to, both sides."""
_WINDOWED: Final = "GPT OSS"


@cache
def _recipes() -> tuple[Mapping[str, str], ...]:
    text = _FILE.read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def recipe_of(row: TableRow) -> Mapping[str, str] | None:
    """The recipe that a row ran; None where there is none."""
    container = row.text("software").rpartition(_CONTAINER)[2]
    for recipe in _recipes():
        named = all(recipe[c] == row.text(c) for c in ("model", "gpu", "precision"))
        if named and container in recipe["software"].split("|") and _same_layout(row, recipe):
            return recipe
    return None


def _same_layout(row: TableRow, recipe: Mapping[str, str]) -> bool:
    same = all(_of(recipe, column) == (row.number(column) or 1.0) for column in _EQUAL)
    return same and _of(recipe, "gpus") == row.number("gpus_total")


def _of(recipe: Mapping[str, str], column: str) -> float:
    return float(recipe[column] or 1.0)


def recipe_cells(row: TableRow, recipe: Mapping[str, str]) -> dict[str, str]:
    """Keys of a scenario that a recipe fixes."""
    return {
        **_shape(row, recipe),
        **_precision(recipe),
        **_layout(row, recipe),
        **_kernels(row, recipe),
    }


_SHAPE: Final = {
    "layers": "layers",
    "hidden": "hidden",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "vocabulary": "vocab",
    "head_dim": "head_dim",
}
_EXPERTS: Final = {
    "experts": "experts",
    "top_k": "topk",
    "expert_ffn": "moe_ffn",
    "shared_ffn": "shared_expert_ffn",
    "dense_layers": "first_dense_layers",
    "query_rank": "q_lora",
    "kv_rank": "kv_lora",
    "nope_dim": "qk_nope",
    "rope_dim": "qk_rope",
    "value_dim": "v_dim",
    "predicted_tokens": "mtp_layers",
}


def _shape(row: TableRow, recipe: Mapping[str, str]) -> dict[str, str]:
    named = {**_SHAPE, **(_EXPERTS if recipe["experts"] else {})}
    cells = {f"model.shape.{key}": recipe[column] for key, column in named.items()}
    cells["model.family"] = "moe" if recipe["experts"] else "llama"
    cells["model.shape.sequence"] = recipe["seq_len"]
    cells["model.shape.ffn"] = recipe["ffn_hidden"]
    if recipe["experts"] and not recipe["first_dense_layers"]:
        cells["model.shape.ffn"] = ""
    if _WINDOWED in row.text("model"):
        share = 0.5 + 0.5 * _WINDOW / float(recipe["seq_len"])
        cells["model.shape.attention_share"] = f"{share:.6g}"
        cells["model.shape.clamped"] = _YES
    return cells


def _precision(recipe: Mapping[str, str]) -> dict[str, str]:
    stated = recipe["precision"].lower()
    low = "fp4" if "fp4" in stated else "fp8"
    narrow = "fp" in recipe["param_gather_dtype"]
    return {
        "train.precision": "bf16" if "bf16" in stated else low,
        "software.fp8_recipe": "block" if "mx" in stated else "",
        "parallelism.gather_precision": "fp8" if narrow else "",
    }


def _layout(row: TableRow, recipe: Mapping[str, str]) -> dict[str, str]:
    several = (row.number("tp") or 1.0) > 1.0
    overlapped = recipe["tp_comm_overlap"] == "yes"
    whole = "FSDP" in recipe["dp_sharding"]
    return {
        "parallelism.expert": recipe["ep"] if _of(recipe, "ep") > 1.0 else "",
        "parallelism.sequence": _YES if several else "",
        "parallelism.async_tensor": _YES if several and overlapped else "",
        "parallelism.async_sends": _YES if _of(recipe, "vpp") > 1.0 else "",
        "parallelism.sharding": "parameters" if whole else "optimizer",
        "parallelism.overlap_experts": _YES if recipe["ep_comm_overlap"] == "yes" else "",
    }


_GRAPHS: Final = (("full", "full"), ("transformer", "layers"), ("local", "local"))


def _kernels(row: TableRow, recipe: Mapping[str, str]) -> dict[str, str]:
    graphs = next((name for word, name in _GRAPHS if word in recipe["cuda_graph"]), "")
    rack = row.text("gpu").startswith("GB")
    fused = "wgrad accumulation" in recipe["fusions"]
    padded = graphs == "full" and rack and recipe["experts"]
    once = recipe["moe_dispatcher"] in ("hybridep", "deepep")
    return {
        "software.cuda_graphs": graphs,
        "software.fused_experts": _YES if "op fuser" in recipe["fusions"] else "",
        "software.gradient_sum": "fused" if fused else "separate",
        "train.accumulation_precision": "fp32",
        "train.recompute": "modules" if "selective" in recipe["recompute"] else "",
        "parallelism.deduplicated_dispatch": _YES if once else "",
        "parallelism.padded_experts": _YES if padded else "",
    }
