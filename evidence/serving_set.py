"""Writes the shipped measurement set of services from the tables of a folder.

    python evidence/serving_set.py DIR

Of the closed loops that can be predicted, `EACH` of every model, engine, accelerator and number
format are taken by their hash, with the settings of their scripts; of offline runs as many of every
model, accelerator and engine. Nothing that was measured decides which.
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from converters.serving_rows import ServingRow
from fitting.serving import setup, usable
from fitting.tables import SERVING
from simulator.reading.service.engines import engine_file
from simulator.reading.service.sections import EngineFile
from simulator.reading.shipped import set_folder

Cells = dict[str, str]
Thing = TypeVar("Thing")

EACH: Final = 8
"""Rows of a kind that are taken."""
OUTPUT: Final = set_folder() / "serving.csv"
COLUMNS: Final = (
    *("id", "family", "hardware.gpu", "hardware.gpus", "model.name", "serving.engine"),
    *(
        "serving.version",
        "serving.tensor",
        "serving.expert_parallel",
        "serving.weights",
        "serving.cache",
    ),
    *("serving.attention_groups", "serving.held_prompts.iterations", "serving.held_prompts.share"),
    *("serving.poll_interval", "serving.max_batched_tokens", "serving.memory_fraction"),
    "load.arrivals",
    *("load.concurrency", "load.requests", "load.prompt", "load.output"),
    *("measured.per_token_s.p50", "measured.first_token_s.mean", "measured.output_tokens_per_s"),
    "source",
)
ARGONNE_GPUS: Final = {
    "Nvidia A100 GPU": "gpu/a100-sxm4-40gb",
    "Nvidia H100 GPU": "gpu/h100-sxm5-80gb",
    "AMD MI300X GPU": "gpu/mi300x",
}
ARGONNE_MODELS: Final = {
    "meta-llama/Meta-Llama-3-8B": "llama-3.1-8b",
    "meta-llama/Meta-Llama-3-70B": "llama-3.1-70b",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
}
ARGONNE_ENGINES: Final = {"vLLM": "vllm", "TensorRT-LLM": "tensorrt-llm"}
ARGONNE_DATE: Final = "2024-10"
"""When the runs were published (arXiv:2411.00136)."""
DATED: Final = "vllm"
"""The engine whose versions of that time have figures."""
NVIDIA_GPUS: Final = {
    "H100": "gpu/h100-sxm5-80gb",
    "H200": "gpu/h200-sxm-141gb",
    "B200": "gpu/b200-sxm-180gb",
    "GB200": "gpu/gb200-186gb",
}
NVIDIA_MODELS: Final = {
    "Llama-3.3-70B": "llama-3.1-70b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen3-235B-A22B": "qwen3-235b-a22b",
    "DeepSeek-R1-0528": "deepseek-v3",
}
REQUESTS: Final = ((4096, 3000), (16384, 1500), (10**9, 1000))
"""Requests of a run of TensorRT-LLM's tables, by the most tokens of prompt and answer together."""
_PARALLELISM: Final = r"(TP|TEP|DEP)(\d+)"
PER_DEVICE: Final = "output tok/s/GPU"


def chosen(
    rows: Iterable[Thing], kind: Callable[[Thing], object], name: Callable[[Thing], str]
) -> list[Thing]:
    """`EACH` rows of every kind, by the hash of their names."""
    kinds: dict[object, list[Thing]] = defaultdict(list)
    for row in rows:
        kinds[kind(row)].append(row)
    found = []
    for group in kinds.values():
        group.sort(key=lambda row: hashlib.sha256(name(row).encode()).digest())
        found += group[:EACH]
    return found


def closed_loops(folder: Path) -> Iterator[Cells]:
    """Closed loops of engines."""
    rows = chosen(
        usable(folder),
        lambda row: (row.model, row.engine, row.gpu, row.weights, row.scripted),
        lambda row: row.id,
    )
    for row in rows:
        yield _closed_loop(row)


def _closed_loop(row: ServingRow) -> Cells:
    spread, recipe = setup(row).spread, row.recipe
    held = recipe.held_prompts
    waits = {
        "serving.held_prompts.iterations": "" if held is None else str(held.iterations),
        "serving.held_prompts.share": "" if held is None else str(held.share),
        "serving.poll_interval": str(recipe.poll_interval) if recipe.poll_interval > 1 else "",
    }
    lengths = '{{ tokens = {}, spread = "uniform", ratio = {:g} }}'
    return {
        "id": row.id,
        "family": f"closed loop, {row.model}",
        "hardware.gpu": row.gpu,
        "hardware.gpus": str(row.tensor),
        "model.name": row.model,
        "serving.engine": row.engine,
        "serving.tensor": str(row.tensor),
        "serving.expert_parallel": str(row.split_experts).lower(),
        "serving.weights": str(spread.weights),
        "serving.cache": str(spread.cache),
        **waits,
        "serving.max_batched_tokens": str(recipe.max_batched_tokens or ""),
        "serving.memory_fraction": str(recipe.memory_fraction or ""),
        "load.arrivals": "closed",
        "load.concurrency": str(row.concurrency),
        "load.requests": str(10 * row.concurrency),
        "load.prompt": lengths.format(row.prompt, row.ratio),
        "load.output": lengths.format(row.output, row.ratio),
        "measured.per_token_s.p50": f"{row.per_token:.6g}",
        "measured.first_token_s.mean": f"{row.first_token:.6g}",
    }


def argonne(table: Iterable[Mapping[str, str]]) -> Iterator[Cells]:
    """One batch of equal prompts and answers, all requests at once."""
    known = [
        row
        for row in table
        if row["hardware"] in ARGONNE_GPUS
        and row["model"] in ARGONNE_MODELS
        and row["framework"] in ARGONNE_ENGINES
    ]
    rows = chosen(known, lambda row: (row["hardware"], row["model"], row["framework"]), _key)
    for row in rows:
        length, batch = row["input_output_len"], row["batch"]
        rate = int(batch) * int(length) / float(row["latency_s"])
        yield {
            "id": f"argonne {_key(row)}",
            "family": f"offline, {ARGONNE_GPUS[row['hardware']].removeprefix('gpu/')}",
            "hardware.gpu": ARGONNE_GPUS[row["hardware"]],
            "hardware.gpus": row["n_devices"],
            "model.name": ARGONNE_MODELS[row["model"]],
            "serving.engine": ARGONNE_ENGINES[row["framework"]],
            "serving.version": _version(ARGONNE_ENGINES[row["framework"]]),
            "serving.tensor": row["n_devices"],
            "load.requests": batch,
            "load.prompt": f"{{ tokens = {length} }}",
            "load.output": f"{{ tokens = {length} }}",
            "measured.output_tokens_per_s": f"{rate:.6g}",
            "source": row["source"],
        }


def _version(engine: str) -> str:
    return released_by(engine_file(engine), ARGONNE_DATE) if engine == DATED else ""


def released_by(file: EngineFile, date: str) -> str:
    """The newest version with rules of its own that was out in a month, else the oldest."""
    out = [one for one in file.version if one.released is not None and one.released <= date]
    return out[-1].since if out else file.version[0].since


def _key(row: Mapping[str, str]) -> str:
    names = (
        "hardware",
        "n_devices",
        "framework",
        "model",
        "input_output_len",
        "batch",
        "latency_s",
    )
    return " ".join(row[name] for name in names[:-1])


def tensorrt_llm(table: Iterable[Mapping[str, str]]) -> Iterator[Cells]:
    """Offline runs of TensorRT-LLM's tables whose devices share the layers of one replica."""
    known = [
        row
        for row in table
        if row["model"] in NVIDIA_MODELS and re.fullmatch(_PARALLELISM, row["parallelism"])
    ]
    rows = chosen(known, lambda row: (row["model"], row["gpu"], row["weights"]), _published)
    for row in rows:
        degree, own, experts = _degrees(row["parallelism"])
        prompt, output = int(row["input_tokens"]), int(row["output_tokens"])
        value = float(row["value"]) * (degree if row["unit"] == PER_DEVICE else 1)
        yield {
            "id": f"trtllm {_published(row)}",
            "family": "offline, tensorrt-llm",
            "hardware.gpu": NVIDIA_GPUS[row["gpu"]],
            "hardware.gpus": str(degree),
            "model.name": NVIDIA_MODELS[row["model"]],
            "serving.engine": "tensorrt-llm",
            "serving.tensor": str(degree),
            "serving.expert_parallel": experts,
            "serving.attention_groups": own,
            "serving.weights": row["weights"].lower(),
            "load.requests": str(next(n for most, n in REQUESTS if prompt + output <= most)),
            "load.prompt": f"{{ tokens = {prompt} }}",
            "load.output": f"{{ tokens = {output} }}",
            "measured.output_tokens_per_s": f"{value:.6g}",
            "source": row["source"],
        }


def _degrees(parallelism: str) -> tuple[int, str, str]:
    """Accelerators of a replica, its attention groups where they are stated, and split experts.

    DEP8: eight with requests of their own, among which experts are dealt; TEP8 deals these alone.
    """
    kind, degree = re.fullmatch(_PARALLELISM, parallelism).groups()  # type: ignore[union-attr]
    return int(degree), degree if kind == "DEP" else "", str(kind != "TP").lower()


def _published(row: Mapping[str, str]) -> str:
    names = ("model", "gpu", "parallelism", "weights", "input_tokens", "output_tokens")
    return " ".join(row[name] for name in names) + (" 2" if row["unit"] == PER_DEVICE else "")


def main() -> int:
    """Write the rows of the set."""
    folder = Path(sys.argv[1])
    found = list(closed_loops(folder))
    for name, rows in (
        ("argonne_llm_inference_bench.csv", argonne),
        ("trtllm_offline_throughput.csv", tensorrt_llm),
    ):
        with (folder / SERVING / name).open(encoding="utf-8", newline="") as file:
            found += rows(csv.DictReader(file))
    unique = {row["id"]: row for row in found}
    with OUTPUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(unique.values())
    sys.stdout.write(f"{len(unique)} rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
