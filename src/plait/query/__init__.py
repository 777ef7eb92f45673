"""Queries as values: streams, predicates, time bounds and the join graph.

Begin with `query.Query`. `builder` and `sql` make one, `graph` and `bounds` hold its key classes
and time bounds, and `evaluate` computes expressions with the operators of `values`. Only `sql`
imports sqlglot, and nothing here imports a plan or an engine.
"""
