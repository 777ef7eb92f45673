"""What processors tell about their batches, and what is put together from it.

`report` is one processor's batch, `progress` all of them together, `history` what is remembered of
batches long gone, and `looks` what the distribution manager sees. The logs of events and history
are files; the rest is values. Begin with `report`.
"""
