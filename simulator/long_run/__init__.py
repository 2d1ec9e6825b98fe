"""Long runs: attempts, failures, checkpoints and spot capacity on top of the steady step.

`attempts` simulates a run many times, from start to end; `forecast` does so for a predicted
scenario and summarizes the results; `campaign` several jobs on one pool. The times of checkpoints
are those of `pipeline.checkpoints`. Steps are not simulated here: their times come from a
prediction.
"""
