"""The meaning of operators and functions on Arrow columns: arrays in, arrays out.

`functions` is the table of all functions; each family (dates, strings, numbers, casts) has a module
of its own, and answers are Spark's. To add a SQL function, write it in its family, enter it in
`functions`, and name it in `plait.query.sql.functions` if SQL calls it differently. Begin with
`functions`.
"""
