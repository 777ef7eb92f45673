"""The split: which group a row is in, which processors get it, and the packets it travels in.

Values and arrays only, without I/O. Begin with `routing`, which makes sure that every result is
found by exactly one processor; `table` says where each group is.
"""
