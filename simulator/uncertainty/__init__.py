"""How well the figures of a scenario are known, by the evidence behind each of them.

The types of uncertainties are in `schema.uncertainty`, the intervals that follow from them in
`engine.intervals`.
"""
