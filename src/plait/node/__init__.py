"""One processor: an engine, its plan, its watermarks, and what decides about them.

`node` joins one batch after the other; `task` does so with durable state, and is what every host
runs; `durable` is what survives a crash, `reports` what a processor tells. A node reads no clock
and writes no file by itself: its host passes both in. Begin with `node.py`, then `task.py`.
"""
