"""What processors tell about their batches, and what is put together from it.

`report` is one processor's batch, `progress` all of them together, and `history` what is remembered
of batches long gone. `cluster_monitor` takes the snapshots by which groups are balanced. The logs
of events and history are files; the rest is values. Begin with `report`.
"""
