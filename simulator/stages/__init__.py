"""The pipeline: what each stage asks of which resource for one batch of one rank.

A stage says once what it demands, as amounts; solvers (`bounds`, `engine`) decide how long that
takes. The tuples below *are* the pipelines: a stage takes part by standing in one of them.
"""
