"""What software of language models usually does, of which a row says no more than its name.

Only what the row states becomes a key; all else is left to the defaults of a scenario.
"""

from __future__ import annotations

from typing import Final

from converters import TableRow
from converters.llm.runs import llm_runs

_SHARDINGS: Final = (
    ("ZeRO-3", "parameters"),
    ("ZeRO-2", "gradients"),
    ("ZeRO-1", "optimizer"),
    ("SHARD_GRAD_OP", "gradients"),
    ("FSDP", "parameters"),
)
"""Words on the sharding, and what is sharded; the first that fits."""
_PRECISIONS: Final = ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32")
"""Precisions, the narrowest first: what products are in where others are named as well."""
_GATED: Final = ("llama", "mistral", "mixtral", "qwen", "gemma", "deepseek")
"""Beginnings of names of models with gated layers, in small letters."""
_PLAIN_RATIO: Final = 4.0
"""Width of a plain feed-forward layer over the model's."""


def generic_framework(row: TableRow) -> str:
    """The framework that a row's software is or builds on, else the one of its layout."""
    name = row.text("software").lower()
    named = next((one.framework for one in llm_runs().generic if one.words in name), "")
    return named or _by_layout(row)


def _by_layout(row: TableRow) -> str:
    if max(row.number(degree) or 1.0 for degree in ("tp", "pp")) > 1.0:
        return "megatron-core"
    return "deepspeed" if "ZeRO" in row.text("zero_stage_or_fsdp") else "fsdp"


def generic_cells(row: TableRow) -> dict[str, str]:
    """What a row says of its run, as keys."""
    gated = _is_gated(row)
    heads = row.number("kv_heads") or row.number("heads") or 0.0
    experts = row.number("experts") or 0.0
    stated, sharded = row.text("precision").lower(), row.text("zero_stage_or_fsdp")
    sharding = next((kind for words, kind in _SHARDINGS if words in sharded), "")
    recompute = row.text("activation_recompute")
    return {
        "model.family": "moe" if experts else "llama" if gated else "gpt",
        "model.shape.kv_heads": f"{heads:.0f}" if gated or experts else "",
        **(_expert_cells(row) if experts else {}),
        "software.fused_attention": {"yes": "true", "no": "false"}.get(
            row.text("flash_attention"), ""
        ),
        "train.precision": next((name for name in _PRECISIONS if name in stated), "bf16"),
        "train.recompute": recompute if recompute in ("full", "selective") else "",
        "parallelism.sequence": "true" if row.text("sequence_parallel") == "yes" else "",
        "parallelism.sharding": sharding,
    }


def _expert_cells(row: TableRow) -> dict[str, str]:
    columns = {"experts": "experts", "top_k": "topk", "expert_ffn": "moe_ffn"}
    figures = {key: row.number(column) for key, column in columns.items()}
    cells = {f"model.shape.{key}": f"{value:.0f}" for key, value in figures.items() if value}
    degree = row.number("ep") or 1.0
    return {
        **cells,
        "model.shape.ffn": "",
        "parallelism.expert": f"{degree:.0f}" if degree > 1.0 else "",
    }


def _is_gated(row: TableRow) -> bool:
    """Return whether the feed-forward layers have a gate: by the name, else by their width."""
    if row.text("model").lower().startswith(_GATED):
        return True
    width, hidden = row.number("ffn_hidden"), row.number("hidden")
    return bool(width and hidden and width != _PLAIN_RATIO * hidden)
