"""The long run: attempts, failures, checkpoints and spot capacity on top of the steady step.

`attempts` draws lives of a run, from its start to its end; `forecast` asks it about a scenario and
sums up what the draws say. Steps are not simulated here: what they take comes from a prediction.
"""
