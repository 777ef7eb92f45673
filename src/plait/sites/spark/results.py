"""Results and rows set aside in the mail of sites, as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # the name everybody uses

from plait.groups.routing.rows import decode_rows
from plait.node.batch import Aside
from plait.query.query import Query
from plait.sites.spark.mail import ASIDE, MAIL, RESULTS, Letter, checked
from plait.spark.join.aside import LATE_COLUMN, aside_columns, aside_schema, nested, padded_batch
from plait.spark.join.instants import with_instants, with_micros
from plait.spark.join.schemas import spark_schema
from plait.spark.join.source_types import read_of, with_source_types
from plait.spark.join.worker import settle


def results_in(
    mail: DataFrame,
    query: Query,
    question: str,
    late: bool | str,
    frames: Mapping[str, DataFrame],
) -> DataFrame:
    """The results in the mail of an application, and rows set aside if they are asked for."""
    boxes = [RESULTS, ASIDE] if late else [RESULTS]
    meant = pa.schema([*query.schema, *(aside_schema(query) if late else ())])
    schema = pa.schema([f.with_type(with_micros(f.type)) for f in meant])
    packed = mail.where(F.col("box").isin(boxes)).select(MAIL.names)
    rows = packed.mapInArrow(_unpack(query, question, schema), spark_schema(schema))
    rows = with_instants(rows, meant)
    rows = with_source_types(rows, read_of(query, bool(late)), frames)
    if not late:
        return rows
    return nested(rows, query, late if isinstance(late, str) else LATE_COLUMN)


def _unpack(
    query: Query, question: str, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for row in batch.to_pylist():
                letter = Letter(*(row[name] for name in Letter._fields))
                for rows in decode_rows(checked(question, letter)):
                    if row["box"] == ASIDE:
                        columns = aside_columns(query, Aside(row["number"], row["origin"], rows))
                    else:
                        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
                    yield padded_batch(columns, rows.num_rows, schema)

    return unpack
