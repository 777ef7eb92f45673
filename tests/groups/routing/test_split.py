"""The split: every row goes to whom it concerns, once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from plait.groups.moves.move import Move
from plait.groups.routing.routing import Routing, route
from plait.groups.routing.split import cells_of, shares_of
from plait.groups.routing.table import Table
from plait.query.query import Query
from plait_lab.workloads.keyed import keyed_query

QUERY = keyed_query([["k"]] * 2, 10)


def rows(n: int = 200) -> pa.RecordBatch:
    times = pa.array(np.arange(n)).cast(pa.timestamp("us"))
    return pa.record_batch({"k": pa.array(np.arange(n) % 40), "ts": times, "v": np.arange(n)})


def sent(routing: Routing, query: Query = QUERY, stream: int = 0) -> Counter[tuple[int, int, int]]:
    """(row, processor, flag) of everything that is sent, and that originals are no copies."""
    given, found, originals = rows(), Counter[tuple[int, int, int]](), Counter[int]()
    for share in shares_of(routing, query, stream, given, cells_of(routing, query, stream, given)):
        numbers = range(given.num_rows) if share.rows is None else share.rows.tolist()
        found.update((n, share.processor, share.flag) for n in numbers)
        originals.update(numbers if share.original else ())
    assert set(originals.values()) == {1} and len(originals) == given.num_rows
    return found


def group_rows(routing: Routing, group: int) -> list[int]:
    return np.flatnonzero(cells_of(routing, QUERY, 0, rows()) == group).tolist()


def begun(routing: Routing, move: Move) -> Table:
    return routing.table.begin(move, 1, routing.processors)


def test_every_row_goes_to_one_processor() -> None:
    routing = route(QUERY.graph, 3, groups=8, seed=1)
    found = sent(routing)
    assert set(found.values()) == {1} and len(found) == 200


def test_ptlb_copies_to_the_receiver_and_flags_at_the_sender() -> None:
    routing = route(QUERY.graph, 2, groups=4, seed=1)
    table = begun(routing, Move(9, "PTLB", (0,), (0,), (1,)))
    found, moving = sent(routing.at(table)), group_rows(routing, 0)
    assert moving, "some rows are in the group"
    for n in moving:
        assert found[n, 0, 9] == 1 and found[n, 1, 0] == 1
    assert len(found) == 200 + len(moving)


def test_mslb_changes_nothing_before_its_end() -> None:
    routing = route(QUERY.graph, 2, groups=4, seed=1)
    move = Move(9, "MSLB", (0,), (0,), (1,))
    table = begun(routing, move)
    assert sent(routing.at(table)) == sent(routing)
    after = sent(routing.at(table.end(9, 2)))
    assert all(after[n, 1, 0] == 1 for n in group_rows(routing, 0))


def test_a_spread_group_divides_one_stream_and_copies_the_other() -> None:
    routing = route(QUERY.graph, 3, groups=3, seed=1)
    table = begun(routing, Move(9, "MSLB", (0,), (0,), (0, 1, 2), 0)).end(9, 2)
    hot = group_rows(routing, 0)
    divided, copied = sent(routing.at(table), stream=0), sent(routing.at(table), stream=1)
    places = Counter(p for n, p, _ in divided if n in hot)
    assert sum(places.values()) == len(hot) and len(places) == 3
    assert all(copied[n, p, 0] == 1 for n in hot for p in range(3))


def test_a_row_goes_to_the_same_place_whoever_reads_it() -> None:
    routing = route(QUERY.graph, 3, groups=3, seed=1)
    table = begun(routing, Move(9, "MSLB", (0,), (0,), (0, 1, 2), 0)).end(9, 2)
    one = {n: p for n, p, _ in sent(routing.at(table))}
    given = rows()
    order = np.random.default_rng(1).permutation(given.num_rows)
    shuffled = given.take(pa.array(order))
    cells = cells_of(routing, QUERY, 0, shuffled)
    for share in shares_of(routing.at(table), QUERY, 0, shuffled, cells):
        numbers = order if share.rows is None else order[share.rows]
        assert all(one[n] == share.processor for n in numbers.tolist())
