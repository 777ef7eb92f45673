"""`plait.sql`: ask in SQL, over named tables or over those of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plait.api.runnable import RunnableQuestion
from plait.api.sources import dialect_of, source_schema, unlimited_delays, watermarks_of
from plait.errors import SourceError
from plait.plan.routed import Routed
from plait.query.durations import Duration
from plait.query.query import Lateness, Query
from plait.query.streams import ahead_of, idle_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from plait.adapt.policy import PlanPolicy
    from plait.groups.balance.policy import BalancePolicy
    from plait.optimize.budget import Budget
    from plait.optimize.statistics import Statistics


@dataclass(frozen=True, slots=True, repr=False)
class Sql(RunnableQuestion):
    """A join written in SQL. Get one with `plait.sql`."""

    query: Query
    sources: Mapping[str, Any]
    """The sources by stream name; two streams may be one table."""
    limits: Budget | None = None
    known: Statistics | None = None
    router: Routed | None = None
    enforced: bool = True
    adaptive: PlanPolicy | bool | None = None
    balanced: BalancePolicy | bool = True

    def __repr__(self) -> str:
        selected = ", ".join(output.name for output in self.query.select)
        return f"Sql({selected} from {', '.join(self.query.names)})"

    def build(self) -> Query:
        """Return the question as a checked value."""
        return self.query


def sql(
    tables: Mapping[str, Any] | SparkSession,
    text: str,
    *,
    time: Mapping[str, str] | None = None,
    watermark: Duration | Mapping[str, Duration] | None = None,
    idle: Duration | Mapping[str, Duration] | None = None,
    ahead: Duration | Mapping[str, Duration] | None = None,
    lateness: Lateness = "own",
) -> Sql:
    """Begin a join in SQL, over named tables or over the tables and views of a Spark session.

    `time` names the event-time column, `watermark` how late rows may come, `idle` how long a
    silent stream holds the others back, `ahead` how far rows may be ahead of the clock; each for
    all streams, or by stream or table. With `lateness="least"` rows are late by the least
    watermark of all streams, as in Spark.
    """
    from plait.query.sql.statement import parse_statement

    named = tables if isinstance(tables, Mapping) else _SessionTables(tables)
    dialect = dialect_of(named.values() if isinstance(tables, Mapping) else (tables,))
    query, origin = parse_statement(text, _Schemas(named), time, watermark, lateness, dialect)
    sources = {stream: named[table] for stream, table in origin.items()}
    if watermark is None or isinstance(watermark, Mapping):
        said = set(watermark or ())
        silent = {s: f for s, f in sources.items() if not {s, origin[s]} & said}
        came = {(s, column): delay for s, (column, delay) in watermarks_of(silent).items()}
        endless = unlimited_delays(silent)
        streams = (
            replace(s, delay=came.get((s.name, s.time), endless.get(s.name, s.delay)))
            for s in query.streams
        )
        query = replace(query, streams=tuple(streams))
    known = sorted({*origin, *origin.values()})
    idles, limits = idle_of(known, idle), ahead_of(known, ahead)
    streams = (
        replace(s, idle=_own(idles, s.name, origin), ahead=_own(limits, s.name, origin))
        for s in query.streams
    )
    return Sql(replace(query, streams=tuple(streams)), sources)


def _own(given: Mapping[str, int], stream: str, origin: Mapping[str, str]) -> int | None:
    """Look up what was said of a stream, or else of its table."""
    return given.get(stream, given.get(origin[stream]))


class _Schemas(Mapping[str, pa.Schema]):
    """The schemas of tables, looked up when they are asked for."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> pa.Schema:
        return source_schema(name, self._tables[name])

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
