"""What is asked: streams, predicates, bounds and the join graph.

`query` is the one form that every question takes, `builder` and `sql` are ways to ask, `bounds` has
the windows, `graph` the classes of equal keys, and `expr` with `values` the expressions. A question
is a value: nothing here plans or runs it. Begin with `query`.
"""
