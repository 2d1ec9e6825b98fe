"""Uncertainty of the rates of a scenario, by the evidence for each of them.

The types of uncertainties are in `schema.uncertainty`, the intervals that follow from them in
`engine.intervals`.
"""
