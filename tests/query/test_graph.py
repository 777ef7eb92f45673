"""Key classes and who shares them."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import DisconnectedJoin, TypeMismatch
from plait.query import graph as graphs
from plait.query.expr import Column
from plait.query.graph import JoinGraph
from plait.query.query import Equality, Field, Stream

COLUMNS = ("x", "y")


def stream(name: str, **types: pa.DataType) -> Stream:
    fields = [Field(n, t) for n, t in (types or {"x": pa.int64(), "y": pa.int64()}).items()]
    return Stream(name, (*fields, Field("ts", pa.timestamp("us"))), "ts")


def join_graph(streams: list[Stream], equalities: list[Equality]) -> JoinGraph:
    graph = graphs.join_graph(tuple(streams), tuple(equalities))
    graphs.check_connected(streams, graph)
    return graph


def equality(left: str, right: str) -> Equality:
    a, b = (Column(*side.split(".")) for side in (left, right))
    return Equality(a, b)


ABCD = [stream(name) for name in "abcd"]


def test_equalities_are_transitive() -> None:
    graph = join_graph(ABCD[:3], [equality("a.x", "b.x"), equality("b.x", "c.y")])
    assert [c.columns for c in graph.classes] == [(("x",), ("x",), ("y",))]
    assert graph.neighbours(0) == {1, 2}
    assert graph.shared([0], [2]) == (0,)


def test_several_classes() -> None:
    graph = join_graph(ABCD[:3], [equality("a.x", "b.x"), equality("b.y", "c.x")])
    assert [c.columns for c in graph.classes] == [(("x",), ("x",), ()), ((), ("y",), ("x",))]
    assert graph.classes_of(1) == (0, 1)
    assert graph.shared([0, 1], [2]) == (1,)
    assert graph.shared([0], [2]) == ()
    assert not graph.connected([0, 2])
    assert graph.components([0, 2]) == (frozenset({0}), frozenset({2}))
    assert graph.connected([0, 1, 2])


def test_two_attributes_of_a_stream_in_one_class() -> None:
    graph = join_graph(ABCD[:2], [equality("a.x", "b.x"), equality("a.y", "b.x")])
    assert graph.classes[0].columns == (("x", "y"), ("x",))


def test_the_common_type_is_that_of_the_whole_class() -> None:
    streams = [
        stream("a", x=pa.int32()),
        stream("b", x=pa.int64()),
        stream("c", x=pa.decimal128(5, 2)),
    ]
    graph = join_graph(streams, [equality("a.x", "b.x"), equality("b.x", "c.x")])
    assert graph.classes[0].type == pa.decimal128(21, 2)


def test_types_of_a_class_that_do_not_meet_are_named() -> None:
    streams = [
        stream("a", x=pa.decimal128(38, 0)),
        stream("b", x=pa.int64()),
        stream("c", x=pa.decimal128(38, 19)),
    ]
    with pytest.raises(TypeMismatch) as caught:
        join_graph(streams, [equality("a.x", "b.x"), equality("b.x", "c.x")])
    assert str(caught.value) == (
        "these attributes are to be equal, but have no common type: a.x (decimal128(38, 0)), "
        "b.x (int64), c.x (decimal128(38, 19)); cast them to one type"
    )


def test_streams_that_nothing_joins_are_named() -> None:
    with pytest.raises(DisconnectedJoin) as caught:
        join_graph(ABCD, [equality("a.x", "c.x"), equality("b.x", "d.x")])
    assert str(caught.value) == (
        "nothing joins a, c with b, d: the result would be their cross product; "
        "add an equality such as a.key = b.key"
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from([(i, j) for i, j in itertools.product(range(4), repeat=2) if i < j]),
            st.sampled_from(COLUMNS),
            st.sampled_from(COLUMNS),
        ),
        max_size=6,
    )
)
def test_classes_are_the_reachable_attributes(
    edges: list[tuple[tuple[int, int], str, str]],
) -> None:
    """Against a search from each attribute along the equalities."""
    pairs = [(f"{'abcd'[i]}.{x}", f"{'abcd'[j]}.{y}") for (i, j), x, y in edges]
    links: dict[str, set[str]] = {}
    for left, right in pairs:
        links.setdefault(left, set()).add(right)
        links.setdefault(right, set()).add(left)

    def reachable(start: str) -> frozenset[str]:
        seen, todo = {start}, [start]
        while todo:
            new = links[todo.pop()] - seen
            seen |= new
            todo += new
        return frozenset(seen)

    expected = {reachable(name) for name in links}
    try:
        graph = join_graph(ABCD, [equality(a, b) for a, b in pairs])
    except DisconnectedJoin:
        touched = [{name[0] for name in group} for group in expected]
        merged: set[str] = set("a")
        while any(group & merged and not group <= merged for group in touched):
            merged |= set().union(*(group for group in touched if group & merged))
        assert merged != set("abcd")
        return
    found = {
        frozenset(f"{'abcd'[i]}.{n}" for i, names in enumerate(c.columns) for n in names)
        for c in graph.classes
    }
    assert found == expected
    assert graph.connected(range(4))
