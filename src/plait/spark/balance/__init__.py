"""Partition groups that move between the processors of a query on Spark.

`balancer` decides in the driver, from reports, which groups move; `moves` carries moves out;
`rebalance` changes the number of processors of a stopped query, and `processor_set` says which
processors there are then. Begin with `balancer`.
"""
