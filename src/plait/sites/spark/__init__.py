"""Sites on Spark: each is a grouping key or an application, and mail between them is files.

With `plait.spark`, the only package that imports pyspark. Begin with `join.py`, which places a
join over sites and starts it.
"""
