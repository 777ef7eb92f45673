"""Plans: join trees with a probe order per input, and routers.

Begin with `jtree`. `text` reads what a user gives as a plan, `explain` and `picture` show one,
`serde` writes it as JSON, and `diff` and `boxes` compare two. Plans are immutable values; nothing
here runs them or knows what they cost.
"""
