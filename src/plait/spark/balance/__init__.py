"""Partition groups that move between the processors of a query on Spark.

`manager` runs the distribution manager in the driver, beside the batches; `moves` carries out what
it or a user asks for; `rebalance` changes the number of processors of a stopped query. Begin with
`manager`.
"""
