"""What the machine is: facts about devices, links, stores, hosts and prices.

Every type is frozen and holds SI floats. Datasheet `peak` and `achievable` rate are different
fields; where nothing was measured, `achievable` is None and a solver uses the peak times a stated
efficiency and says so. `sources` maps a field's name to where its figure came from.
"""
