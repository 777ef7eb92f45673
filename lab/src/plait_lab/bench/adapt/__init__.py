"""Streams that change while they flow: what a run that re-plans itself makes of them.

`workloads` makes the rows, `contest` runs systems over the same rows in turn, `static` finds the
static plans to compare with. Each benchmark is one question about a change.
"""
