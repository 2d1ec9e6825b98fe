"""Predicts what hardware an ML job needs: step time, bottleneck, memory and cost.

`load` is the door for notebooks and scripts; ``plan`` the one for terminals.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from simulator.version import __version__

if TYPE_CHECKING:
    from simulator.api import (
        Answer,
        Configuration,
        ServiceAnswer,
        ServiceConfiguration,
        compare,
        load,
    )
    from simulator.errors import PlanError

__all__ = [
    "Answer",
    "Configuration",
    "PlanError",
    "ServiceAnswer",
    "ServiceConfiguration",
    "__version__",
    "compare",
    "load",
]

_HOMES = {"PlanError": "simulator.errors"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever goes by that name
    """The public names, imported when first asked for: the command line does without them."""
    if name not in __all__:
        msg = f"module 'simulator' has no attribute '{name}'"
        raise AttributeError(msg)
    return getattr(import_module(_HOMES.get(name, "simulator.api")), name)
