"""Streams that are generated: steady, changing, keyed, as files."""
