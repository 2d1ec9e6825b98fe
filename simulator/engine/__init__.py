"""The event engine: the demands of all ranks queue for and share one machine, on simpy.

`run.solve` is the entry. Below it: `epoch` (one simulated epoch), `machine` (shared units),
`loader` (workers and prefetch), `rank` (a training process and its device), `recorder` (when the
run is steady), `symmetry` (ranks that are simulated once), and the sharing primitives `flows`,
`cpu_pool` and `sharing`, which has the clock. `closed_form` has the bounds, `intervals` the
uncertainty.

One machine is simulated in full. A run ends when its steps repeat (or, with random service, when
their mean is known well enough); the rest of the epoch is composed, not replayed.
"""
