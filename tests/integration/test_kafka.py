"""Joins from Kafka to Kafka, with a real broker.

Spark's sink for Kafka writes a batch again if it was not committed, so results may be there twice.
They carry what identifies them, the place of each of their messages, so that whoever reads them can
drop repeats; that is what the tests do. State, counts and offsets are exact all the same.

It needs what `./dev setup --integration` fetches: a broker, Spark's connector, and a client.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.integration.kafka_broker import address, needs_kafka, received, send

from plait_lab.kafka.broker import make_topics

__all__ = ["address"]
pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("spark"), needs_kafka]

_HERE = Path(__file__).parent
_LIMIT = 900
_SECOND = 1_000_000
_START = 1_700_000_000 * _SECOND

Row = tuple[int, int, int]
"""Event time in microseconds, key, and what identifies a row within its stream."""


def _rows(seed: int, n: int) -> list[Row]:
    chance = Random(seed)
    times = sorted(_START + chance.randrange(60 * _SECOND) for _ in range(n))
    return [(ts, chance.randrange(4), number) for number, ts in enumerate(times)]


def _joined(rows: Mapping[str, Sequence[Row]]) -> Counter[tuple[int, ...]]:
    """The answer by DuckDB: the identities of the rows of each result."""
    near = " AND ".join(
        f"abs({x}.ts - {y}.ts) <= {5 * _SECOND}" for x, y in (("a", "b"), ("a", "c"), ("b", "c"))
    )
    with duckdb.connect() as connection:
        for name, given in rows.items():
            connection.execute(f"CREATE TABLE {name} (ts BIGINT, k BIGINT, id BIGINT)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", given)
        return Counter(
            connection.execute(
                f"SELECT a.id, b.id, c.id FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND {near}"
            ).fetchall()
        )


def _run(job: dict[str, Any], kill_after: int | None = None) -> dict[str, Any]:
    """Run the driver; with `kill_after`, end all its processes when it has done that batch."""
    path = Path(job["folder"], "job.json")
    path.write_text(json.dumps(job))
    with Path(job["folder"], "log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, str(_HERE / "kafka_query.py"), str(path)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert driver.stdout is not None
    line = ""
    try:
        for line in driver.stdout:
            if line.startswith(f"batch {kill_after}"):
                return {}
        driver.wait(_LIMIT)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    told = Path(job["folder"], "log").read_text()[-4000:]
    assert kill_after is None, f"it ended before: {told}"
    assert driver.returncode == 0, told
    found: dict[str, Any] = json.loads(line)
    return found


def _iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / _SECOND, UTC).isoformat()


def test_oracle_json_through_a_kill_malformed_values_and_another_schema(
    address: str, tmp_path: Path
) -> None:
    """In the middle of the first topic a column is added, then one changes its type."""
    make_topics(address, {"a": 2, "b": 2, "c": 2, "results": 1, "aside": 1})
    rows: dict[str, list[Row]] = {}
    bad: dict[str, dict[tuple[int, int], bytes | None]] = {name: {} for name in "abc"}
    junk = [b"", b"{", b"[]", b"\xff\xfe", b'{"ts": "yesterday", "k": 1}', None]
    for seed, name in enumerate("abc"):
        values: list[bytes | None] = []
        rows[name] = []
        for ts, k, number in _rows(seed, 120):
            value: dict[str, Any] = {"ts": _iso(ts), "k": k, "v": 0.5}
            if number >= 40:
                value["added"] = {"of": "late"}
            if name == "a" and number >= 80 and number % 2:
                value["v"] = "half"  # it was a number
            place = (len(values) % 2, len(values) // 2)
            text = json.dumps(value).encode()
            if value["v"] == "half":
                bad[name][place] = text
            else:
                rows[name].append((ts, k, place[0] * 1000 + place[1]))
            values.append(text)
            if number % 20 == 7:
                worse = junk[number // 20]
                bad[name][len(values) % 2, len(values) // 2] = worse
                values.append(worse)
        send(address, name, values, partitions=2)
    read = {"schema": "ts TIMESTAMP, k BIGINT, v DOUBLE", "keep": ["partition", "offset"]}
    job = {
        "address": address,
        "folder": str(tmp_path),
        "streams": {name: {"topic": name, **read} for name in "abc"},
        "select": [f"{name}.partition * 1000 + {name}.offset AS {name}_place" for name in "abc"],
        "most": 30,
    }
    assert _run(job, kill_after=1) == {}
    counted = _run(job)
    sent = {name: len(rows[name]) + len(bad[name]) for name in "abc"}
    assert counted["rows"] == sent, "offsets go on where the last commit was"
    assert counted["malformed"] == {name: len(bad[name]) for name in "abc"}
    assert not counted["null_times"] and not counted["null_keys"] and not counted["late"]
    found = [tuple(value[f"{n}_place"] for n in "abc") for value in received(address, "results")]
    answer = _joined(rows)
    assert set(found) == set(answer) and max(answer.values()) == 1 and len(answer) > 100
    aside = received(address, "aside")
    assert {value["reason"] for value in aside} == {"malformed"}
    for name in "abc":
        marks = [v["malformed"] for v in aside if v["stream"] == name]
        told = {(m["partition"], m["offset"]): m.get("value") for m in marks}
        wanted = {
            place: None if value is None else base64.b64encode(value).decode()
            for place, value in bad[name].items()
        }
        assert told == wanted
        assert all(m["problem"] and m["topic"] == name for m in marks)


_AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "k", "type": "long"},
        {"name": "id", "type": "long"},
    ],
}


def _long(value: int) -> bytes:
    """A number as Avro writes it."""
    value, found = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _ipc(rows: Sequence[Row], key: pa.DataType) -> bytes:
    columns = {
        "ts": pa.array([ts for ts, _, _ in rows], pa.timestamp("us", "UTC")),
        "k": pa.array([k for _, k, _ in rows]).cast(key),
        "id": pa.array([i for _, _, i in rows], pa.int64()),
    }
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def test_oracle_avro_with_and_without_numbers_of_schemas_and_arrow(
    address: str, tmp_path: Path
) -> None:
    """The second topic goes on with a wider schema, and then with one that nobody knows."""
    topics = ("bare", "numbered", "batches")
    make_topics(address, dict.fromkeys(topics, 1))
    a, b, c = (_rows(seed, 90) for seed in (11, 12, 13))
    bare = [b"".join(map(_long, row)) for row in a]
    send(address, "bare", [*bare[:30], b"\x02", b"", None, *bare[30:]])
    wider = {**_AVRO, "fields": [*_AVRO["fields"], {"name": "note", "type": "string"}]}
    numbered = [
        b"\0" + (7).to_bytes(4, "big") + b"".join(map(_long, row))
        if number < 45
        else b"\0" + (8).to_bytes(4, "big") + b"".join(map(_long, row)) + b"\x04hi"
        for number, row in enumerate(b)
    ]
    unknown = b"\0" + (9).to_bytes(4, "big") + b"anything"
    send(address, "numbered", [*numbered, unknown, b"\0\0", None])
    narrow, texts = _ipc(c[:40], pa.int32()), _ipc(c[40:50], pa.string())
    send(address, "batches", [narrow, texts, b"no stream", narrow[:-20], _ipc(c[50:], pa.int64())])
    job = {
        "address": address,
        "folder": str(tmp_path),
        "streams": {
            "a": {"topic": "bare", "format": "avro", "schema": json.dumps(_AVRO)},
            "b": {
                "topic": "numbered",
                "format": "avro",
                "schema": json.dumps(_AVRO),
                "writers": {7: json.dumps(_AVRO), 8: json.dumps(wider)},
            },
            "c": {
                "topic": "batches",
                "format": "arrow",
                "schema": "ts TIMESTAMP, k BIGINT, id BIGINT",
            },
        },
        "select": ["a.id AS a_id", "b.id AS b_id", "c.id AS c_id"],
        "most": 100,
    }
    before = len(received(address, "results"))
    counted = _run(job)
    good = {"a": a, "b": b, "c": c[:40] + c[50:]}
    assert counted["malformed"] == {"a": 3, "b": 3, "c": 3}
    assert counted["rows"] == {name: len(rows) + 3 for name, rows in good.items()}
    values = received(address, "results")[before:]
    found = {(v["a_id"], v["b_id"], v["c_id"]) for v in values}
    answer = _joined(good)
    assert found == set(answer) and max(answer.values()) == 1 and len(answer) > 100
