"""Change the plan while it runs: the two strategies of CAPE.

`strategy` starts either; `moving_state` hands states over and recomputes the others, and the
parallel track is `plait.engine.tactics.parallel_track`. Only windows and tactics are touched, never
what is durable. Begin with `strategy`.
"""
