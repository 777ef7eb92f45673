"""Which plan over sites: its cost, the greedy algorithm, what sites measure, when to change.

Pure functions from values to values. Begin with `greedy`, which is algorithm 1 of the paper.
"""
