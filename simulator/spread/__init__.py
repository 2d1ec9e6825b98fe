"""One training step of a transformer that is spread over devices.

`description` says what one device computes and sends, in numbers that may be arrays of candidates;
`shapes`, `kernels`, `launch`, `exchange` and `experts` turn it into times of one layer; `passes`
into times of a micro-batch on a stage; `step` into a step. All of them are functions of a
`Description` and of fitted `Kernels`, and branch on no number.
"""
