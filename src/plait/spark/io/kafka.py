"""Decode Kafka values into rows; mark those that cannot be decoded.

Spark's source has a row per message, with the value as bytes. Spark's own functions decode JSON and
Avro. Arrow values, each of which is a batch of rows, are decoded in Python (`arrow_values`). A
value that cannot be decoded is not dropped: the column `_malformed`
(`plait.groups.routing.malformed`), null in proper rows, has its place, its bytes and the problem. A
join of Plait counts such rows and sets them aside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # the name everybody uses
from pyspark.sql.types import StringType, StructField, StructType

from plait.errors import DuplicateName, SourceError, UnknownColumn, did_you_mean
from plait.groups.routing.malformed import MARK, PLACE
from plait.spark.io.arrow_values import unpacked
from plait.spark.join.instants import named_column

Format = Literal["json", "avro", "arrow"]

_PARSED, _PROBLEM, _BAD = "__plait_parsed", "__plait_problem", "__plait_bad"
_NO_VALUE = "no value"
_HEADER = 5
"""Bytes before an Avro value that names its schema: a zero, and the number of the schema."""


def from_kafka(
    frame: DataFrame,
    schema: str | StructType,
    format: Format = "json",
    *,
    keep: Sequence[str] = (),
    writers: Mapping[int, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Decode the values of Kafka messages into columns; mark those that cannot be decoded.

        messages = spark.readStream.format("kafka")....load()
        trades = plait.spark.from_kafka(messages, "ts TIMESTAMP, sym STRING, price DOUBLE")

    `schema` is a schema of Spark, for JSON objects and for Arrow (each value an IPC stream of
    record batches), or for Avro the JSON of a record. `keep` names columns of the source that rows
    keep: `key`, `timestamp`, `partition`, `offset` and so on. `options` go to Spark's `from_json`
    or `from_avro`.

    A bare Avro value does not tell by which schema it was written; it is read as one of `schema`.
    With `writers`, schemas by number, each value begins as schema registries have it, with a zero
    byte and the number of its schema, and is turned into `schema` by Avro's rules.

    A column that a value lacks is null, and what a value has beyond the schema is left out. A value
    that cannot be read, or has a column of another type, becomes a row of nulls whose column
    `_malformed` tells where it is, what it is and what is wrong. Joins of Plait do not join such
    rows: they are counted in `Running.progress`, and come with `to_df(late=True)`.
    """
    columns = set(frame.columns)
    if missing := [name for name in PLACE if name not in columns]:
        raise SourceError(
            f"this DataFrame has no column {missing[0]!r}, as messages of Kafka have",
            remedy="give what spark.readStream.format('kafka') loads, with all its columns",
        )
    for name in keep:
        if name not in columns:
            raise UnknownColumn(
                f"messages of Kafka have no column {name!r}", remedy=did_you_mean(name, columns)
            )
    if writers is not None and format != "avro":
        raise SourceError(f"writers are schemas of Avro, and the format is {format}")
    if format == "arrow":
        found = _named(frame, schema)
        _check_names(found, keep)
        return unpacked(frame, found, keep)
    chosen = {"mode": "PERMISSIVE", **(options or {})}
    if format == "json":
        parsed, problem = _json(F.col("value"), _named(frame, schema), chosen)
    elif format == "avro":
        parsed, problem = _avro(F.col("value"), schema, writers, chosen)
    else:
        raise SourceError(
            f"there is no format {format!r}", remedy=did_you_mean(format, get_args(Format))
        )
    # One step after the other: Spark then parses each value once.
    frame = frame.withColumn(_PARSED, parsed).withColumn(_PROBLEM, problem)
    fields = _fields(frame.schema[_PARSED].dataType)
    _check_names(fields, keep)
    proper = F.col(_PROBLEM).isNull()
    values = {f.name: F.col(_PARSED).getField(f.name) for f in fields}
    values |= {name: named_column(name) for name in keep}
    rows = [F.when(proper, value).alias(name) for name, value in values.items()]
    place = [F.col(name) for name in PLACE]
    mark = F.struct(*place, F.col(_PROBLEM).alias("problem"))
    return frame.select(*rows, F.when(~proper, mark).alias(MARK))


def _named(frame: DataFrame, schema: str | StructType) -> list[StructField]:
    """The columns of a schema."""
    if isinstance(schema, StructType):
        return list(schema.fields)
    return list(frame.sparkSession.createDataFrame([], schema).schema.fields)


def _fields(type_: object) -> list[StructField]:
    assert isinstance(type_, StructType), "values are read as structs"
    return [field for field in type_.fields if field.name != _BAD]


def _check_names(fields: Sequence[StructField], keep: Sequence[str]) -> None:
    names = [field.name for field in fields]
    for name in (*keep, MARK):
        if name in names:
            raise DuplicateName(
                f"values have a column {name!r}, and so have messages",
                remedy="give the one of the message another name before, with withColumnRenamed",
            )


def _json(
    value: Column, fields: Sequence[StructField], options: Mapping[str, str]
) -> tuple[Column, Column]:
    """Columns with the decoded struct, and with the problem of a value, null if it has none."""
    text = value.cast("string")
    read = StructType([*fields, StructField(_BAD, StringType())])
    parsed = F.from_json(text, read, {**options, "columnNameOfCorruptRecord": _BAD})
    found = F.col(_PARSED)
    problem = (
        F.when(value.isNull(), _NO_VALUE)
        .when(~F.is_valid_utf8(text), "no text in UTF-8")
        .when(found.isNull() | found.getField(_BAD).isNotNull(), "no JSON object of this schema")
    )
    return parsed, problem


def _avro(
    value: Column,
    schema: str | StructType,
    writers: Mapping[int, str] | None,
    options: Mapping[str, str],
) -> tuple[Column, Column]:
    """The same for Avro.

    Spark turns a value that it cannot decode into nulls. So the reader's schema gets one more
    column, whose default is not null: only a value that was not decoded has null there.
    """
    # Spark's module says what is missing when it is called, not before.
    from pyspark.sql.avro.functions import from_avro

    reader = _record(schema)
    proof = {"name": _BAD, "type": "boolean", "default": True}
    evolved = {**reader, "fields": [*reader["fields"], proof]}
    options = {**options, "avroSchema": json.dumps(evolved)}
    found = F.col(_PARSED)
    unread = found.isNull() | found.getField(_BAD).isNull()
    problem = F.when(value.isNull(), _NO_VALUE)
    if writers is None:
        parsed = from_avro(value, json.dumps(reader), dict(options))
        return parsed, problem.when(unread, "no Avro record of this schema")
    if not writers:
        raise SourceError("there are no writers", remedy="give at least one schema by its number")
    header = F.hex(F.substring(value, 1, _HEADER))
    body = F.substring(value, _HEADER + 1, 2**31 - 1)
    numbers = {number: f"{number:010X}" for number in sorted(writers)}
    branches = [
        F.when(header == text, from_avro(body, json.dumps(_record(writers[n])), dict(options)))
        for n, text in numbers.items()
    ]
    problem = problem.when(
        ~header.isin(*numbers.values()),
        F.concat(F.lit("no schema has the number of its first bytes: "), header),
    )
    return F.coalesce(*branches), problem.when(unread, "no Avro record of its schema")


def _record(schema: str | StructType) -> dict[str, Any]:
    """Parse the schema of an Avro record."""
    try:
        found = json.loads(schema) if isinstance(schema, str) else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("fields"), list):
        raise SourceError(
            "this is no schema of an Avro record",
            remedy='give its JSON: {"type": "record", "name": ..., "fields": [...]}',
        )
    return found
