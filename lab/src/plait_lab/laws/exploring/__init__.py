"""Protocols under every order of messages, with loss, repetition and crashes, exhaustively.

`moves` explores how partition groups move in the small world of `moving_world`; `turns` and
`switch_overs` explore how sites change their plan. They use state machines without clock or I/O.
Begin with `moves`.
"""
