"""Spark's checkpoints: what they hold, whether they are damaged, and how a query may change.

`inspect` looks at one before a query starts with it, `damage` names the file that is damaged,
`upgrades` agrees to another question, and `why` explains a failed query.
"""
