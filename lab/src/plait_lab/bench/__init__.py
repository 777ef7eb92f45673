"""Benchmarks: what Plait costs, alone and beside DuckDB, Spark's own joins and Flink.

`registry` lists them by name, one function each; `kernel` times the engine, `adapt` streams that
change, and `spark` whole queries. A benchmark may use everything in Plait, and returns a
`plait_lab.reporting.report.Report`. Begin with `registry`.
"""
