"""Compiled scanners of text: find where CSV records end and how deep JSON nests."""

from __future__ import annotations

import numpy as np

from plait.kernels.jit import Bytes, Ints, kernel

RECORD, FIELD, PLAIN, QUOTED, MARK, RETURN, BROKEN = range(7)
"""At the beginning of a record; of a field; in one without marks; in one with marks; after a mark
in it; after a carriage return; where quoting broke."""


@kernel
def scan(data: Bytes, state: int, delimiter: int, enough: int) -> tuple[int, int, int]:
    """Walk through the data from a state; stop where a record ends after `enough` bytes.

    Returns the state, where the last whole record ends (-1 if none does), and where it stopped.
    """
    whole, i, n = -1, 0, len(data)
    while i < n:
        c = data[i]
        if state == QUOTED:
            while i < n and data[i] != 34:
                i += 1
            if i < n:
                state = MARK
                i += 1
            continue
        if state == PLAIN:
            while i < n and c not in (10, 13, delimiter):
                i += 1
                if i < n:
                    c = data[i]
            if i == n:
                break
        if state == RETURN:
            state = RECORD
            i += c == 10
            whole = i
            if whole >= enough:
                return state, whole, i
            continue
        if c == 10:
            whole = i + 1
            state = RECORD
            if whole >= enough:
                return state, whole, i + 1
        elif c == 13:
            state = RETURN
        elif c == delimiter:
            state = FIELD
        elif c == 34:
            state = QUOTED
        elif state == MARK:
            return BROKEN, whole, i
        else:
            state = PLAIN
        i += 1
    return state, whole, n


@kernel
def records_of(data: Bytes, delimiter: int, most: int) -> tuple[Ints, Ints]:
    starts, fields = np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    state = RECORD
    for i in range(len(data)):
        c = data[i]
        if state == QUOTED:
            if c == 34:
                state = MARK
            continue
        if c in (10, 13):
            state = RECORD
            continue
        if state == RECORD:
            starts[count] = i
            fields[count] = 1
            count += 1
        if c == delimiter:
            state = FIELD
            fields[count - 1] += 1
        elif c == 34 and state != PLAIN:
            state = QUOTED
        else:
            state = PLAIN
    return starts[:count], fields[:count]


@kernel
def depth(line: Bytes) -> int:
    """The most brackets that are open at once, those in strings not counted."""
    opened, most, quoted, escaped = 0, 0, False, False
    for c in line:
        if quoted:
            if escaped:
                escaped = False
            elif c == 92:
                escaped = True
            elif c == 34:
                quoted = False
        elif c == 34:
            quoted = True
        elif c in (123, 91):
            opened += 1
            most = max(most, opened)
        elif c in (125, 93):
            opened -= 1
    return most
