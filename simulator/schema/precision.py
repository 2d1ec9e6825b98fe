"""Number formats a device computes in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import Choice


class Precision(StrEnum):
    """A number format for the bulk of the arithmetic; TF32 is NVIDIA's 19-bit tensor format."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"

    @property
    def bytes_per_element(self) -> float:
        """Bytes one stored element takes [B]."""
        return _ELEMENT_BYTES[self]


_ELEMENT_BYTES = {
    Precision.FP64: 8.0,
    Precision.FP32: 4.0,
    Precision.TF32: 4.0,
    Precision.FP16: 2.0,
    Precision.BF16: 2.0,
    Precision.FP8: 1.0,
    Precision.FP4: 0.5,
    Precision.INT8: 1.0,
}


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
PrecisionField = Annotated[Precision, Choice(Precision, also=_DTYPES)]
