"""Predicts what hardware an ML job needs: step time, bottleneck, memory and cost."""

from simulator.version import __version__

__all__ = ["__version__"]
