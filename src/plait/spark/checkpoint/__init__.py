"""Spark's checkpoints: what they hold, whether they are damaged, and how a query may change.

`stored_state` reads a checkpoint before a query starts with it, `damage` names the damaged file,
`upgrades` agrees to a changed question, and `why` explains a failed query. They read files,
and write only the agreement. Begin with `stored_state`.
"""
