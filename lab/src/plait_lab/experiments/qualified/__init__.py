"""Qualified plans (seed 003): plans within limits of CPU and memory.

`runs` has figures 7 and 8, `times`, `found` and `clouds` have figures 13 and 14, and `published`
the algorithms to the letter of the paper. They use the optimisers of `plait.optimize`; only `runs`
joins rows. Begin with `settings`.
"""
