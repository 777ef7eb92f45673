"""From a query and its DataFrames to a DataFrame of results, and the operator that runs inside.

`frame` puts the stages together: pack, shuffle by processor, join. `operator` is the processor in
Spark's stateful operator; `layout` says how many there are. Begin with `frame`.
"""
