"""Teddies (seed 004): routing packets of tuples instead of following a plan.

`figures` has figures 6 to 8, `flips` selectivities that flip during a run. They use the tactics of
`plait.engine` in the local host. Begin with `figures`.
"""
