"""Stages: what each one asks of which resource for one batch of one rank.

A stage says once what it demands, as amounts; it knows nothing of when it runs. Its slot in the
step program (`simulator/pipeline`) says that, and solvers decide how long it takes.
"""
