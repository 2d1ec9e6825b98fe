"""The physics as a formula sheet: pure functions, one formula each, with unit, source and example.

Every function takes and returns floats or numpy arrays in SI units (one value for each candidate
of a batch) and knows no type of the layers above. Annotations state the units (`Bytes | Real`); a
plain `Real` is a number. An absent limit is ``math.inf``, never None. A docstring has a sentence,
the formula, its source and a worked example; a test walks this package and lists what is missing.

Left out: anything that queues, shares or happens in an order, which is the engine's.
"""
