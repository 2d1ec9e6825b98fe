"""Serving: requests that queue for the iterations of an engine, with latencies and cost.

`answers.answer` is the entry point. Below it: `load` (the requests), `layout` and `replica` (the
replicas, their forward passes and KV caches), `scheduler` (the contents of the next iteration by
the rules of the engine), `engine` (one replica over time), `fleet` (all replicas with router,
clients and links), `run` (latencies and saturation), and `sizing` (the smallest number of machines
that meets the SLO). The time of an iteration comes from `physics.forward_pass`.
"""
