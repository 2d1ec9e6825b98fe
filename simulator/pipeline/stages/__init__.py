"""Stages of a step: the demands of each on each resource, for one batch of one rank.

A stage states amounts, independent of time. Its slot in the step program (`pipeline.program`) says
when it runs; the event engine and the bounds compute how long it takes.

`base` has the types; `input`, `compute`, `communication` and `waiting` have the stages.
"""
