"""Machines in virtual time: what a node takes is computed from the operations that it counts.

`host` runs one node, `cluster` many machines with partition groups that move, and `sites` sites
with links of their own. They use real engines, and no clock: a run is deterministic on every
machine. Begin with `machines`, then `cluster`.
"""
