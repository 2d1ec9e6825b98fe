"""Measurements of this machine, one module for each device, and the profiles made of them.

The module of a device returns `Reading`s. Each measurement is bounded in time; files written to a
disk are unlinked as soon as they are open, so that none is left behind if the program is killed.
"""
