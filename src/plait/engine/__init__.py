"""A plan at work in one process: rows in, results out.

`driver` takes batches in, and lets a tactic find the results; `intake` admits and encodes rows,
`tactics` has a way to find results per file, `migrate` changes the tactic while it runs, and
`output` gathers the selected columns. It uses `kernels`, `plan` and `query`, and knows neither
Spark nor files nor decisions. Begin with `driver`, then `tactic`.
"""
