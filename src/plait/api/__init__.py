"""What users touch: a join or a SQL text that can be explained and run, and a running query.

`join` and `sql` begin a question, `sources` reads what is given for its streams, `question` has
its settings and its plan, `runnable` the ways to answer it, and `running` the handle on a query
that runs. The names that users import are in `plait` itself. Begin with `join`.
"""
