"""Hypothesis strategies and seeded draws: queries, histories, policies, tunings and moves.

They are small and adversarial: few keys, ties, bursts, disorder, nulls, and sizes down to 1. They
use `plait.query` and values of other packages, and run nothing. Begin with `histories`.
"""
