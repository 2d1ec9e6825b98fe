"""A run of a serving engine that tests of the fit change."""

from __future__ import annotations

from typing import Final

from converters.serving_rows import ServingRow
from simulator.schema.accelerators import Precision

ROW: Final = ServingRow(
    id="row",
    model="llama-3.1-8b",
    gpu="gpu/h100-sxm5-80gb",
    engine="vllm",
    version="",
    weights=Precision.FP8,
    tensor=1,
    attention=1,
    split_experts=False,
    concurrency=16,
    prompt=1000,
    output=500,
    ratio=1.0,
    first_token=0.1,
    per_token=0.01,
)
