"""The time and memory of one device of a job, and the time of collectives between devices.

`cost_model` is asked once and answers both. `device_time` says which evidence a time rests on: a
measured step, the operators of the model (`operator_time`), or the layers of a transformer over
tokens, whatever is sharded. For the last, `description` says what one device computes and sends, in
numbers that may be arrays of candidates; `shapes`, `kernels`, `launch`, `exchange` and `experts`
turn it into times of one layer; `passes` into times of a micro-batch on a stage; `step` into a
step. `tiles` times the matrix products of any model. `device_memory` says what a device holds, by
`activations`, `holding` and `memory`.
"""
