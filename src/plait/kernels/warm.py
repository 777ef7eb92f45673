"""Compile every kernel for the types the engine uses, so that no batch has to wait for it.

`plait env warm` fills the cache that later processes start from.
"""

from __future__ import annotations

import numpy as np

from plait.kernels import arrival, gather, hashing, order, ring, single, unkeyed
from plait.kernels.index import new_cursor, sweep
from plait.kernels.intern import Interner
from plait.kernels.jit import Ints
from plait.kernels.window import Window

_GATHERED = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32)


def warm() -> None:
    """Call each kernel once with arrays of every type and layout it meets."""
    times: Ints = np.arange(4, dtype=np.int64)
    codes = {0: times, 1: times}
    for spans in (False, True):
        window = Window((0, 1), [(0,), (0, 1)], spans=spans)
        window.append(times, codes, times if spans else None)
        for classes in window.indexes:
            keys = window.keys(classes, codes, len(times))
            window.probe(classes, keys, times, times, new_cursor(2), 16)
        sweep(window.ring.header, window.indexes[0,].heads)
    rows = ring.last_positions(window.ring.header, 4)
    ring.first_positions(window.ring.header, 0, 4)
    ids = ring.ids_of(window.ring.header, rows)
    ring.positions_of(window.ring.header, ids)
    arrival.older(window.ring.header, rows, rows, ids)
    arrival.behind_first(window.ring.header, rows, 1)
    arrival.keep_first(np.ones(4, np.uint8), window.ring.header, rows, 1)
    order.time_order(times, 4)
    from_arrow = times.copy()
    from_arrow.flags.writeable = False
    secret = hashing.make_secret()
    hashing.combine(times.copy(), from_arrow, secret)
    for values in (times, from_arrow):
        hashing.hash_integers(values, secret)
        unkeyed.unkeyed_integers(values)
    keep = np.ones(4, np.uint8)
    for column in (window.latest, times):
        ring.expired_prefix(window.ring.header, column, 0)
        gather.take(column, rows)
        gather.tighten(times.copy(), times.copy(), column, rows, 1, 1)
        gather.widen(times.copy(), times.copy(), column, rows)
        gather.keep_near(keep, column, rows, column, rows, 1, 1)
        gather.keep_equal(keep, times, rows, column, rows)
    _warm_routes(window)
    for dtype in _GATHERED:
        gather.take(np.zeros(4, dtype), rows)
    data, lengths = np.zeros(8, np.uint8), np.ones(4, np.int64)
    read_only = data.copy()
    read_only.flags.writeable = False
    for source in (data, read_only):
        hashing.hash_strings(source, times, lengths, secret)
        unkeyed.unkeyed_strings(source, times, lengths)
        gather.copy_bytes(source, times, lengths, np.zeros(8, np.uint8), 0)
        Interner().encode(source, times, lengths)
    offsets = gather.lengths_to_offsets(lengths, rows)
    gather.take_bytes(data, times, 0, rows, offsets)
    interner = Interner()
    interner.encode(data, times, lengths)
    interner.forget([times])


def _warm_routes(window: Window) -> None:
    """Single tuples: one table for each kind, and nothing to route."""
    table: Ints = np.zeros((1, 1), np.int64)
    none = np.zeros((2, 2), np.int32)
    secret, state = hashing.make_secret(), np.zeros(single.STATE_WORDS, np.int64)
    words, tickets = np.zeros(1, np.uint64), np.zeros(1)
    rings = window.ring.header.reshape(1, -1)
    single.route(
        rings, table, table, table, table, secret, words, tickets, 0.0, -1, none, none, table, state
    )
