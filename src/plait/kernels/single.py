"""Routing single tuples from window to window, in one call for many decisions.

A tuple under way is a row of positions, one per stream, and the number of its *station*: what it
has gathered. From a station some streams are *ready*; one is drawn, the tuple is looked up in that
stream's window, and each combination found is complete and goes out, or waits at the end of the
queue with the station that it has come to.

*Correct output.* Every tuple of the queue makes one visit, from first to last, and so does all that
this adds to the queue; each visit finds what `kernels.index.probe` finds and the checks behind it
leave. Windows do not change meanwhile, so positions stay valid.

*Tables.* Windows have different numbers of columns and indexes, and compiled code has one
signature, so columns are given as *places*: address, words per row, and the word to read. Whoever
fills the tables keeps the arrays alive and fills them anew when an array was replaced.

*Interruptions.* The call returns with a reason (`DONE`, `FULL`, `CROWDED`, `UNKNOWN`, `DECIDED`)
and goes on from `state` when it is called again: when results were taken away, when the queue has
been given more room, when a way is known, or for each decision that somebody else makes.

*Cost.* A draw, and the lookup; no allocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # its stubs lack it
from numpy.typing import NDArray

from plait.kernels.hashing import Secret, keyed
from plait.kernels.jit import Ints, Positions, inlined, kernel
from plait.kernels.ring import ID_MASK, position_of

DONE, FULL, CROWDED, UNKNOWN, DECIDED = range(5)
"""Nothing waits; the results fill their room; the queue does; a way must be described; a decision
that was given has been carried out."""

HEAD, TAIL, TARGET, WALKING, NEXT, PRODUCED, FOUND, LONGEST, DECISIONS, WORK = range(10)
"""Words of `state`: the queue from HEAD to TAIL; where the first tuple goes (-1: to be drawn);
whether its chain is being walked, the next row there, and what it has produced; results that wait
to be taken; the longest queue; decisions; the work of the visit."""
STATE_WORDS = 10

WAY_TARGET, WAY_AFTER, WAY_NODES, WAY_HEADS, WAY_BUCKETS = range(5)
WAY_PLACES, WAY_KEYS, WAY_CHECKS, WAY_REACH = range(5, 9)
WAY_WORDS = 9
"""A way: its window; the station it leads to, or -1 when all is gathered; nodes, heads and buckets
of the index; where its places begin, and how many are for keys, for checks and for times."""

PLACE_STREAM, PLACE_ADDRESS, PLACE_WORDS, PLACE_WORD = range(4)
OTHER_ADDRESS, OTHER_WORDS, OTHER_WORD = range(4, 7)
PLACE_WORDS_EACH = 7
"""A place: a column of a stream that is gathered. For a check, then the column of the window that
must be equal; for a time, how far back and ahead of it a partner may be."""
BACK, AHEAD = 4, 5

_LINK_BITS = 32
_FAR = 1 << 62
_NODE_WORDS = 3
_GOLDEN, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

if TYPE_CHECKING:

    def pointer(address: int) -> Any:
        """An address as a pointer."""

else:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        """An address as a pointer."""
        del typing_context, address

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return types.voidptr(types.int64), generate


@inlined
def _word(address: int, words: int, word: int, row: int, rows: int) -> int:
    """One word of a row of a column; checked where kernels are compiled with checks."""
    column = carray(pointer(address), (rows, words), np.int64)
    return int(column[row, word])


@inlined
def _drawn(chance: NDArray[np.uint64]) -> float:
    """A number from 0 to 1, from one word that goes on."""
    chance[0] += np.uint64(_GOLDEN)
    z = chance[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    z ^= z >> np.uint64(31)
    return float(z >> np.uint64(11)) / 9007199254740992.0


@kernel
def route(
    rings: Ints,
    ready: Ints,
    onward: Ints,
    ways: Ints,
    places: Ints,
    secret: Secret,
    chance: NDArray[np.uint64],
    tickets: NDArray[np.float64],
    memory: float,
    given: int,
    queue: Positions,
    results: Positions,
    counts: Ints,
    state: Ints,
) -> int:
    """Route what waits in the queue; the reason why it returned.

    `rings` are the headers of the windows. `ready` has for each station how many streams are ready
    and which, `onward` the ways there by stream, -1 where one is not known yet. The stream is drawn
    by `tickets`, one at least; with `memory` they are won and lost, as by the lottery, and fade.
    With a `given` stream at least 0, one visit is made there. A queue has a row for each tuple,
    positions and then the station; `results` a row for each stream. `counts` are probes, rows
    looked at and matches of each way.
    """
    streams = len(rings)
    k0, k1, k2, mask = secret[0], secret[1], secret[2], secret[3]
    kept = 1.0 - 1.0 / memory if memory > 0 else 0.0
    while state[HEAD] < state[TAIL]:
        first = state[HEAD]
        station = queue[first, streams]
        if not state[WALKING] and state[TARGET] < 0:
            state[LONGEST] = max(state[LONGEST], state[TAIL] - first)
            target = given
            if target < 0:
                of = ready[station, 0]
                target = ready[station, of]
                if of > 1:
                    held = 0.0
                    for r in range(1, of + 1):
                        held += max(1.0, tickets[ready[station, r]])
                    left = _drawn(chance) * held
                    for r in range(1, of + 1):
                        left -= max(1.0, tickets[ready[station, r]])
                        if left < 0:
                            target = ready[station, r]
                            break
            state[TARGET] = target
        target = state[TARGET]
        way = onward[station, target]
        if way < 0:
            return UNKNOWN
        # -- where to look, and for what
        head_id, head = rings[target, 0], rings[target, 1]
        count, capacity = rings[target, 2], rings[target, 3]
        nodes = carray(pointer(ways[way, WAY_NODES]), (capacity, _NODE_WORDS), np.int64)
        place = ways[way, WAY_PLACES]
        keys = ways[way, WAY_KEYS]
        key = 0
        for p in range(place, place + keys):
            s = places[p, PLACE_STREAM]
            code = _word(
                places[p, PLACE_ADDRESS],
                places[p, PLACE_WORDS],
                places[p, PLACE_WORD],
                queue[first, s],
                rings[s, 3],
            )
            if keys == 1:
                key = code
            else:
                key = int(np.int64(keyed(np.uint64(key) ^ np.uint64(code), k0, k1, k2) & mask))
        checks = place + keys
        times = checks + ways[way, WAY_CHECKS]
        lo = -_FAR
        hi = _FAR
        for p in range(times, times + ways[way, WAY_REACH]):
            s = places[p, PLACE_STREAM]
            t = _word(
                places[p, PLACE_ADDRESS],
                places[p, PLACE_WORDS],
                places[p, PLACE_WORD],
                queue[first, s],
                rings[s, 3],
            )
            lo = max(lo, t - places[p, BACK])
            hi = min(hi, t + places[p, AHEAD])
        if not state[WALKING]:
            state[WALKING] = 1
            state[PRODUCED] = 0
            state[WORK] = 1
            state[DECISIONS] += 1
            counts[way, 0] += 1
            buckets = ways[way, WAY_BUCKETS]
            heads = carray(pointer(ways[way, WAY_HEADS]), (buckets,), np.uint32)
            shift = np.uint64(64) - np.uint64(np.log2(buckets))
            h = keyed(np.uint64(key), k0, k1, k2)
            bucket = np.int64((h & mask) >> shift)
            state[NEXT] = np.int64(heads[bucket])
        # -- along the chain
        after = ways[way, WAY_AFTER]
        row = position_of(state[NEXT], head_id, head, count, capacity)
        while row >= 0:
            if after < 0 and state[FOUND] == results.shape[1]:
                return FULL
            if after >= 0 and state[TAIL] == len(queue):
                # Half of the queue has been worked off: the rest moves down. Else it must grow.
                if 2 * first < len(queue):
                    return CROWDED
                waiting = state[TAIL] - first
                for i in range(waiting):
                    for s in range(streams + 1):
                        queue[i, s] = queue[first + i, s]
                state[HEAD] = 0
                state[TAIL] = waiting
                first = 0
            time = nodes[row, 0]
            links = nodes[row, 2]
            following = links & ID_MASK
            counts[way, 1] += 1
            state[WORK] += 1
            if time > hi:
                far_id = (links >> _LINK_BITS) & ID_MASK
                far = position_of(far_id, head_id, head, count, capacity)
                if far >= 0 and nodes[far, 0] > hi:
                    following = far_id
            elif nodes[row, 1] == key and time >= lo:
                equal = True
                for p in range(checks, times):
                    s = places[p, PLACE_STREAM]
                    code = _word(
                        places[p, PLACE_ADDRESS],
                        places[p, PLACE_WORDS],
                        places[p, PLACE_WORD],
                        queue[first, s],
                        rings[s, 3],
                    )
                    other = _word(
                        places[p, OTHER_ADDRESS],
                        places[p, OTHER_WORDS],
                        places[p, OTHER_WORD],
                        row,
                        capacity,
                    )
                    equal &= code == other
                if equal:
                    state[PRODUCED] += 1
                    state[WORK] += 1
                    counts[way, 2] += 1
                    if after < 0:
                        for s in range(streams):
                            results[s, state[FOUND]] = queue[first, s]
                        results[target, state[FOUND]] = row
                        state[FOUND] += 1
                    else:
                        last = state[TAIL]
                        for s in range(streams):
                            queue[last, s] = queue[first, s]
                        queue[last, target] = row
                        queue[last, streams] = after
                        state[TAIL] += 1
            state[NEXT] = following
            row = -1
            if time >= lo:
                row = position_of(following, head_id, head, count, capacity)
        if memory > 0:
            balance = tickets[target] * kept + 1.0 - state[PRODUCED]
            tickets[target] = max(-memory, min(memory, balance))
        state[HEAD] += 1
        state[WALKING] = 0
        state[TARGET] = -1
        if given >= 0:
            return DECIDED
    state[HEAD] = 0
    state[TAIL] = 0
    return DONE
