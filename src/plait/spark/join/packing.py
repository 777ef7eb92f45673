"""The first stage of a join: pack the rows of each stream into packets, one per processor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # the name everybody uses

from plait.groups.routing.malformed import MARK, MARK_TYPE
from plait.groups.routing.packets import CLOCK, Packer, Packet
from plait.query.query import Query, narrowed
from plait.spark.control.directory import Control
from plait.spark.join.instants import named_column
from plait.spark.join.layout import Layout
from plait.spark.join.options import JoinOptions
from plait.spark.join.schemas import conform, is_marked, spark_schema
from plait.spark.join.watermarks import without_watermark
from plait.spark.join.worker import batch_number, settle

_PACKETS = pa.schema(
    [
        ("processor", pa.int32()),
        ("stream", pa.int32()),
        ("rows", pa.int64()),
        ("original", pa.bool_()),
        ("newest", pa.int64()),
        ("null_times", pa.int64()),
        ("ahead", pa.int64()),
        ("null_keys", pa.int64()),
        ("filtered", pa.int64()),
        ("malformed", pa.int64()),
        ("clock", pa.int64()),
        ("reason", pa.string()),
        ("flag", pa.int64()),
        ("table", pa.int64()),
        ("groups", pa.binary()),
        ("body", pa.binary()),
    ]
)


def packed_streams(
    query: Query,
    frames: Mapping[str, DataFrame],
    layout: Layout,
    control: Control,
    options: JoinOptions,
) -> DataFrame:
    """Pack the rows of all streams; the packets say which processor they are for."""
    asked = narrowed(query)
    streams = [
        _packed(asked, s, frames[stream.name], layout, control, options)
        for s, stream in enumerate(asked.streams)
    ]
    packets = reduce(lambda before, more: before.unionAll(more), streams)
    if any(stream.idle is not None for stream in query.streams):
        packets = packets.withColumn("clock", F.unix_millis(_batch_time()))
    return packets


def _packed(
    asked: Query,
    s: int,
    frame: DataFrame,
    layout: Layout,
    control: Control,
    options: JoinOptions,
) -> DataFrame:
    stream, marked = asked.streams[s], is_marked(frame)
    schema = stream.schema.append(pa.field(MARK, MARK_TYPE)) if marked else stream.schema
    rows = without_watermark(frame).select(
        # Spark parses the names once more on its way to Python: plain ones, then.
        [named_column(name).alias(f"c{i}") for i, name in enumerate(schema.names)]
    )
    if clocked := stream.ahead is not None:
        rows = rows.withColumn(CLOCK, F.unix_micros(_batch_time()))
        schema = schema.append(pa.field(CLOCK, pa.int64()))
    packer = Packer(
        query=asked,
        stream=s,
        routing=layout.routing,
        aside=bool(options.late),
        tuning=options.tuning,
        marked=marked,
        clocked=clocked,
    )
    return rows.mapInArrow(_pack(packer, schema, layout.keys, control), spark_schema(_PACKETS))


def _batch_time() -> Column:
    """The time at which Spark began the batch, from its log: the same when it is repeated."""
    # Assumption: batch-time-repeats
    return F.current_timestamp()


def _pack(
    packer: Packer, schema: pa.Schema, keys: tuple[int, ...], control: Control
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs over the record batches of one input partition."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        # Assumption: rows-of-a-batch-repeat
        table = control.table(batch_number())
        here = packer if table is None else replace(packer, routing=packer.routing.at(table))
        for packet in here.pack(conform(batch, schema) for batch in batches):
            yield _row(packet._replace(processor=keys[packet.processor]))

    return pack


def _row(packet: Packet) -> pa.RecordBatch:
    arrays = [pa.array([value], f.type) for value, f in zip(packet, _PACKETS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_PACKETS)
