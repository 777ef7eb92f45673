"""Packets: every row that may be in a result is sent, and every processor hears of every task."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.intake.admission import NO_TIME, NULL_KEY
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.groups.moves.move import Move
from plait.groups.routing.packets import Packer, Packet, lean, rows_by_group
from plait.groups.routing.routing import Routing, route
from plait.groups.routing.rows import decode_rows
from plait.groups.routing.split import cells_of
from plait.query.query import Query
from plait.testing.examples import chain, trades_quotes_news
from plait.tuning import USUAL

QUERY = trades_quotes_news
"""Trades below a size of 100 are filtered; prices and sizes that results lack are not sent."""
SECOND = 1_000_000
Trade = tuple[int | None, str | None, float, int]
TRADES = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, "x", "y", "z"]),
        st.sampled_from([0.5, 1.5]),
        st.sampled_from([99, 100]),
    ),
    max_size=12,
)


def batch(trades: list[Trade], query: Query = QUERY) -> pa.RecordBatch:
    schema = query.streams[0].schema
    columns = list(zip(*trades, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def routing(processors: int = 3) -> Routing:
    return route(QUERY.graph, processors, groups=8, seed=1)


def sent(packets: list[Packet], reason: str = "") -> Counter[tuple[object, ...]]:
    found = Counter[tuple[object, ...]]()
    for packet in packets:
        if packet.body is not None and packet.reason == reason:
            rows = [row for part in decode_rows(packet.body) for row in part.to_pylist()]
            assert len(rows) == packet.rows
            found.update((row["ts"], row["sym"], row["price"]) for row in rows)
    return found


def shown(trades: list[Trade]) -> Counter[tuple[object, ...]]:
    rows = batch(trades).to_pylist()
    return Counter((row["ts"], row["sym"], row["price"]) for row in rows)


@pytest.mark.slow
@settings(max_examples=40)
@given(TRADES, st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_every_row_is_sent_or_counted(
    trades: list[Trade], processors: int, size: int, wanted: bool
) -> None:
    tuning = replace(USUAL, packet_rows=size)
    packer = Packer(QUERY, 0, routing(processors), wanted, tuning)
    packets = list(packer.pack(batch(trades[i : i + 4]) for i in range(0, len(trades), 4)))
    timed = [t for t in trades if t[0] is not None]
    large = [t for t in timed if t[3] >= 100]
    joined = [t for t in large if t[1] is not None]
    assert sent(packets) == shown(joined)
    bad = {NO_TIME: [t for t in trades if t[0] is None], NULL_KEY: [t for t in large if not t[1]]}
    for reason, rows in bad.items():
        assert sent(packets, reason) == (shown(rows) if wanted else Counter())
    beats = [p for p in packets if p.body is None]
    assert [beat.processor for beat in beats] == list(range(processors)), "each hears of the task"
    for beat in beats:
        assert (beat.rows, beat.filtered) == (len(trades), len(timed) - len(large))
        assert (beat.null_times, beat.null_keys) == tuple(map(len, bad.values()))
        assert beat.newest == max((t[0] for t in timed if t[0]), default=BEFORE_ALL_TIMES)
    counted = Counter[int]()
    for beat in beats:
        mine = sum(p.rows for p in packets if p.body and not p.reason and p[0] == beat.processor)
        groups = rows_by_group(beat.groups or b"")
        assert sum(groups.values()) == mine and 0 not in groups.values()
        counted.update(groups)
    assert counted == Counter(cells_of(packer.routing, QUERY, 0, batch(joined)).tolist())


def test_rows_with_one_key_go_to_one_processor() -> None:
    trades: list[Trade] = [(1, sym, 1.0, 100) for sym in "abcdefgh" * 3]
    homes: dict[str, set[int]] = {}
    for packet in Packer(QUERY, 0, routing()).pack([batch(trades)]):
        for part in decode_rows(packet.body) if packet.body else ():
            for sym in part.column("sym").to_pylist():
                homes.setdefault(sym, set()).add(packet.processor)
    assert len(homes) == 8 and all(len(places) == 1 for places in homes.values())
    assert len(set.union(*homes.values())) > 1


def test_a_processor_runs_what_is_left_of_the_query() -> None:
    """Conditions on one stream were met before; columns that only they read stay behind."""
    found = lean(QUERY)
    assert [str(r) for r in found.residuals] == [str(QUERY.residuals[0])]
    trades, quotes, _ = found.streams
    assert [f.name for f in trades.fields] == ["ts", "sym", "price"]
    assert [f.name for f in quotes.fields] == ["ts", "sym", "bid", "ask"]
    assert found.equalities == QUERY.equalities and found.schema == QUERY.schema


def test_bodies_have_the_columns_of_the_lean_query() -> None:
    given: list[Trade] = [(1, "x", 1.0, 100), (None, "x", 1.0, 100)]
    packets = Packer(QUERY, 0, routing(), aside=True).pack([batch(given)])
    schemas = {part.schema for p in packets if p.body for part in decode_rows(p.body)}
    assert [schema.names for schema in schemas] == [["ts", "sym", "price"]]


def test_all_packets_of_a_task_carry_the_table_and_flags_of_its_moves() -> None:
    plain = routing(2)
    table = plain.table.begin(Move(5, "PTLB", tuple(range(4)), (0,), (1,)), 1, 2)
    trades: list[Trade] = [(1, sym, 1.0, 100) for sym in "abcdefgh"]
    trades.append((None, "a", 1.0, 100))
    packets = list(Packer(QUERY, 0, plain.at(table), aside=True).pack([batch(trades)]))
    assert {p.table for p in packets} == {1}
    assert {(p.processor, p.flag) for p in packets if p.body and not p.reason} == {(0, 5), (1, 0)}
    copies = [p for p in packets if p.body and not p.original]
    assert {p.processor for p in copies} == {1}
    assert sum(p.rows for p in packets if p.flag) == sum(p.rows for p in copies) > 0


def test_in_a_hypercube_copies_are_no_originals_and_groups_are_not_counted() -> None:
    query = chain(3)
    cube = route(query.graph, 4, seed=1)
    assert cube.shares == (2, 2)
    names = query.streams[0].schema.names
    rows = pa.RecordBatch.from_arrays([pa.array([1]).cast(pa.timestamp("us")), [7]], names=names)
    packets = list(Packer(query, 0, cube).pack([rows]))
    assert sorted(p.original for p in packets if p.body) == [False, True]
    assert [p.groups for p in packets if p.body is None] == [None] * 4


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_rows_set_aside_go_to_one_processor(stream: int) -> None:
    schema = QUERY.streams[stream].schema
    row = pa.RecordBatch.from_pylist([dict.fromkeys(schema.names)], schema)
    for processors in (1, 2, 3):
        packets = list(Packer(QUERY, stream, routing(processors), aside=True).pack([row]))
        assert [p.processor for p in packets if p.reason] == [stream % processors]
