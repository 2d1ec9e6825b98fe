"""Results: the types of predictions of jobs and services, and what is derived from them.

`metrics` is the registry of all figures, `cost` and `energy` the bill, `assumptions` and `envelope`
the inputs behind a prediction and the evidence for it, `binding` the bottleneck, `expression` the
language of conditions and objectives. No simulation happens here.
"""
