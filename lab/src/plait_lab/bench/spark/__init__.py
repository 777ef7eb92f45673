"""Plait on Spark beside its peers: the same files, each system in a process of its own.

`peers`, `moves`, `sinks`, `soak` and others are benchmarks; `systems` starts a system, reads what
it prints and turns it into figures. Only the modules that run inside those processes (`child`,
`native`) import pyspark. Begin with `peers`.
"""
