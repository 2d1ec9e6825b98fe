"""What is asked of the machine: the data, the loader, the model and how it is trained.

Numeric leaves may hold one value for each candidate of a batch (arrays of one shape) instead of
a float: equations and stages work on both, the event engine takes floats only.
"""
