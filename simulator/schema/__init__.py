"""Dataclasses of machines, jobs, services and scenarios.

`accelerators`, `storage` and `machines` describe hardware; `data_loading`, `models`, `training` and
`software` describe a job; `scenario` combines both with calibration and cost (`cost`). `serving`
describes services, `long_run` interruptions and `goal` searches; `candidates` combines scenarios of
equal structure into one. `provenance` holds sources and assumptions, `measurement` measured runs,
`calibration` the parameters fitted to them, and `uncertainty` the uncertainty of rates.

Nothing here computes a time. Every type is frozen and holds floats in SI units. For a batch of
candidates a numeric field may hold an array with one value per candidate: equations and stages
accept floats and arrays, the event engine floats only.

The datasheet `peak` and the `achievable` rate are separate fields. Where nothing was measured,
`achievable` is None and a stage uses the peak times a stated efficiency. `sources` maps the name of
a field to the source of its value.
"""
