"""Training steps of language models, from a few accelerators to thousands.

A row says how a model of some shape was spread over how many accelerators, with which software.
What that software does (kernels, recomputation, what overlaps) is in `llm.software`; where a
recipe fixes it run by run, in `llm.recipes`. Nothing follows from the name of a row's series but
where it is counted and whether figures may be fitted to it.

Rows that leave out what a prediction needs are left out with their reason: a shape, a micro-batch,
degrees that give the number of accelerators, a device of the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from converters import Columns, TableRow
from converters.llm.machines import machine_cells
from converters.llm.recipes import recipe_cells, recipe_of
from converters.llm.regimes import regimes_of
from converters.llm.runs import llm_runs
from converters.llm.software import Settings, settings_of
from simulator.units import BYTE, parse

SHIPPED: Final = "llm_training"

COLUMNS: Final = Columns(
    required=(
        "id",
        "series",
        "model",
        "layers",
        "hidden",
        "heads",
        "vocab",
        "seq_len",
        "gpu",
        "gpus_total",
        "tp",
        "pp",
        "dp",
        "micro_batch",
        "global_batch",
        "precision",
        "software",
        "step_time_s_equiv",
    ),
    filled=("id", "series", "gpu"),
    numbers=(
        *("layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab", "seq_len"),
        *("gpus_total", "gpus_per_node", "tp", "pp", "vpp", "dp", "cp", "ep"),
        *("micro_batch", "global_batch", "gpu_mem_gb", "step_time_s_equiv"),
    ),
    measured=(
        *("measured_value", "reported_tflops_per_gpu", "step_time_s_equiv"),
        *("tokens_per_s_per_gpu_equiv", "gpu_mem_gb"),
    ),
)

_KEY: Final = (
    *("layers", "hidden", "heads", "ffn_hidden", "vocab", "seq_len", "gpu", "tp", "pp", "vpp"),
    *("cp", "ep", "dp", "zero_stage_or_fsdp", "precision"),
)
"""Columns that make a configuration, in addition to its series."""
_UNKNOWN: Final = "nan"
_PREDICTED_TIERS: Final = ("A", "B")
_TUNED: Final = ("LoRA", "SFT")
_HYBRID: Final = ("hybrid", "compressed")
_LEARNED_POSITIONS: Final = "gpt"
_MEMORY: Final = "measured.gpu_memory_bytes.total"


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    return [_cells(row) for row in rows]


def configuration(row: TableRow) -> str:
    """What rows of one configuration share, as one text."""
    return "|".join((row.text("series"), *(_plain(row, column) for column in _KEY)))


def _plain(row: TableRow, column: str) -> str:
    """A cell of the key: numbers as such, nothing as unknown."""
    text = row.text(column)
    if not text:
        return _UNKNOWN
    return str(float(text)) if column in COLUMNS.numbers else text


def _cells(row: TableRow) -> dict[str, str]:
    labels = {
        "id": row.text("id"),
        "series": row.text("series"),
        "model": row.text("model"),
        "gpu": row.text("gpu"),
        "tier": row.text("tier"),
        "configuration": configuration(row),
        "source": row.text("source"),
    }
    recipe = recipe_of(row)
    reason = next(_reasons(row, recipe), "")
    if reason:
        return {**labels, "family": row.text("series"), "exclude": reason}
    software = settings_of(row)
    cells = {
        **_shape(row, software.cells.get("model.family", "")),
        **_degrees(row),
        **machine_cells(row),
        **software.cells,
        **(recipe_cells(row, recipe) if recipe else {}),
    }
    return {
        **labels,
        "regime": regimes_of(cells),
        "family": _family(row, recipe),
        **({"assumed": software.assumed} if software.assumed else {}),
        **_only_needed(cells),
        **_measured(row, software),
        **_part(row),
    }


def _part(row: TableRow) -> dict[str, str]:
    held = llm_runs().split
    given = held.rows.get(row.text("id")) or held.series.get(row.text("series"))
    return {"split": given} if given else {}


def _family(row: TableRow, recipe: Mapping[str, str] | None) -> str:
    if recipe is None:
        return row.text("series")
    return f"{row.text('series')} {'MoE' if recipe['experts'] else 'dense'}"


def _only_needed(cells: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in cells.items() if text}


def _reasons(row: TableRow, recipe: Mapping[str, str] | None) -> Iterator[str]:
    """Why a row cannot be predicted, most basic first."""
    if row.text("tier") not in _PREDICTED_TIERS:
        yield f"tier {row.text('tier') or 'not stated'}: too little is known of the run"
    if not row.number("step_time_s_equiv"):
        yield "no step time or anything it follows from"
    if any(word in row.text("model") for word in _TUNED):
        yield "fine-tuning, of which part of the model is frozen"
    if recipe is None:
        yield from _missing(row)
    elif any(word in recipe["arch"] for word in _HYBRID):
        yield "state-space or compressed attention layers, which are not modelled"
    if not machine_cells(row):
        yield f"no machine of the catalogue has '{row.text('gpu')}'"


def _missing(row: TableRow) -> Iterator[str]:
    shape = [c for c in ("layers", "hidden", "heads", "vocab", "seq_len") if not row.number(c)]
    if shape:
        yield f"{', '.join(shape)} not stated"
    batch = [c for c in ("micro_batch", "global_batch") if not row.number(c)]
    staged = _number(row, "pp") > 1.0 and _local_batch(row) > 0.0
    if batch and not staged:
        yield f"{', '.join(batch)} not stated"
    degrees = 1.0
    for column in ("tp", "pp", "cp", "dp"):
        degrees *= _number(row, column)
    total = row.number("gpus_total")
    if total != degrees:
        yield f"tp x pp x cp x dp = {degrees:g}, but {total or 0.0:g} accelerators"


def _number(row: TableRow, column: str) -> float:
    return row.number(column) or 1.0


def _shape(row: TableRow, family: str) -> dict[str, str]:
    """Figures of the model's family that a row states."""
    columns = {"layers": "layers", "hidden": "hidden", "heads": "heads", "vocabulary": "vocab"}
    figures = {name: row.number(column) for name, column in columns.items()}
    figures["sequence"] = row.number("seq_len")
    if family == _LEARNED_POSITIONS:
        figures["positions"] = row.number("seq_len")
    figures["ffn"] = row.number("ffn_hidden") or 4.0 * (row.number("hidden") or 0.0)
    return {f"model.shape.{key}": f"{value:.0f}" for key, value in figures.items() if value}


def _degrees(row: TableRow) -> dict[str, str]:
    degrees = {"tensor": "tp", "pipeline": "pp", "interleave": "vpp", "context": "cp"}
    cells = {
        f"parallelism.{key}": f"{_number(row, column):.0f}"
        for key, column in degrees.items()
        if _number(row, column) > 1.0
    }
    replicas = _number(row, "gpus_total") / (
        _number(row, "tp") * _number(row, "pp") * _number(row, "cp")
    )
    micro = _number(row, "micro_batch")
    count = max(1.0, _number(row, "global_batch") / replicas / micro)
    if _number(row, "pp") > 1.0 and not row.number("micro_batch"):
        # torchtitan cuts the local batch into as many micro-batches as there are stages.
        count = _number(row, "pp")
        micro = max(1.0, _local_batch(row) / count)
    return {
        **cells,
        "train.batch_size": f"{micro:.0f}",
        "train.accumulation": f"{count:.0f}",
    }


_LOCAL: Final = "local batch "


def _local_batch(row: TableRow) -> float:
    _, found, after = row.text("notes").partition(_LOCAL)
    digits = "".join(c for c in after.split(";")[0] if c.isdigit())
    return float(digits) if found and digits else 0.0


def _measured(row: TableRow, software: Settings) -> dict[str, str]:
    cells = {"measured.step_time_s.mean": row.text("step_time_s_equiv")}
    memory = row.number("gpu_mem_gb")
    if memory:
        cells[_MEMORY] = f"{parse(f'{memory} {software.memory_unit}', BYTE):.6g}"
    return cells
