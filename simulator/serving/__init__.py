"""Serving: requests that queue for the iterations of an engine, answered as latencies and cost.

`answers.answer` is the way in. Below it: `load` (the requests of a load), `kv_pool` (how many
tokens the cache holds, and who holds them), `scheduler` (what the next iteration computes, by the
rules of the engine), `engine` (iterations after one another, many at once where nothing changes),
`latencies` (what the requests of a run saw) and `sizing` (how many devices keep the limits).

Three things are new beside training: a request, an iteration and its composition. What an
iteration takes comes from `compute.forward_pass`.
"""
