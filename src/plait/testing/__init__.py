"""Test a query of your own: the definition of its answer, and streams to try it on.

`oracle` computes the answer directly from the definition, `streams` generates seeded streams, and
`examples` has small queries. Nothing of the engine is shared with the oracle.
"""
