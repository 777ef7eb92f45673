"""Parts of Delta tables: what is in them, and what the log is to say about them."""

from __future__ import annotations

import json
import math
import os
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from plait.spark.io.delta_parts import PartWriter, part_name, table_store

_SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("nested", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        ("text", pa.string()),
        ("x", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(30, 4)),
        ("raw", pa.binary()),
        ("yes", pa.bool_()),
        ("dotted.name", pa.int64()),
    ]
)
_FAR = 400_000_000_000_000_000
"""Microseconds to a year beyond 9999."""


def _value(chance: Random, type_: pa.DataType, *, odd: bool) -> Any:
    if chance.random() < 0.3:
        return None
    number = chance.randrange(-1000, 1000)
    if pa.types.is_struct(type_):
        return {"a": number, "b": [str(number)]}
    if pa.types.is_string(type_):
        return chance.choice("aéz\U0001f600") * (40 if odd and chance.random() < 0.2 else 3)
    if pa.types.is_timestamp(type_):
        return _FAR if odd and chance.random() < 0.2 else number * 1_000_001
    if pa.types.is_floating(type_):
        return chance.choice([math.nan, -0.0, 0.0, number / 4, math.inf])
    if pa.types.is_decimal(type_):
        return number
    if pa.types.is_binary(type_):
        return bytes([number % 256])
    return bool(number % 2) if pa.types.is_boolean(type_) else number


def _told(value: Any, type_: pa.DataType) -> Any:
    """What the log says of a value."""
    if pa.types.is_timestamp(type_):
        base = datetime(1970, 1, 1)
        text = (base + timedelta(microseconds=value)).isoformat(timespec="microseconds")
        return text + ("Z" if type_.tz else "")
    return (
        (date(1970, 1, 1) + timedelta(days=value)).isoformat() if pa.types.is_date(type_) else value
    )


def _texts(rows: pa.Table) -> str:
    """All values, NaN and times of far-away years too."""
    for n, f in enumerate(rows.schema):
        if pa.types.is_timestamp(f.type):
            rows = rows.set_column(n, f.name, rows[f.name].cast(pa.int64()))
    return str(rows.to_pylist())


@pytest.mark.parametrize("seed", range(12))
def test_statistics_are_true_of_every_row(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    odd = bool(seed % 2)
    rows = [
        {f.name: _value(chance, f.type, odd=odd) for f in _SCHEMA}
        for _ in range(chance.randrange(1, 30))
    ]
    writer = PartWriter(str(tmp_path), part_name("q", 3, 1), _SCHEMA)
    for start in range(0, len(rows), 7):
        writer.write(pa.RecordBatch.from_pylist(rows[start : start + 7], _SCHEMA))
    part = writer.close()
    assert part is not None and part.rows == len(rows)
    path = tmp_path / part.path
    assert part.size == path.stat().st_size
    assert _texts(pq.read_table(path)) == _texts(pa.Table.from_pylist(rows, _SCHEMA))
    stats = json.loads(part.stats)
    assert stats["numRecords"] == len(rows)
    for f in _SCHEMA:
        values = [row[f.name] for row in rows if row[f.name] is not None]
        if f.name == "nested":
            assert f.name not in stats["nullCount"]
            continue
        assert stats["nullCount"][f.name] == len(rows) - len(values)
        told = f.name in stats["minValues"]
        assert told == (f.name in stats["maxValues"])
        if f.name in ("x", "price", "raw", "yes"):
            assert not told
        elif not told:
            assert not values or (odd and f.name in ("text", "at", "local"))
        else:
            assert stats["minValues"][f.name] == _told(min(values), f.type)
            assert stats["maxValues"][f.name] == _told(max(values), f.type)


def test_early_years_have_four_digits(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us"))])
    writer = PartWriter(str(tmp_path), part_name("q", 0, 0), schema)
    writer.write(pa.record_batch([pa.array([-62_135_596_800_000_000])], ["at"]).cast(schema))
    part = writer.close()
    assert part is not None
    assert json.loads(part.stats)["minValues"] == {"at": "0001-01-01T00:00:00.000000"}


def test_nothing_appears_without_rows_and_nothing_stays_of_what_is_abandoned(
    tmp_path: Path,
) -> None:
    empty = PartWriter(str(tmp_path), part_name("q", 0, 0), _SCHEMA)
    empty.write(pa.RecordBatch.from_pylist([], _SCHEMA))
    assert empty.close() is None
    empty.abandon()
    begun = PartWriter(str(tmp_path), part_name("q", 0, 0), _SCHEMA)
    begun.write(pa.RecordBatch.from_pylist([{"n": 1}], _SCHEMA))
    begun.abandon()
    assert os.listdir(tmp_path) == []


def test_the_store_of_a_table_reads_what_was_written(tmp_path: Path) -> None:
    place = tmp_path / "a bé"
    schema = pa.schema([("n", pa.int64())])
    DeltaTable.create(str(place), schema)
    writer = PartWriter(str(place), part_name("q", 0, 0), schema)
    writer.write(pa.record_batch({"n": [1]}))
    part = writer.close()
    assert part is not None and (place / part.path).exists()
    assert table_store(str(place)).get_file_info(part.path).size == part.size


def test_names_differ() -> None:
    assert len({part_name("q", 1, 1) for _ in range(100)}) == 100
