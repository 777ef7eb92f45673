"""One site: the streams that arrive there, its windows and operators, and its links to others.

`Site` in `site.py` makes steps; begin there. It has four parts: `admission` admits rows, `runs`
joins tuples with `windows`, `migration` changes the plan (as `planning` and the protocol decide),
and `outgoing` makes up the packets that `links` numbers, keeps and repeats. Nothing here does I/O:
a host hands in rows and packets, and commits what a step has written to its store.
"""
