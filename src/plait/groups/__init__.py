"""Partition groups: which processor gets which rows, and how groups move between processors.

`routing` divides rows among processors and packs them, `moves` carries groups from one processor
to another (PTLB and MSLB of D-CAPE), and `balance` decides which groups go where. Decisions and
messages are values without I/O. Begin with `routing/table.py`.
"""
