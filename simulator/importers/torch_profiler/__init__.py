"""Traces of the PyTorch profiler: their steps, operators and messages, at other sizes too."""
