"""The definition of a correct answer, written naively, and DuckDB as a second opinion.

`answer` joins by nested loops over the raw predicates, `fates` says which rows are set aside,
`scalar` evaluates expressions a value at a time, and `duck` asks DuckDB. It imports nothing of
Plait but the query and the errors: what it shared with the engine, it could not test. Begin with
`answer`.
"""
