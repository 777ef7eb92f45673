"""`plait.join`: ask by naming streams and adding conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from plait.api.runnable import RunnableQuestion
from plait.api.sources import dialect_of, readable, source_schema, unlimited_delays, watermarks_of
from plait.errors import QueryError
from plait.plan.routed import Routed
from plait.query import builder
from plait.query.streams import fields_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from plait.adapt.policy import PlanPolicy
    from plait.groups.balance.policy import BalancePolicy
    from plait.optimize.budget import Budget
    from plait.optimize.statistics import Statistics


@dataclass(frozen=True, slots=True, repr=False)
class Join(RunnableQuestion, builder.JoinBuilder):
    """A join of named streams. Start one with `plait.join`, then add conditions and outputs."""

    limits: Budget | None = None
    known: Statistics | None = None
    router: Routed | None = None
    enforced: bool = True
    adaptive: PlanPolicy | bool | None = None
    balanced: BalancePolicy | bool = True

    def __repr__(self) -> str:
        conditions = " AND ".join(self.conditions) or "nothing yet"
        return f"Join({', '.join(self.names)} on {conditions})"

    def on(self, *conditions: str | Column) -> Self:
        """Add join conditions: equalities, intervals between event times, anything boolean.

        They are texts, or Columns of Spark: `on(F.col("a.k") == F.col("b.k"))`. The name of a
        column that several streams have, `on("sym")`, makes them equal in it.
        """
        return builder.JoinBuilder.on(self, *map(_text, conditions))

    def where(self, *conditions: str | Column) -> Self:
        """Add further conditions; in an inner join they mean the same as with `on`."""
        return self.on(*conditions)

    def select(self, *outputs: str | Column) -> Self:
        """Say what the result's columns are: `select("trades.sym", "bid * 2 AS double")`.

        They are texts, or Columns of Spark: `select(F.col("trades.sym").alias("symbol"))`.
        """
        return builder.JoinBuilder.select(self, *map(_text, outputs))


def join(**sources: Any) -> Join:
    """Begin a join of streams by name.

    Sources are Arrow tables, schemas or readers, pandas or polars DataFrames, relations of DuckDB
    and whatever else exports itself to Arrow, paths of Parquet, CSV or JSON-lines files, or
    DataFrames of Spark.

    >>> import pyarrow as pa
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
    sources = {name: readable(source) for name, source in sources.items()}
    fields = {name: fields_of(source_schema(name, source)) for name, source in sources.items()}
    came = watermarks_of(sources)
    return Join(
        dict(sources),
        fields,
        times={name: column for name, (column, _) in came.items()},
        came={name: {column: delay} for name, (column, delay) in came.items()},
        unsaid=unlimited_delays(sources),
        dialect=dialect_of(sources.values()),
    )


def _text(given: Any) -> Any:
    """Write a Column of Spark as text; leave everything else as it is."""
    if not type(given).__module__.startswith("pyspark.sql"):
        return given
    from plait.spark.join.columns import column_text

    return column_text(given)
