"""Fields that name one of a few things, with the other words that people write for them."""

from __future__ import annotations

from typing import Annotated, Final

from simulator.schema.fields import Choice
from simulator.schema.hardware.price import Purchase
from simulator.schema.precision import Precision
from simulator.schema.workload.train import Optimizer

_DTYPES: Final = (
    ("float32", "fp32"),
    ("single", "fp32"),
    ("float16", "fp16"),
    ("half", "fp16"),
    ("bfloat16", "bf16"),
    ("float64", "fp64"),
    ("double", "fp64"),
)
"""Names of torch.dtype."""
_SAME_STATE: Final = (
    ("adamw", "adam"),
    ("lamb", "adam"),
    ("adamw-8bit", "adam-8bit"),
    ("nesterov", "momentum"),
)
"""Optimizers that keep as much for each parameter as another one does."""
_BOUGHT: Final = (
    ("buy", "owned"),
    ("bought", "owned"),
    ("own", "owned"),
    ("rent", "on-demand"),
    ("ondemand", "on-demand"),
    ("preemptible", "spot"),
)
"""Words of clouds and of people for the ways to buy."""

PrecisionField = Annotated[Precision, Choice(Precision, also=_DTYPES)]
OptimizerField = Annotated[Optimizer, Choice(Optimizer, also=_SAME_STATE)]
PurchaseField = Annotated[Purchase, Choice(Purchase, also=_BOUGHT)]
