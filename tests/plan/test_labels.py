from __future__ import annotations

import pyarrow as pa

from plait.plan.labels import class_labels, class_texts, key_label, state_label
from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Query, Stream, make_query


def streams_with_ids() -> Query:
    def stream(name: str, *keys: str) -> Stream:
        fields = [Field("ts", pa.timestamp("us")), *(Field(k, pa.int64()) for k in keys)]
        return Stream(name, tuple(fields), "ts")

    def equal(left: str, right: str) -> Call:
        (a, x), (b, y) = (side.split(".") for side in (left, right))
        return Call("eq", (Column(a, x), Column(b, y)))

    return make_query(
        (stream("users", "id"), stream("orders", "id", "user_id"), stream("parcels", "id")),
        (equal("users.id", "orders.user_id"), equal("orders.id", "parcels.id")),
        global_window(3, 1),
    )


def test_a_class_is_shown_as_its_equality() -> None:
    assert class_texts(streams_with_ids()) == (
        "users.id = orders.user_id",
        "orders.id = parcels.id",
    )


def test_a_class_of_several_names_is_called_by_all_of_them() -> None:
    assert class_labels(streams_with_ids()) == ("id=user_id", "id")


def test_labels_that_would_be_the_same_are_spelled_out() -> None:
    query = streams_with_ids()
    query = make_query(
        (query.streams[0], query.streams[1], Stream("x", query.streams[1].fields, "ts")),
        (
            Call("eq", (Column("users", "id"), Column("x", "id"))),
            Call("eq", (Column("orders", "id"), Column("x", "user_id"))),
            Call("eq", (Column("orders", "user_id"), Column("users", "id"))),
        ),
        global_window(3, 1),
    )
    assert class_texts(query) == ("users.id = orders.user_id = x.id", "orders.id = x.user_id")
    assert class_labels(query) == ("users.id=orders.user_id=x.id", "orders.id=x.user_id")


def test_a_state_is_called_by_its_streams_in_order() -> None:
    assert state_label(streams_with_ids(), frozenset({2, 0})) == "users⋈parcels"
    assert key_label(("id=user_id", "id"), (1,)) == "(id)"
