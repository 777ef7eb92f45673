"""The adaptive loop: notice, decide, ask for another plan, check that it paid. Values only.

`setting` and `policy` configure a loop, `state` is its memory, and `observations` passes between
the loop and its host. Begin with `loop.advance`, which puts the parts in order: `knowledge` keeps
estimates, `when` says when to look, sample and compare, `decide` turns estimates into a decision
with its reasons, `strategy` chooses how to migrate, `pursuit` adds up what staying has cost, and
`guard` judges whether a change paid. `events` records what happened, and `replay` shows what
another policy would have decided.

The distribution manager, which balances all processors, is in `plait.groups.balance`.

Nothing here imports an engine or reads a clock; `plait.node.adapting` does both. Begin with `loop`.
"""
