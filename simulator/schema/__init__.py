"""What is asked: machines, jobs, and the scenario that joins them.

`hardware` says what a machine is, `workload` what is asked of it, `scenario` joins both with
calibration and cost, `goal` holds what a search looks for, `candidates` makes one scenario of many
that share their structure. Nothing here computes a time.
"""
