"""The counters of `benchmarks/house.py`, read once for all tests."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

HOUSE: Final[dict[str, Any]] = runpy.run_path(
    str(Path(__file__).parents[2] / "benchmarks" / "house.py")
)
