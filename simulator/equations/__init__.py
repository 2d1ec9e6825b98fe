"""The physics as a formula sheet: pure functions, one formula each, with unit, source and example.

Every function takes and returns floats or numpy arrays in SI units (one value for each candidate
of a batch) and knows no type of the layers above: what a stage hands over are plain numbers.
An absent limit is ``math.inf``, never None. A test walks this package and fails for a function
without a unit on every parameter, a formula, a reference, a worked example or a test.

Left out: anything that queues, shares or happens in an order. That is the engine's.
"""
