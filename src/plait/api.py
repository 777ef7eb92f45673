"""What users touch: a join or a SQL text that can be explained, run here, or run on Spark.

The question itself is built in `plait.query`; this module adds what can be done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plait.errors import QueryError, SourceError
from plait.plan.explain import explain
from plait.plan.jtree import Node, mjoin, parse_shape
from plait.query import builder
from plait.query.durations import Duration
from plait.query.query import Query
from plait.query.streams import fields_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from plait.runtime.run import Results


class _Runnable:
    """What can be done with a question and its sources."""

    __slots__ = ()

    query: Query
    sources: Mapping[str, Any]

    def explain(self, plan: Node | str | None = None) -> str:
        """The question and the plan that answers it, as a text for people."""
        return explain(self.query, _plan(self.query, plan))

    def run(self, **options: Any) -> Results:
        """The results over tables or batches in this process; see `plait.runtime.run.run`."""
        from plait.runtime.run import run

        return run(self, **options)

    def to_df(self, *, plan: Node | str | None = None, processors: int | None = None) -> DataFrame:
        """The results as a DataFrame, streaming if the sources are; any Spark sink takes it."""
        from plait.runtime.spark.frame import results

        query = self.query
        for name, source in self.sources.items():
            if not is_spark_frame(source):
                raise SourceError(
                    f"the source of {name!r} is a {type(source).__name__}, not a DataFrame",
                    remedy="give Spark DataFrames, or use run() for tables",
                )
        return results(query, self.sources, _plan(query, plan), processors)


@dataclass(frozen=True, slots=True)
class Join(_Runnable, builder.JoinBuilder):
    """A join in the making that can be run. Start one with `plait.join`."""


@dataclass(frozen=True, slots=True)
class Sql(_Runnable, builder.SqlQuery):
    """A join asked in SQL that can be run. Start one with `plait.sql`."""


def join(**sources: Any) -> Join:
    """Begin a join of streams by name: Arrow tables, schemas or readers, or Spark DataFrames.

    >>> row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    >>> asked = join(a=row, b=row).on("a.k = b.k").within("5 seconds").select("a.k")
    >>> print(asked.explain().splitlines()[0])
    query
    """
    if len(sources) < 2:
        raise QueryError(
            f"a join needs at least two streams, not {len(sources)}",
            remedy="write for example join(trades=..., quotes=...)",
        )
    fields = {name: fields_of(_schema(source)) for name, source in sources.items()}
    return Join(dict(sources), fields, delays=_delays(sources))


def sql(
    tables: Mapping[str, Any] | SparkSession,
    text: str,
    *,
    time: Mapping[str, str] | None = None,
    watermark: Duration | Mapping[str, Duration] | None = None,
) -> Sql:
    """A join asked in SQL, over named tables or over the tables and views of a Spark session."""
    from plait.query.sql.statement import parse_statement

    named = tables if isinstance(tables, Mapping) else _SessionTables(tables)
    query, origin = parse_statement(text, _Schemas(named), time, watermark)
    return Sql(query, {stream: named[table] for stream, table in origin.items()})


def is_spark_frame(source: object) -> bool:
    """Whether a source is a DataFrame of Spark, classic or Connect, without importing it."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "mapInArrow")


def _schema(source: Any) -> pa.Schema:
    if is_spark_frame(source):
        from plait.runtime.spark.schemas import arrow_schema

        return arrow_schema(source)
    return builder.schema_of(source)


def _delays(sources: Mapping[str, Any]) -> dict[str, int]:
    """The delays of the watermarks that DataFrames come with."""
    delays = {}
    for name, source in sources.items():
        if is_spark_frame(source):
            from plait.runtime.spark.schemas import watermark_delays

            for delay in watermark_delays(source).values():
                delays[name] = delay
    return delays


def _plan(query: Query, plan: Node | str | None) -> Node:
    if plan is None:
        return mjoin(query)
    return parse_shape(query, plan) if isinstance(plan, str) else plan


class _Schemas(Mapping[str, pa.Schema]):
    """The schemas of tables, looked up when they are asked for."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> pa.Schema:
        return _schema(self._tables[name])

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


class _SessionTables(Mapping[str, Any]):
    """The tables and views of a Spark session, as DataFrames."""

    def __init__(self, session: SparkSession) -> None:
        if not hasattr(session, "catalog"):
            raise SourceError(
                f"a {type(session).__name__} has no tables",
                remedy="give a SparkSession, or a mapping from names to tables",
            )
        self._session = session

    def __getitem__(self, name: str) -> Any:
        return self._session.table(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._session.catalog.tableExists(name)

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in self._session.catalog.listTables())

    def __len__(self) -> int:
        return len(self._session.catalog.listTables())
