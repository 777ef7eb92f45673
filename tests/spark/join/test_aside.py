"""Rows set aside in the forms in which they leave a processor, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.engine.intake.admission import LATE
from plait.groups.routing.malformed import MALFORMED, MARK_TYPE
from plait.node.batch import Aside
from plait.spark.io.write_delta import table_schema
from plait.spark.join.aside import (
    aside_columns,
    aside_schema,
    aside_structs,
    aside_type,
    padded_batch,
)
from plait.testing.examples import clique

QUERY = clique(2)
BAD = {"topic": "t", "partition": 1, "offset": 7, "value": b"\xff", "problem": "no JSON"}


def malformed() -> Aside:
    marks = pa.array([BAD, BAD], MARK_TYPE)
    rows = pa.RecordBatch.from_arrays(marks.flatten(), [f.name for f in MARK_TYPE])
    return Aside(1, MALFORMED, rows)


def late() -> Aside:
    schema = QUERY.streams[0].schema
    columns = [pa.array([5]).cast(field.type) for field in schema]
    return Aside(0, LATE, pa.RecordBatch.from_arrays(columns, schema=schema))


def test_a_malformed_value_tells_its_stream_and_its_mark_and_nothing_else() -> None:
    found = aside_structs(QUERY, malformed(), True)
    assert found.type == aside_type(QUERY, True)
    (one, again) = found.to_pylist()
    assert one == again
    assert one == {
        "stream": QUERY.names[1],
        "reason": "malformed",
        "event_time": None,
        QUERY.names[0]: None,
        QUERY.names[1]: None,
        "malformed": BAD,
    }


@pytest.mark.parametrize("marked", [False, True])
def test_other_rows_have_no_mark(marked: bool) -> None:
    (found,) = aside_structs(QUERY, late(), marked).to_pylist()
    assert found["reason"] == "late" and found[QUERY.names[0]]["k"] == 5
    assert found.get("malformed") is None and ("malformed" in found) == marked


@pytest.mark.parametrize("aside", [late(), malformed()], ids=["late", "malformed"])
def test_flat_columns_fit_their_schema(aside: Aside) -> None:
    schema, n = aside_schema(QUERY, True), aside.rows.num_rows
    found = padded_batch(aside_columns(QUERY, aside), n, schema)
    assert found.schema == schema and found.num_rows == n
    values = [row["__plait_mark_value"] for row in found.to_pylist()]
    assert values == ([BAD["value"]] * n if aside.reason == MALFORMED else [None])


def test_without_marks_the_forms_are_as_before() -> None:
    assert "malformed" not in [field.name for field in aside_type(QUERY)]
    assert not [name for name in aside_schema(QUERY).names if "mark" in name]
    with_marks = table_schema(QUERY, "late", True).field("late").type
    assert with_marks.field("malformed").type == MARK_TYPE
