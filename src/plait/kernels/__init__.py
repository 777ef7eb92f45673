"""Arrays in, arrays out: windows, indexes, hashing and gathering, compiled by numba.

`index` looks keys up within a range of times, `ring` holds the rows of a window, `gather` fetches
columns, and `warm` compiles everything ahead of time. Nothing here knows queries or plans, reads a
clock or does I/O. Begin with `index`.
"""
