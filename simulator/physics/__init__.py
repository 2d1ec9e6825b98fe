"""Time and memory of one device of a job, and of collectives between devices.

`device_time` chooses the evidence of a time: a measured step, the model's operators (`operators`),
or the fitted kernels of a transformer over tokens. For these, `transformer` describes what one
device computes and sends, in numbers that may be arrays of candidates, and `parameters` its
weights; `kernels` and `communication` give times, `layer_time` those of a layer and of a pipeline
stage, `training_step` their sum. `device_memory` adds up what a device holds, from the
`model_footprint`; `footprint` adds host RAM, checkpoints and verdicts. `forward_pass` is for
serving, `schedule` for pipelines without closed form, `model_flops` for utilization.

Left out: queues, shared links and the order of events, which are the engine's.
"""
