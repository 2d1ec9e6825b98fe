"""Measures the machine at hand: one module a device, and the profiles made of what they find.

A device's module returns `Reading`s. Each is bounded in time; what a measurement writes to a disk
is unlinked as soon as it is open, so that nothing is left behind however the program ends.
"""
