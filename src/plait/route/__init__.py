"""Many processors: who gets which tuples. Decisions and protocols without I/O."""
