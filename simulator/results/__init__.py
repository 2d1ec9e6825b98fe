"""Results: types of the predictions of jobs and services, and values derived from them.

`metrics` is the registry of all metrics, `cost` and `energy` compute the bill, `assumptions` and
`envelope` the inputs of a prediction and the evidence for it, `binding` the bottleneck,
`expression` is the language of conditions and objectives. Nothing is simulated here.
"""
