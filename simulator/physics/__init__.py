"""Time and memory of one device of a job, and of collectives between devices.

`device_time` chooses the evidence of a time: a measured step, the model's operators (`operators`,
which also counts FLOPs for utilizations), or the fitted kernels of a transformer over tokens. For
these, `transformer` describes what one device computes and sends, in numbers that may be arrays of
candidates, and `parameters` its weights and activations; `kernels`, `collectives` and
`communication` give times, and `training_step` those of a layer, of a pipeline stage and of the
step. `device_memory` adds up what a device holds; `footprint` adds host RAM, checkpoints and
verdicts. `forward_pass` is for serving, `schedule` for pipelines without closed form.

Queues, shared links and the order of events are not here but in `engine`.
"""
