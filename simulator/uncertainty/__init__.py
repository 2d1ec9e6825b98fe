"""How sure a figure is: data types only.

Where a figure comes from (`provenance`), measured runs (`measurement`), factors and
parameters fitted to measurements (`calibration`), how far a rate may be off (`uncertainties`).
"""
