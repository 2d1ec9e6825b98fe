"""The step program: which stages a step consists of, in which order, on which stream, how often.

`program` is the table. The event engine, the bounds, the floors of a search and the
estimate all read it; none of them knows a stage by its name. `ledger` says where a rank's time
went, slot by slot, and `closed` adds slots up in closed form.
"""
