"""Balance partition groups over processors: which groups move where, and whether it paid.

`cluster` is a snapshot of the cluster; `decide` applies the rules (with `scaling`, `hot_groups` and
`spread`) to a `proposal`; `relocation` is the decision and the choice of protocol; `move_guard`
judges moves; `manager` runs it all step by step under a `policy`. Values only: nothing here imports
an engine or reads a clock. Begin with `manager`.
"""
