"""The operator without Spark: packets in, frames out, and state that another task goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from plait.groups.routing.packets import Packer, Packet, lean
from plait.groups.routing.routing import route
from plait.node.durable.contract import contract
from plait.node.node import Setup
from plait.node.task import Processor
from plait.plan.jtree import mjoin
from plait.spark.control.directory import Control
from plait.spark.io.delta_table import create_delta
from plait.spark.io.write_delta import FileOutlet, table_schema
from plait.spark.join.operator import REPORT, JoinOperator, Outlet, RowOutlet
from plait.testing.examples import clique

Rows = dict[str, list[tuple[int | None, int]]]
QUERY = clique(2)
ROUTING = route(QUERY.graph, 1)
PROCESSOR = Processor(
    Setup(lean(QUERY), mjoin(QUERY)), contract(QUERY, ROUTING), ROUTING, aside=True
)


class Value:
    def __init__(self) -> None:
        self.value: Any = None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


class Map:
    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def iterator(self) -> Iterator[Any]:
        return iter(list(self.values.items()))

    def updateValue(self, key: Any, value: Any) -> None:
        self.values[key] = value

    def removeKey(self, key: Any) -> None:
        del self.values[key]


class Handle:
    """What the store asks of Spark's handle."""

    def __init__(self) -> None:
        self._states: dict[str, Any] = {}

    def getValueState(self, name: str, schema: Any) -> Value:
        del schema
        return self._states.setdefault(name, Value())  # type: ignore[no-any-return]

    def getMapState(self, name: str, key: Any, value: Any) -> Map:
        del key, value
        return self._states.setdefault(name, Map())  # type: ignore[no-any-return]


def packets(rows: Rows) -> pd.DataFrame:
    found: list[Packet] = []
    for s, stream in enumerate(QUERY.streams):
        times = pa.array([t for t, _ in rows[stream.name]], pa.timestamp("us"))
        keys = pa.array([k for _, k in rows[stream.name]], pa.int64())
        columns = {"ts": times.cast(stream.schema.field("ts").type), "k": keys}
        batch = pa.RecordBatch.from_arrays(
            [columns[name] for name in stream.schema.names], schema=stream.schema
        )
        found += Packer(QUERY, s, ROUTING, aside=True).pack([batch])
    return pd.DataFrame([packet._asdict() for packet in found])


def operator(outlet: Outlet, handle: Handle) -> JoinOperator:
    made = JoinOperator(PROCESSOR, (7,), "run", Control.of(None, None, "run", "yarn"), outlet)
    made.init(handle)  # type: ignore[arg-type]  # all that the store needs of it
    return made


def test_a_second_task_goes_on_from_the_state_of_the_first() -> None:
    handle, outlet = Handle(), RowOutlet(PROCESSOR, reports=True)
    results = list[int]()
    batches: list[Rows] = [{"a": [(1, 5)], "b": []}, {"a": [(None, 1)], "b": [(2, 5)]}]
    for batch in batches:
        rows = packets(batch)
        frames = list(operator(outlet, handle).handleInputRows((7,), iter([rows]), None))
        assert all(list(frame.columns) == outlet.schema.names for frame in frames)
        assert frames[-1][REPORT].notna().all()
        reasons = [r for f in frames for r in f["__plait_reason"].dropna()]
        assert reasons == (["no event time"] if None in [t for t, _ in batch["a"]] else [])
        results.append(sum(len(f) for f in frames) - 1 - len(reasons))
    assert results == [0, 1]


def test_files_are_named_at_the_end_and_removed_after_a_failure(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    outlet = FileOutlet(lean(QUERY), str(tmp_path / "table"), "late", reports=False)
    create_delta(outlet.location, table_schema(outlet.query, outlet.late))
    rows = packets({name: [(1, 5)] for name in QUERY.names})
    (frame,) = operator(outlet, Handle()).handleInputRows((7,), iter([rows]), None)
    assert frame["rows"].tolist() == [1]
    assert [p.name for p in (tmp_path / "table").glob("*.parquet")] == frame["path"].tolist()

    class Full(Value):
        def update(self, value: Any) -> None:
            raise OSError("no space left")

    handle = Handle()
    handle._states["header"] = Full()
    with pytest.raises(OSError, match="no space left"):
        list(operator(outlet, handle).handleInputRows((7,), iter([rows]), None))
    assert len(list((tmp_path / "table").glob("*.parquet"))) == 1
