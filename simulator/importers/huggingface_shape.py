"""Shape of a transformer from a Hugging Face ``config.json``, with defaults filled in.

A configuration file omits the defaults of its ``model_type``. They are taken from transformers
4.57.6 (2026-01), ``models/*/configuration_*.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from simulator.importers.foreign import Entry
from simulator.records import dataclass

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
"""Default values of keys, by model type."""
TIED: Final = frozenset({"gpt2", "bert", "t5"})
"""Model types whose output head is tied to the token embedding by default."""
OTHER_NAMES: Final = {"num_experts": ("num_local_experts",), "n_positions": ("n_ctx",)}
"""Names of keys in other versions of transformers."""
KNOWN: Final = tuple(DEFAULTS)
"""Supported values of ``model_type``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Experts of `layers` MoE layers, of which a router selects `chosen` for each token.

    `width` is the hidden width of one expert, `shared` that of the shared expert (0: none);
    `shared_gate` adds a row of weights that scales the output of the shared expert.
    """

    count: int
    chosen: int
    width: int
    layers: int
    shared: int = 0
    shared_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: compression ranks and widths per head.

    `query_rank` and `rank` are the ranks of queries (0: not compressed) and of keys and values;
    `plain`, `rotary` and `value` the widths of keys without and with positions, and of values.
    """

    query_rank: int
    rank: int
    plain: int
    rotary: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Dimensions of a transformer: layers of attention and MLP, and embeddings.

    `decoder_layers` counts the layers of a second stack with cross-attention (T5). `positions` and
    `segments` are the rows of learned embeddings; `qkv_bias`, `output_bias` and `mlp_bias` are true
    if these projections have biases, `centred` if norms have them (LayerNorm). `longest` is the
    maximum sequence length, `window` the span of sliding-window attention, `buckets` counts T5's
    relative-position buckets.
    """

    kind: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    ffn: int
    vocabulary: int
    tied: bool
    gated: bool
    longest: int
    positions: int = 0
    segments: int = 0
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    centred: bool = False
    head_norms: bool = False
    pooler: bool = False
    causal: bool = True
    window: int | None = None
    buckets: int = 0
    decoder_layers: int = 0
    experts: Experts | None = None
    latent: Latent | None = None


_MAX_NUMBER: Final = 5e9
_MAX_LAYERS: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration of a known type, with the type's defaults for omitted keys."""

    entry: Entry
    kind: str

    def count(
        self,
        key: str,
        other: int | None = None,
        *,
        least: float = 1.0,
        most: float = _MAX_NUMBER,
    ) -> int:
        """Return the integer under `key`, or the type's default, or `other`, in this order.

        Report a problem and return 1 if the value is invalid, or omitted without a default.
        """
        names = (key, *OTHER_NAMES.get(key, ()))
        found = next((e for e in map(self.entry.get, names) if e is not None), None)
        if found is None:
            default = DEFAULTS[self.kind].get(key, other)
            if default is None:
                self.entry.fault(f"has no '{key}'")
            return 1 if default is None else default
        value = found.whole(least, most)
        return 1 if value is None else value

    def layers(self, key: str = "num_hidden_layers", other: int | None = None) -> int:
        """Return the number of layers under `key`; `other` is used if the key has no default."""
        return self.count(key, other, most=_MAX_LAYERS)

    def split(self, width: int, heads: int) -> int:
        """Return the width of one head, `width` over `heads`; report a problem for a remainder."""
        if width % heads and not self.entry.problems:
            self.entry.fault(f"has {heads} heads, which don't divide the width {width}")
        return max(1, width // heads)

    def given(self, key: str) -> bool:
        """Return True if the file sets `key`."""
        return self.entry.get(key) is not None

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the Boolean under `key`; report a problem for other values."""
        found = self.entry.get(key)
        if found is None:
            return default
        if not isinstance(found.value, bool):
            found.fault("is neither true nor false", found=found.value)
        return bool(found.value)


def shape_of(config: Config) -> Shape:
    """Return the shape that a configuration describes; problems are added to its entry."""
    return _READERS.get(config.kind, _decoder)(config)


def _stack(  # noqa: PLR0913 - keys by which types call the same
    config: Config,
    *,
    layers: str = "num_hidden_layers",
    hidden: str = "hidden_size",
    heads: str = "num_attention_heads",
    ffn: str = "intermediate_size",
    longest: str = "max_position_embeddings",
    head_width: int | None = None,
) -> Shape:
    """Return the dimensions that all model types have, read from the given keys.

    The shape has no biases, plain MLPs, and keys and values for each head.
    """
    width, count = config.count(hidden), config.count(heads)
    return Shape(
        kind=config.kind,
        layers=config.layers(layers),
        hidden=width,
        heads=count,
        kv_heads=count,
        head_width=config.split(width, count) if head_width is None else head_width,
        ffn=config.count(ffn, 4 * width),
        vocabulary=config.count("vocab_size"),
        tied=config.flag("tie_word_embeddings", default=config.kind in TIED),
        gated=False,
        longest=config.count(longest),
    )


def _decoder(config: Config) -> Shape:
    """Return the shape of a decoder with rotary positions and gated MLPs: Llama, Mistral, Qwen."""
    kind = config.kind
    fixed = config.given("head_dim") or "head_dim" in DEFAULTS[kind]
    stack = _stack(config, head_width=config.count("head_dim") if fixed else None)
    biased = config.flag("attention_bias", default=False)
    with_bias = kind in {"qwen2", "qwen2_moe"} and config.flag("qkv_bias", default=True)
    return replace(
        stack,
        kv_heads=config.count("num_key_value_heads", stack.heads),
        gated=True,
        qkv_bias=with_bias or biased,
        output_bias=biased,
        mlp_bias=config.flag("mlp_bias", default=False),
        head_norms=kind in {"qwen3", "qwen3_moe"},
        window=_window(config),
        experts=_experts(config, stack.layers),
    )


def _window(config: Config) -> int | None:
    used = config.flag("use_sliding_window", default=config.kind in {"mistral", "mixtral"})
    return config.count("sliding_window") if used and config.given("sliding_window") else None


def _experts(config: Config, layers: int) -> Experts | None:
    if config.kind == "mixtral":
        width = config.count("intermediate_size")
        count = config.count("num_local_experts")
        return Experts(
            count=count, chosen=config.count("num_experts_per_tok"), width=width, layers=layers
        )
    if config.kind not in {"qwen2_moe", "qwen3_moe"}:
        return None
    shared = config.count("shared_expert_intermediate_size", 0, least=0.0)
    return Experts(
        count=config.count("num_experts"),
        chosen=config.count("num_experts_per_tok"),
        width=config.count("moe_intermediate_size"),
        layers=_sparse_layers(config, layers),
        shared=shared if config.kind == "qwen2_moe" else 0,
        shared_gate=config.kind == "qwen2_moe",
    )


def _sparse_layers(config: Config, layers: int) -> int:
    """Return the number of MoE layers: each `decoder_sparse_step`-th not in `mlp_only_layers`."""
    step = config.count("decoder_sparse_step")
    listed = config.entry.get("mlp_only_layers")
    plain = set() if listed is None else {item.number() for item in listed.entries()}
    return sum((i + 1) % step == 0 and i not in plain for i in range(layers))


def _latent(config: Config) -> Shape:
    """Return the shape of a DeepSeek-V3 model.

    It has multi-head latent attention, dense first layers, then MoE layers with shared experts.
    """
    width = config.count("moe_intermediate_size")
    first = config.count("first_k_dense_replace", least=0.0)
    query = config.entry.value
    compressed = not isinstance(query, Mapping) or query.get("q_lora_rank", 1) is not None
    latent = Latent(
        query_rank=config.count("q_lora_rank") if compressed else 0,
        rank=config.count("kv_lora_rank"),
        plain=config.count("qk_nope_head_dim"),
        rotary=config.count("qk_rope_head_dim"),
        value=config.count("v_head_dim"),
    )
    stack = _stack(config, head_width=latent.plain + latent.rotary)
    experts = Experts(
        count=config.count("n_routed_experts"),
        chosen=config.count("num_experts_per_tok"),
        width=width,
        layers=max(0, stack.layers - first),
        shared=width * config.count("n_shared_experts", least=0.0),
    )
    return replace(stack, gated=True, experts=experts, latent=latent)


def _gpt2(config: Config) -> Shape:
    stack = _stack(
        config,
        layers="n_layer",
        hidden="n_embd",
        heads="n_head",
        ffn="n_inner",
        longest="n_positions",
    )
    return _biased(stack, positions=stack.longest)


def _neox_or_bert(config: Config) -> Shape:
    """Return the shape of a GPT-NeoX or BERT model: plain MLPs, biases in all projections."""
    stack = _stack(config)
    if config.kind == "bert":
        segments = config.count("type_vocab_size", 2)
        stack = replace(stack, segments=segments, pooler=True, causal=False)
    positions = stack.longest if config.kind == "bert" else 0
    return _biased(
        stack, positions=positions, attention=config.flag("attention_bias", default=True)
    )


def _biased(stack: Shape, *, positions: int, attention: bool = True) -> Shape:
    """Return `stack` with biases, LayerNorm and `positions` learned position embeddings."""
    return replace(
        stack,
        positions=positions,
        qkv_bias=attention,
        output_bias=attention,
        mlp_bias=True,
        centred=True,
    )


def _t5(config: Config) -> Shape:
    stack = _stack(
        config,
        layers="num_layers",
        hidden="d_model",
        heads="num_heads",
        ffn="d_ff",
        longest="n_positions",
        head_width=config.count("d_kv"),
    )
    activation = config.entry.text_at("feed_forward_proj") or "relu"
    return replace(
        stack,
        gated=activation.startswith("gated-"),
        causal=False,
        buckets=config.count("relative_attention_num_buckets"),
        decoder_layers=config.layers("num_decoder_layers", stack.layers),
    )


_READERS: Final[Mapping[str, Callable[[Config], Shape]]] = {
    "deepseek_v3": _latent,
    "gpt2": _gpt2,
    "gpt_neox": _neox_or_bert,
    "bert": _neox_or_bert,
    "t5": _t5,
}
