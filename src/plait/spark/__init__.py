"""Plait inside Spark Structured Streaming: streaming DataFrames in, a streaming DataFrame out.

`join` builds the DataFrame of results and runs the processors, `control` is the directory through
which driver and processors talk, `balance` moves partition groups while a query runs, `checkpoint`
reads and repairs what Spark keeps, `environment` looks after sessions, and `io` has Kafka and
Delta. Only this package and `plait.sites.spark` import pyspark. Begin with `join/frame.py`.
"""
