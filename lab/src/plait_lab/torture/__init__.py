"""Campaigns against Plait: random queries over random streams, with everything that can go wrong.

Each round draws a case from a seed (`cases`), runs it on one host (`local`, `simulated`, `spark`)
and compares the answer with `plait.testing.oracle` where it is small, and with DuckDB where it is
large. A failure is shrunk, and named by a text that repeats it. It may use everything in Plait.
Begin with `campaign`; `./dev torture` runs it.
"""
