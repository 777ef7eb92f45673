"""What can be given as a source: how it is read, and what it says of itself.

A source is anything with Arrow columns, the path of a file, or a DataFrame of Spark. Spark is
imported only if a DataFrame of it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from plait.query import builder
from plait.query.dialect import PLAIN, Dialect, zone_named
from plait.query.query import NEVER_LATE


def is_spark_frame(source: object) -> bool:
    """Tell whether a source is a DataFrame of Spark, classic or Connect, without importing it."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "mapInArrow")


def readable(source: Any) -> Any:
    """Return the source itself, or an Arrow table of it if it exports itself as one.

    So do pandas and polars DataFrames and relations of DuckDB. A path is opened.
    """
    if isinstance(source, str | PathLike):
        from plait.local.sources import open_source

        return open_source(str(source))
    known = is_spark_frame(source) or isinstance(getattr(source, "schema", source), pa.Schema)
    return source if known or not hasattr(source, "__arrow_c_stream__") else pa.table(source)


def source_schema(name: str, source: Any) -> pa.Schema:
    if is_spark_frame(source):
        from plait.spark.join.schemas import arrow_schema

        return arrow_schema(source, name)
    return builder.schema_of(source)


def watermarks_of(sources: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Return the column and the delay of the watermark of each DataFrame that comes with one."""
    found = {}
    for name, source in sources.items():
        if is_spark_frame(source):
            from plait.spark.join.watermarks import watermark_delays

            delays = watermark_delays(source)
            if len(delays) == 1:
                found[name] = next(iter(delays.items()))
    return found


def dialect_of(sources: Iterable[Any]) -> Dialect:
    """Return the dialect in which Spark reads SQL over these sources, with its time zone."""
    for source in sources:
        session = source.sparkSession if is_spark_frame(source) else source
        if type(session).__module__.startswith("pyspark.sql") and hasattr(session, "conf"):
            kind = session.conf.get("spark.sql.timestampType", "TIMESTAMP_LTZ")
            zone = zone_named(str(session.conf.get("spark.sql.session.timeZone")))
            ansi = str(session.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"
            from plait.spark.environment.java import writes_shortest

            preserved = session.conf.get("spark.sql.preserveCharVarcharTypeInfo", "false")
            lengths = str(preserved).lower() == "true"
            shortest = writes_shortest(session)
            return Dialect(zone, kind != "TIMESTAMP_NTZ", ansi, shortest, lengths)
    return PLAIN


def unlimited_delays(sources: Mapping[str, Any]) -> dict[str, int]:
    """Give streaming DataFrames the delay that they have without a watermark.

    A join of Spark without a watermark drops no row and keeps everything; so does this one.
    """
    streaming = (
        n for n, source in sources.items() if is_spark_frame(source) and source.isStreaming
    )
    return dict.fromkeys(streaming, NEVER_LATE)
