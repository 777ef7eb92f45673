"""Streams that change while they flow: what a run that re-plans itself makes of them.

Each benchmark is one question about a change: `flips`, `drifts`, `burst`, `skew` and so on;
`harness` runs the adaptive plan beside every static one, which `static` enumerates. They use the
local host; only `spark_flips` starts Spark, in a process of its own. Begin with `flips`.
"""
