"""What the software of language-model runs does, as keys of a scenario.

A row names its software, precision, sharding and wires; from these, and from nothing else, follows
what it is run with. The settings of software that is known well were read off the sources of the
rows, the frameworks' documentation and their recipes; what is inferred or guessed says so. Other
software is taken as its framework usually is, and the row says that (`Settings.assumed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from converters import TableRow
from converters.llm.generic import generic_cells, generic_framework
from converters.llm.runs import SoftwareTable, llm_runs

Cells = dict[str, str]

_YES: Final = "true"
_NO: Final = "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a row's software does.

    `cells` are keys of a scenario. `assumed` says what was assumed for software of which no more
    than its name is known, and is empty for other software. `memory_unit` is the unit that its
    reports state memory in.
    """

    cells: Cells
    assumed: str = ""
    memory_unit: str = "GB"


def settings_of(row: TableRow) -> Settings:
    """What the software does that a row names."""
    known = next((one for one in llm_runs().software if _fits(one, row)), None)
    if known is None:
        framework = generic_framework(row)
        return Settings(
            cells={"software.framework": framework, **generic_cells(row)},
            assumed=f"generic software of {framework}",
        )
    return Settings(
        cells={"software.framework": known.framework, **_SETTINGS[known.settings](row)},
        memory_unit=known.memory_unit,
    )


def _fits(known: SoftwareTable, row: TableRow) -> bool:
    return (
        row.text("software").startswith(known.begins)
        and (known.wires or "") in row.text("interconnect")
        and (known.precision or "") in row.text("precision")
        and row.text("model").startswith(known.model or "")
        and (known.sharding or "") in row.text("zero_stage_or_fsdp")
    )


def _megatron(row: TableRow) -> Cells:
    """Megatron of 2020 to 2022: fp16 or bf16, unfused attention, fp16 gradients."""
    wide = "fp32 grad" in row.text("precision")
    gradient = "fp32" if wide else "fp16"
    return {
        "model.family": "gpt",
        "software.fused_attention": _NO,
        "train.precision": "bf16" if "bf16" in row.text("precision") else "fp16",
        "train.gradient_precision": gradient,
        "train.recompute": _recompute(row),
        "train.overlap_communication": _NO,
        "parallelism.sequence": _YES if row.text("sequence_parallel") == "yes" else "",
        "parallelism.sharding": "optimizer" if "ZeRO-1" in row.text("zero_stage_or_fsdp") else "",
    }


def _recompute(row: TableRow) -> str:
    stated = row.text("activation_recompute")
    return stated if stated in ("full", "selective") else ""


def _megatron_lm(row: TableRow) -> Cells:
    return {**_megatron(row), "parallelism.scattered_sends": _staged(row)}


def _staged(row: TableRow) -> str:
    return _YES if (row.number("pp") or 1.0) > 1.0 else ""


def _megatron_2020(row: TableRow) -> Cells:
    return {**_megatron(row), "train.overlap_communication": _YES}


def _profiled_or_measured(row: TableRow) -> Cells:
    """Megatron-DeepSpeed; split sends, unpadded vocabularies without TP (both inferred).

    Steps on one machine are put together from kernels profiled one by one (inferred: they add up
    exactly).
    """
    alone = (row.number("tp") or 1.0) == 1.0
    within = (row.number("gpus_total") or 1.0) <= (row.number("gpus_per_node") or 1.0)
    return {
        **_megatron(row),
        "parallelism.scattered_sends": _staged(row),
        "software.padded_vocabulary": _NO if alone else "",
        "software.profiled_kernels": _YES if within else "",
    }


def _bloom(row: TableRow) -> Cells:
    """BLOOM's clusters: launches block (a guess about its job script), a fault until 02-25."""
    return {
        **_megatron(row),
        "software.blocking_launches": _YES,
        # DeepSpeed's bf16 optimizer adds up gradients in fp32, whether a row says so or not.
        "train.accumulation_precision": "fp32" if "bf16" in row.text("precision") else "",
        "software.degraded": _YES if "before the cluster fix" in row.text("software") else "",
    }


_LARGE_SCALE: Final = 128.0
"""GPUs from which on the H100 table of llm-foundry was measured with flash-attn 2."""


def _foundry(row: TableRow) -> Cells:
    """MPT under FSDP: no biases, no dropout, ALiBi; Triton's attention before 2024."""
    large = row.text("gpu").startswith("H100") and (row.number("gpus_total") or 0.0) >= _LARGE_SCALE
    mixed = "DEFAULT" in row.text("precision")
    partly = "SHARD_GRAD_OP" in row.text("zero_stage_or_fsdp")
    return {
        "model.family": "gpt",
        "model.shape.positions": "0",
        "model.shape.bias": _NO,
        "model.shape.dropout": _NO,
        "software.fused_attention": _YES,
        "software.attention_kernel": "flash-2" if large else "triton",
        "software.gradient_sum": "in-place",
        "train.precision": "fp8" if "fp8" in row.text("precision") else "bf16",
        "train.gradient_precision": "fp32" if mixed else "bf16",
        "train.recompute": _recompute(row),
        "parallelism.sharding": "gradients" if partly else "parameters",
    }


_EAGER_LOSS: Final = "202412"
"""torchtitan's report of that month: a comment in its train.py says that compiling the loss failed
and is turned off (not looked up: a guess)."""


def _titan(row: TableRow) -> Cells:
    """torchtitan: Llama under FSDP2, fp32 gradients, contiguous parts of long sequences."""
    software = row.text("software")
    low = any(word in row.text("precision") for word in ("fp8", "nvfp4"))
    several = (row.number("tp") or 1.0) > 1.0
    async_tensor = any(word in software for word in ("async TP", "AsyncTP"))
    low_gather = any(word in software for word in ("all-gather", "AsyncTP"))
    stated = row.text("activation_recompute") or "selective"
    return {
        "model.family": "llama",
        "model.shape.kv_heads": f"{row.number('kv_heads') or row.number('heads') or 0:.0f}",
        "software.compile": "" if "eager" in software else _YES,
        "software.compiled_loss": _NO if _EAGER_LOSS in row.text("source") else "",
        "software.fused_attention": _YES,
        "software.attention_kernel": "flash-2",
        "software.gradient_sum": "in-place",
        "train.precision": "fp8" if low else "bf16",
        "train.gradient_precision": "fp32",
        "train.recompute": {"full": "full", "selective": "operators"}.get(stated, ""),
        "parallelism.interleave": "2" if "Interleaved" in software else "",
        "parallelism.sequence": _YES if several else "",
        "parallelism.async_tensor": _YES if several and async_tensor else "",
        "parallelism.sharding": "parameters",
        "parallelism.gather_precision": "fp8" if low_gather else "",
        "parallelism.balanced_context": _NO if (row.number("cp") or 1.0) > 1.0 else "",
    }


def _engine(row: TableRow) -> Cells:
    """NeMo and Megatron-Core with Transformer Engine: fp8, distributed optimizer."""
    plain = "GPT" in row.text("model")
    several = (row.number("tp") or 1.0) > 1.0
    heads = f"{row.number('kv_heads') or row.number('heads') or 0:.0f}"
    shape = (
        {"model.family": "gpt", "model.shape.dropout": _NO}
        if plain
        else {"model.family": "llama", "model.shape.kv_heads": heads}
    )
    return {
        **shape,
        "software.fused_attention": _YES,
        "software.gradient_sum": "in-place",
        "train.precision": "fp8",
        "train.gradient_precision": "bf16",
        "parallelism.sequence": _YES if several else "",
        "parallelism.async_tensor": _YES if several and not plain else "",
        "parallelism.async_sends": _YES if (row.number("vpp") or 1.0) > 1.0 else "",
        "parallelism.sharding": "optimizer",
        "parallelism.gather_precision": "fp8",
    }


def _bridge(row: TableRow) -> Cells:  # noqa: ARG001 - the recipe says the rest
    """Megatron-Bridge: everything else is in the recipe of the run."""
    return {
        "software.fused_attention": _YES,
        "train.gradient_precision": "bf16",
    }


_MASKED: Final = "0.156"
"""Share of the tokens guessed: 80 of 512, 20 of 128, which the example scores alone (a guess)."""


_FULL: Final = ("fp32", "tf32")
_BINNED: Final = 512.0
"""Length from which the example's batches hold samples of similar length alone: bins of 64, padded
to the longest of a batch (README of NVIDIA's lddl 0.1.0 on PyPI, "Language Datasets and Data
Loaders for NVIDIA Deep Learning Examples", phase 2)."""
_FILLED: Final = "0.5625"
"""Mean share of 512 positions that such batches have: half of the positions of Wikipedia's samples
are padding (Krell et al., "Efficient Sequence Packing without Cross-contamination",
arXiv:2107.02027, not looked up), and a sample lacks half a bin of 64, 32 of 512, on average."""


def _encoder(row: TableRow) -> Cells:
    """BERT of NVIDIA's example: apex's fused norms and optimizer, unfused attention, fp16.

    Weights and gradients are fp32, cast by torch; gradients are exchanged at once, in a bucket as
    large as the device's memory (both guesses).
    """
    binned = (row.number("seq_len") or 0.0) >= _BINNED
    return {
        "model.family": "bert",
        "model.shape.ffn": "",
        "model.shape.positions": "512",
        "model.shape.segments": "2",
        "model.shape.scored_share": _MASKED,
        "model.shape.filled": _FILLED if binned else "",
        "software.fused_attention": _NO,
        "train.precision": row.text("precision") if row.text("precision") in _FULL else "fp16",
        "train.gradient_precision": "fp32",
        "train.overlap_communication": _NO,
    }


def _long(row: TableRow) -> Cells:
    """Llama under DeepSpeed's ZeRO, eager, loss by Liger; cuDNN's attention instead of FA4's."""
    sharding = row.text("zero_stage_or_fsdp")
    return {
        "model.family": "llama",
        "model.shape.kv_heads": f"{row.number('kv_heads') or 0:.0f}",
        "software.fused_attention": _YES,
        "software.attention_kernel": "cudnn",
        "software.chunked_loss": _YES,
        "train.precision": "bf16",
        "train.gradient_precision": "bf16",
        "train.recompute": _recompute(row),
        "parallelism.sharding": "parameters" if "ZeRO-3" in sharding else "gradients",
        "parallelism.offload_optimizer": _YES if "offload" in sharding else "",
    }


_SETTINGS: Final[Mapping[str, Callable[[TableRow], Cells]]] = {
    "profiled or measured": _profiled_or_measured,
    "scattered sends": _megatron_lm,
    "buckets that overlap": _megatron_2020,
    "blocking launches": _bloom,
    "mpt": _foundry,
    "torchtitan": _titan,
    "transformer engine": _engine,
    "recipe": _bridge,
    "bert": _encoder,
    "long sequences": _long,
}
"""What software does, by its `settings` in ``runs.toml``."""
