"""Long runs: attempts, failures, checkpoints and spot capacity on top of the steady step.

`attempts` simulates a run many times, from start to end; `forecast` does so for a predicted
scenario and summarizes the results; `checkpoint_io` has the times of checkpoints, `campaign`
several jobs on one pool. Steps are not simulated here: their times come from a prediction.
"""
