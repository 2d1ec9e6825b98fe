"""Importer of PyTorch profiler traces: steps, operators and collectives, also at other sizes."""
