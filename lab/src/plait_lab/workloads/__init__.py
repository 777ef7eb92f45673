"""Generated streams for benchmarks and tests: steady, changing, keyed, and as files.

All are seeded. They use `plait.query` and Arrow, and run no query, except for `checkpoints`, which
writes checkpoints of queries that have run for long. Begin with `stationary`, then `changing`.
"""
