"""One process: sources, a node, sinks. No Spark, nothing to store or commit.

`run` takes a query over `sources` from beginning to end, `host` runs the node batch by batch, and
`sinks` writes files. Begin with `run`.
"""
