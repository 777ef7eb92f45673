"""Campaigns on Spark: random queries whose drivers, executors and workers are killed on order.

`campaign` runs rounds, `rounds` draws them, `driver` and `worker` run inside the processes that
die, and `killpoints` names where. `sites` does the same to joins over sites, whose mail goes
through the bad network of `postman`. Only drivers and workers import pyspark. Begin with
`campaign`.
"""
