"""Defaults of Hugging Face configurations: what a file of each ``model_type`` leaves out.

As in transformers 4.57.6 (2026-01), ``models/*/configuration_*.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_LLAMA: Final = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
_MISTRAL: Final = {
    **_LLAMA,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
}
_QWEN: Final = {
    **_LLAMA,
    "num_key_value_heads": 32,
    "intermediate_size": 22016,
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
}
_QWEN_MOE: Final = {
    **_QWEN,
    "num_hidden_layers": 24,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 5632,
    "decoder_sparse_step": 1,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
}
DEFAULTS: Final[Mapping[str, Mapping[str, int]]] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "mixtral": {**_MISTRAL, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen2": _QWEN,
    "qwen2_moe": _QWEN_MOE,
    "qwen3": {**_QWEN, "head_dim": 128},
    "qwen3_moe": {
        **_QWEN_MOE,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "intermediate_size": 6144,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "shared_expert_intermediate_size": 0,
    },
    "deepseek_v3": {
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "intermediate_size": 18432,
        "vocab_size": 129280,
        "max_position_embeddings": 4096,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
    },
    "gpt2": {
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "vocab_size": 50257,
        "n_positions": 1024,
    },
    "gpt_neox": {
        "num_hidden_layers": 44,
        "hidden_size": 6144,
        "num_attention_heads": 64,
        "intermediate_size": 24576,
        "vocab_size": 50432,
        "max_position_embeddings": 2048,
    },
    "bert": {
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    },
    "t5": {
        "num_layers": 6,
        "d_model": 512,
        "num_heads": 8,
        "d_kv": 64,
        "d_ff": 2048,
        "vocab_size": 32128,
        "relative_attention_num_buckets": 32,
        "n_positions": 512,
    },
}
"""Type: its keys and their defaults."""
TIED: Final = frozenset({"gpt2", "bert", "t5"})
"""Types whose scores use the table of tokens unless the file says otherwise."""
OTHER_NAMES: Final = {"num_experts": ("num_local_experts",), "n_positions": ("n_ctx",)}
"""Keys that later or earlier versions write under another name."""
KNOWN: Final = tuple(DEFAULTS)
"""The ``model_type`` values that are read."""
