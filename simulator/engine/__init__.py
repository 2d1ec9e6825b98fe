"""The event engine: the demands of all ranks queue for and share one machine, on simpy.

`run.solve` is the way in. Below it: `machine` (units that are shared), `loader` (who makes batches,
by the rules of the loader), `rank` (one training process and its device), `watch` (when the run is
steady), `compose` (an epoch and a whole run out of what was simulated), and the sharing
primitives `flows`, `cpu_pool`, `stream` and `barrier`.

One machine is simulated in full. A run ends when its steps repeat (or, with random service, when
their mean is known well enough); the rest of the epoch is composed, not replayed.
"""
