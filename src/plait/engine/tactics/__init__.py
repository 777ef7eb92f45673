"""The ways to find results: each is a `plait.engine.tactic.Tactic`.

`tree` runs join trees, `parallel_track` two plans side by side, `eddy` and `teddy` route packets by
`policies`, and `make` chooses one for a plan. They read windows and indexes, and emit positions of
rows. Begin with `tree`, then `operators`.
"""
