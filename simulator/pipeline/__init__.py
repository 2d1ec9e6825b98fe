"""The step program: stages, their order, streams and frequency, and their load on the machines.

`program` is the table that the event engine, the bounds, the search and the estimate read; none of
them depends on the names of stages. It also has the ledger, the time of a rank by slot. `topology`
has the units of the machines, `loads` closed-form times of units and actors, `shared_cores` those
of workers and pin-memory threads on the same cores, `run_length` steps and epochs.
"""
