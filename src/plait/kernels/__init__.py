"""Compiled kernels, arrays in and arrays out: windows, indexes, hashing and gathering.

Begin with `window`, which keeps rows in a `ring` and finds them by an `index`. Kernels know nothing
of plans, and do no I/O.
"""
