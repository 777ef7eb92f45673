"""The loop: notice, decide, ask for another plan, check that it paid. Values only.

`setting` and `policy` say what a loop is for, `state` what it remembers, and `told` what passes
between it and its host. `loop.advance` puts the parts in order: `knowledge` keeps estimates, `when`
says when to look, sample and compare, `decide` turns estimates into a decision with its reasons,
`strategy` says how to get to another plan, `pursuit` what staying has cost so far, and `guard`
whether a change paid. What happened is told in `events`, and `replay` asks what another policy
would have made of it.

The distribution manager, which looks at all processors, is in `plait.groups.balance`.

Nothing here imports an engine or reads a clock; `plait.node.adapting` does both.
"""
