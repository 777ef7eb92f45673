"""What users touch: a join or a SQL text that can be explained, run here, or run on Spark.

The question itself is built in `plait.query`; this module adds what can be done with it. It is
longer than others because half of it is documentation: what `help(plait.join)` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from plait.errors import PlaitError, PolicyError, QueryError, SourceError
from plait.local.options import BATCH_ROWS, UNDATED_ROWS, LocalOptions, Order
from plait.plan.explain import explain
from plait.plan.jtree import mjoin
from plait.plan.routed import Plan, Routed, routed
from plait.plan.text import Given, read_plan, read_router
from plait.query import builder
from plait.query.dialect import PLAIN, Dialect, zone_named
from plait.query.durations import Duration
from plait.query.query import NEVER_LATE, Lateness, Query
from plait.query.streams import ahead_of, fields_of, idle_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from plait.adapt.policy import PlanPolicy
    from plait.groups.balance.policy import BalancePolicy
    from plait.local.run import Execution, Results
    from plait.optimize.budget import Budget
    from plait.optimize.planning import Planned
    from plait.optimize.statistics import Statistics


_OVERDRAFT = 0.05
"""How much more than its memory a query that changes its plan may hold for a moment."""


class _Runnable:
    """What can be done with a question and its sources."""

    __slots__ = ()

    query: Query
    sources: Mapping[str, Any]
    limits: Budget | None
    known: Statistics | None
    router: Routed | None
    enforced: bool
    adaptive: PlanPolicy | bool | None
    balanced: BalancePolicy | bool

    def adapt(self, policy: PlanPolicy | bool = True) -> Self:
        """Say whether the plan may change while it runs, and by which policy.

        By default it may, by the usual policy, unless a plan or a router is given for the run:
        then it is kept. `adapt(True)` lets the run begin with that plan and change it.
        `adapt(False)` keeps every plan; `adapt(plait.PlanPolicy(margin=0.5))` asks for more gain.
        """
        from plait.adapt.policy import PlanPolicy

        if not isinstance(policy, PlanPolicy | bool):
            raise PolicyError(
                f"a {type(policy).__name__} is no policy",
                remedy="give True, False or a plait.PlanPolicy",
            )
        return self._with(adaptive=policy)

    def balance(self, policy: BalancePolicy | bool = True) -> Self:
        """Say whether partition groups may move between processors, and by which policy.

        By default they may: a processor on Spark that has more to do than the others gives some of
        its groups away, while the query runs. `balance(False)` leaves them where they are;
        `balance(plait.BalancePolicy(margin=0.5))` moves them only if it helps a lot.
        """
        from plait.groups.balance.policy import BalancePolicy

        if not isinstance(policy, BalancePolicy | bool):
            raise PolicyError(
                f"a {type(policy).__name__} is no policy for balancing",
                remedy="give True, False or a plait.BalancePolicy",
            )
        return self._with(balanced=policy)

    def _balancing(self) -> BalancePolicy | None:
        """The policy by which groups move, if they do."""
        from plait.groups.balance.policy import BalancePolicy

        if isinstance(self.balanced, BalancePolicy):
            return self.balanced
        return BalancePolicy() if self.balanced else None

    def _policy(self, plan: object) -> PlanPolicy | None:
        """The policy of a run for which this plan was given."""
        from plait.adapt.policy import PlanPolicy

        if isinstance(self.adaptive, PlanPolicy):
            return self.adaptive
        if self.adaptive is None:
            return PlanPolicy() if plan is None and self.router is None else None
        return PlanPolicy() if self.adaptive else None

    def engine(self, name: str, **options: Any) -> Self:
        """Say what runs it: `engine("teddies", policy="lottery")`, `engine("eddies")` or "tree".

        The options are the fields of `plait.plan.routed.Teddies` and `Eddies`; the policy may also
        stand in the name, as on the command line: `engine("teddies (lottery)")`.
        """
        if name == "tree" and not options:
            return self._with(router=None)
        return self._with(router=routed(name, **options) if options else read_router(name))

    def budget(
        self,
        *,
        cpu: float | None = None,
        memory: str | float | None = None,
        enforce: bool = True,
    ) -> Self:
        """Say how much there is: `budget(cpu=0.8, memory="2 GB")`; the plan is chosen to fit.

        While it runs, the plan is replaced when it no longer fits, unless `adapt(False)`. `run()`
        also holds it to the memory: if the states outgrow it nevertheless, the run ends in
        MemoryExceeded. With `enforce=False`, and on Spark, the budget is for choosing plans only.
        CPU is never enforced: a plan that needs more is slower, not wrong.
        """
        from plait.optimize.budget import Budget

        return self._with(limits=Budget.of(cpu, memory), enforced=enforce)

    def statistics(self, known: Statistics | Mapping[str, Any]) -> Self:
        """Say what is known of the streams: `statistics({"rates": {"trades": 1000}})`."""
        from plait.optimize.statistics import Statistics, read_statistics, resolve

        found = known if isinstance(known, Statistics) else read_statistics(known)
        resolve(self.query, found)
        return self._with(known=found)

    def _with(self, **changes: Any) -> Self:
        assert isinstance(self, Join | Sql)
        return replace(self, **changes)

    @property
    def planned(self) -> Planned:
        """The plan chosen from what is known, within the budget, with everything about it."""
        from plait.optimize.costs import load
        from plait.optimize.planning import plan_query

        return plan_query(self.query, self.known, self.limits, load())

    def plan(self, plan: Given = None) -> Plan:
        """The plan that answers the question: the one given, or else the one that is chosen.

        A plan is given as the shape of a tree, "((a b) c)", as "mjoin", as a router, "teddies" or
        "eddies (random)", as the JSON that `plait explain --json` writes, or as a value that this
        method returned. Without one it is the router that `engine` named, or the best plan within
        the budget or by the statistics, or else one mjoin.

        >>> row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
        >>> asked = join(a=row, b=row, c=row).on("a.k = b.k", "b.k = c.k").within("5 seconds")
        >>> str(asked.plan()), str(asked.plan("((a b) c)")), str(asked.plan("teddies"))
        ('(a b c)', '((a b) c)', 'teddies (ordered)')
        """
        return read_plan(self.query, plan, self._choice)

    def _choice(self, query: Query) -> Plan:
        if self.router is not None:
            return self.router
        return self.planned.require() if self._informed else mjoin(query)

    @property
    def _informed(self) -> bool:
        """Whether anything is known by which a plan can be chosen."""
        return self.limits is not None or self.known is not None

    def explain(self, plan: Given = None, *, processors: int | None = None) -> str:
        """The question and the plan that answers it, as a text for people.

        With a budget or statistics, also what the plan is estimated to need, and why this one.
        With DataFrames of Spark, or a number of processors, also how rows are divided among them.
        """
        text = self._explained(plan)
        count = processors
        if count is None and (frame := next(filter(is_spark_frame, self.sources.values()), None)):
            from plait.spark.environment.partitions import processor_count

            count = processor_count(frame.sparkSession)
        if count is None:
            return text
        from plait.groups.routing.explain import explain_routing
        from plait.groups.routing.routing import route

        return f"{text}\n\n{explain_routing(self.query, route(self.query.graph, count))}"

    def _repr_html_(self) -> str:
        """What notebooks show: the plan as a picture, and the explanation.

        >>> row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
        >>> asked = join(a=row, b=row).on("a.k = b.k").within("5 seconds")
        >>> asked._repr_html_()[:4], join(a=row, b=row)._repr_html_()[:5]
        ('<svg', '<pre>')
        """
        from html import escape

        from plait.plan.picture import plan_svg

        try:
            return f"{plan_svg(self.plan())}<pre>{escape(self.explain())}</pre>"
        except PlaitError as error:  # a question in the making says what it still lacks
            return f"<pre>{escape(str(error))}</pre>"

    def _explained(self, plan: Given) -> str:
        if plan is None and self.router is None and self._informed:
            return self.planned.explain()
        return explain(self.query, self.plan(plan))

    def run(
        self,
        *,
        plan: Given = None,
        order: Order = "event-time",
        batch_rows: int = BATCH_ROWS,
        batch_seconds: float | None = None,
        undated_rows: int = UNDATED_ROWS,
        memory_limit: int | None = None,
    ) -> Results:
        """The results over tables, batches or files, in this process.

        Rows come in the order of their event times, or as they stand with `order="file"`, in
        batches of `batch_rows` rows or `batch_seconds` of event time; up to `undated_rows` rows
        without a time are kept for the report. `plan` is "((a b) c)", "mjoin", "teddies" or a plan
        as a value. Beyond `memory_limit` bytes of states it ends in MemoryExceeded.
        """
        from plait.local.run import run

        options = LocalOptions(
            plan=plan,
            order=order,
            batch_rows=batch_rows,
            batch_seconds=batch_seconds,
            undated_rows=undated_rows,
            memory_limit=memory_limit,
        )
        return run(self.query, self.sources, self._local_options(options))

    def start(
        self,
        *,
        plan: Given = None,
        order: Order = "event-time",
        batch_rows: int = BATCH_ROWS,
        batch_seconds: float | None = None,
        undated_rows: int = UNDATED_ROWS,
        memory_limit: int | None = None,
        late: Callable[[str, pa.Table], None] | None = None,
        seed: int | None = None,
    ) -> Execution:
        """A run in this process whose results are taken as they are found.

        The options are those of `run`, and `late`, a function that is handed the late rows of a
        stream, and `seed`, with which plans that draw at random begin.

        >>> at = pa.array([0, 1_000_000], pa.timestamp("us"))
        >>> rows = pa.table({"k": [1, 2], "ts": at})
        >>> asked = join(a=rows, b=rows).on("a.k = b.k").within("5 seconds").select("a.k")
        >>> under_way = asked.start(batch_rows=2)
        >>> [batch.to_pydict() for batch in under_way.results()], under_way.rows
        ([{'k': [1]}, {'k': [2]}], 4)
        """
        from plait.local.run import Execution

        options = LocalOptions(
            plan=plan,
            order=order,
            batch_rows=batch_rows,
            batch_seconds=batch_seconds,
            undated_rows=undated_rows,
            memory_limit=memory_limit,
            seed=seed,
        )
        return Execution(self.query, self.sources, self._local_options(options), late=late)

    def _local_options(self, options: LocalOptions) -> LocalOptions:
        """Add the plan, the policy and the limits that the question has."""
        policy, limit = self._policy(options.plan), options.memory_limit
        memory = None if self.limits is None else self.limits.memory
        if limit is None and self.enforced and memory is not None:
            # Changing plans needs a moment in which the limit is exceeded a little.
            limit = int(memory * (1.0 if policy is None else 1 + _OVERDRAFT))
        plan = self.plan() if options.plan is None else options.plan
        return replace(options, plan=plan, policy=policy, budget=self.limits, memory_limit=limit)

    def to_df(
        self,
        *,
        plan: Given = None,
        processors: int | None = None,
        late: bool | str = False,
        checkpoint: str | PathLike[str] | None = None,
        name: str | None = None,
        upgrade: str | None = None,
    ) -> DataFrame:
        """The results as a DataFrame, streaming if the sources are; any Spark sink takes it.

        With `late=True` (or a name) it has one more column, a struct that is null in results. In
        the other rows only it is set: a row of a stream that was late or lacked its event time or
        key, and the reason. `plait.spark.each_batch` tells them apart.

        With `checkpoint`, the location that the query will be started with, it is refused at once
        if it is no checkpoint or that of another query, instead of when the query runs. Where a
        query could go on with a question that has changed, the error says how: by `plait upgrade`
        on the command line, or with the code of this change as `upgrade`.

        A join over the results of another join needs a `name`, for `Running.progress`.
        """
        return self._frame(plan, processors, late, checkpoint, name, upgrade)

    def write_delta(
        self,
        table: str | PathLike[str],
        *,
        checkpoint: str | PathLike[str],
        plan: Given = None,
        processors: int | None = None,
        late: bool | str = False,
        name: str | None = None,
        upgrade: str | None = None,
        query_name: str | None = None,
        **trigger: Any,
    ) -> StreamingQuery:
        """Start a query that adds its results to a Delta table, each exactly once.

            query = q.write_delta("/data/matches", checkpoint="/data/check", availableNow=True)

        Processors write the files of the table themselves, and for each batch the driver adds them
        to the table's log: no row of a result passes through Spark. The table is made if it is not
        there; one with another schema is refused. What is left of batches that failed is never
        seen; `plait.spark.vacuum` removes it.

        `trigger` is what Spark's `trigger` takes, and `query_name` what its `queryName` does; the
        other options are those of `to_df`. With `late`, rows that are set aside are in the table
        too. Credentials for a table in an object store come from the environment of the driver and
        the executors, as for `deltalake`.
        """
        from plait.groups.routing.packets import lean
        from plait.spark.io.delta_table import DeltaCommits, check_delta, create_delta
        from plait.spark.io.write_delta import start_delta, table_place, table_schema
        from plait.spark.join.aside import late_column
        from plait.spark.join.schemas import is_marked
        from plait.spark.join.source_types import check_plain, read_of

        self._check_frames()
        if static := [n for n, s in self.sources.items() if not s.isStreaming]:
            raise SourceError(
                f"{static[0]!r} is a static DataFrame, and write_delta writes batches of streams",
                remedy="use to_df() and write it with Spark, or run() and write_deltalake",
            )
        place = table_place(fspath(table))
        small = lean(self.query)
        check_plain(read_of(small, bool(late)), self.sources, "a Delta table")
        malformed = any(map(is_marked, self.sources.values()))
        schema = table_schema(small, late_column(small, late), malformed)
        there = check_delta(place, schema)
        files = self._frame(plan, processors, late, checkpoint, name, upgrade, place)
        if not there:
            create_delta(place, schema)
        commits = DeltaCommits(place, schema)
        return start_delta(files, commits, fspath(checkpoint), query_name, trigger)

    def _check_frames(self) -> None:
        """Refuse sources that are no DataFrames of Spark."""
        for stream, source in self.sources.items():
            if not is_spark_frame(source):
                raise SourceError(
                    f"the source of {stream!r} is a {type(source).__name__}, not a DataFrame",
                    remedy="give Spark DataFrames, or use run() for tables",
                )

    def _frame(
        self,
        plan: Given,
        processors: int | None,
        late: bool | str,
        checkpoint: str | PathLike[str] | None,
        name: str | None,
        upgrade: str | None,
        table: str | None = None,
    ) -> DataFrame:
        """The results, or with a Delta table the files that they are in."""
        query = self.query
        self._check_frames()
        from plait.spark.join.frame import results
        from plait.spark.join.options import JoinOptions

        options = JoinOptions(
            plan=self.plan(plan),
            processors=processors,
            late=late,
            checkpoint=None if checkpoint is None else fspath(checkpoint),
            name=name,
            policy=self._policy(plan),
            budget=self.limits,
            balance=self._balancing(),
            upgrade=upgrade,
            table=table,
        )
        return results(query, self.sources, options)

    def result_delay(self, stream: str) -> str:
        """The delay with which a watermark on this stream's event time in results drops nothing.

        `q.to_df().withWatermark("ts", q.result_delay("trades"))`, where `ts` is `trades.ts`. A
        shorter one closes windows earlier and may drop results.
        """
        return f"{-(-self.query.result_delay(stream) // 1_000)} milliseconds"


@dataclass(frozen=True, slots=True, repr=False)
class Join(_Runnable, builder.JoinBuilder):
    """A join in the making that can be run. Start one with `plait.join`."""

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


@dataclass(frozen=True, slots=True, repr=False)
class Sql(_Runnable):
    """A join asked in SQL that can be run. Start one with `plait.sql`."""

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
        """The question as a checked value."""
        return self.query


def join(**sources: Any) -> Join:
    """Begin a join of streams by name.

    They are Arrow tables, schemas or readers, pandas or polars DataFrames, relations of DuckDB and
    whatever else hands itself over to Arrow, paths of Parquet, CSV or JSON-lines files, or
    DataFrames of Spark.

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
    sources = {name: _readable(source) for name, source in sources.items()}
    fields = {name: fields_of(_schema(name, source)) for name, source in sources.items()}
    came = _watermarked(sources)
    return Join(
        dict(sources),
        fields,
        times={name: column for name, (column, _) in came.items()},
        came={name: {column: delay} for name, (column, delay) in came.items()},
        unsaid=_endless(sources),
        dialect=_dialect(sources.values()),
    )


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
    """A join asked in SQL, over named tables or over the tables and views of a Spark session.

    `time` names the event-time column, `watermark` how late rows may come, `idle` how long a
    silent stream holds the others back, `ahead` how far rows may be ahead of the clock; each for
    all streams, or by stream or table. With `lateness="least"` rows are late by the least
    watermark of all streams, as in Spark.
    """
    from plait.query.sql.statement import parse_statement

    named = tables if isinstance(tables, Mapping) else _SessionTables(tables)
    dialect = _dialect(named.values() if isinstance(tables, Mapping) else (tables,))
    query, origin = parse_statement(text, _Schemas(named), time, watermark, lateness, dialect)
    sources = {stream: named[table] for stream, table in origin.items()}
    if watermark is None or isinstance(watermark, Mapping):
        said = set(watermark or ())
        silent = {s: f for s, f in sources.items() if not {s, origin[s]} & said}
        came = {(s, column): delay for s, (column, delay) in _watermarked(silent).items()}
        endless = _endless(silent)
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
    """What was said of a stream, or else of its table."""
    return given.get(stream, given.get(origin[stream]))


def is_spark_frame(source: object) -> bool:
    """Whether a source is a DataFrame of Spark, classic or Connect, without importing it."""
    return type(source).__module__.startswith("pyspark.sql") and hasattr(source, "mapInArrow")


def _text(given: Any) -> Any:
    """A condition or an output as text; what is neither text nor a Column is left as it is."""
    if not type(given).__module__.startswith("pyspark.sql"):
        return given
    from plait.spark.join.columns import column_text

    return column_text(given)


def _readable(source: Any) -> Any:
    """The source itself, or as an Arrow table if it can hand itself over as one.

    So do pandas and polars DataFrames and relations of DuckDB. A path is opened.
    """
    if isinstance(source, str | PathLike):
        from plait.local.sources import open_source

        return open_source(str(source))
    known = is_spark_frame(source) or isinstance(getattr(source, "schema", source), pa.Schema)
    return source if known or not hasattr(source, "__arrow_c_stream__") else pa.table(source)


def _schema(name: str, source: Any) -> pa.Schema:
    if is_spark_frame(source):
        from plait.spark.join.schemas import arrow_schema

        return arrow_schema(source, name)
    return builder.schema_of(source)


def _watermarked(sources: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """The column and the delay of the watermark of each DataFrame that comes with one."""
    found = {}
    for name, source in sources.items():
        if is_spark_frame(source):
            from plait.spark.join.watermarks import watermark_delays

            delays = watermark_delays(source)
            if len(delays) == 1:
                found[name] = next(iter(delays.items()))
    return found


def _dialect(sources: Iterable[Any]) -> Dialect:
    """How Spark would read SQL over these sources: in the time zone of their session."""
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


def _endless(sources: Mapping[str, Any]) -> dict[str, int]:
    """The delay of streaming DataFrames as long as nobody gives them a watermark.

    A join of Spark without a watermark drops no row and keeps everything; so does this one.
    """
    streaming = (
        n for n, source in sources.items() if is_spark_frame(source) and source.isStreaming
    )
    return dict.fromkeys(streaming, NEVER_LATE)


class _Schemas(Mapping[str, pa.Schema]):
    """The schemas of tables, looked up when they are asked for."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> pa.Schema:
        return _schema(name, self._tables[name])

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
