"""Search algorithms for plans, one per file.

Each takes a cost model and returns the best plan it finds. `plait.optimize.choose` says which are
tried, in which order and why; begin there.
"""
