"""Campaigns against Plait: random questions over random streams, with everything that can go wrong.

Each round draws a case from a seed, runs it on one host and compares the answer with the definition
(`plait.testing.oracle.answer`) where it is small, and with DuckDB where it is large. A failure is
made as small as it can be, and named by a text that repeats it. `./dev torture` runs a campaign.
"""
