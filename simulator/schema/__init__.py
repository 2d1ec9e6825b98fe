"""Machines, jobs, and the scenario that joins them: types of data.

`accelerators`, `storage` and `machines` say what a machine is; `data_loading`, `models`, `training`
and `software` what it computes; `scenario` joins both with calibration and cost (`cost`), `serving`
holds services, `long_run` interruptions, `goal` what a search looks for, and `candidates` makes one
scenario of many that share their structure. `provenance` says where a figure comes from,
`measurement` holds measured runs, `calibration` what was fitted to them, and `uncertainty` how well
a rate is known. Nothing here computes a time.

Every type is frozen and holds SI floats. Numeric leaves may hold one value for each candidate of a
batch (arrays of one shape) instead of a float: equations and stages work on both, the event engine
takes floats only. Datasheet `peak` and `achievable` rate are different fields; where nothing was
measured, `achievable` is None and a stage uses the peak times a stated efficiency. `sources` maps
the name of a field to the source of its figure.
"""
