"""From a query and its DataFrames to a DataFrame of results.

    sources ─► pack (mapInArrow) ─► shuffle by processor ─► transformWithStateInPandas ─► results

Each processor also reports on every batch: in the control directory, or, where that is not shared
by driver and executors, beside its results. Then Spark's own `observe` collects the reports into
the progress of the query, and they are filtered out of the results.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses

from plait.adapt.setting import Setting
from plait.errors import DuplicateName
from plait.groups.routing.packets import lean
from plait.node.node import Setup
from plait.node.task import Processor, portioned
from plait.optimize.budget import Budget
from plait.optimize.costs import load
from plait.plan.jtree import Join, Leaf
from plait.query.query import Query
from plait.spark.arena.engines import Places, remove
from plait.spark.balance.driver_tasks import start_tasks
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin, register
from plait.spark.environment.connect import is_connect
from plait.spark.environment.partitions import warn_of_partitions
from plait.spark.environment.requirements import check_packages, check_spark
from plait.spark.environment.settings import INTERVAL, store_in_rocksdb
from plait.spark.io.write_delta import FileOutlet
from plait.spark.join.aside import aside_schema, late_column, nested
from plait.spark.join.checks import check_frames, check_malformed_name, check_plan_on_spark
from plait.spark.join.instants import with_instants
from plait.spark.join.layout import Layout, choose_layout, random_seed
from plait.spark.join.operator import REPORT, JoinOperator, Outlet, RowOutlet
from plait.spark.join.options import JoinOptions
from plait.spark.join.packing import packed_streams
from plait.spark.join.schemas import is_marked, spark_schema
from plait.spark.join.source_types import read_of, with_source_types
from plait.spark.join.watermarks import warn_without_watermarks

OBSERVATION = "plait"
"""The name under which reports appear in Spark's progress."""


def results(query: Query, frames: Mapping[str, DataFrame], options: JoinOptions) -> DataFrame:
    """Join DataFrames; the results are streaming if these are.

    With a Delta table among the options, the rows are the files that processors have written
    there (see `plait.spark.io.write_delta`).
    """
    check_packages()
    check_plan_on_spark(query, options.plan)
    check_frames(query, frames)
    late = late_column(query, options.late)
    malformed = any(is_marked(frames[name]) for name in query.names)
    check_malformed_name(query, late, malformed)
    first = frames[query.names[0]]
    session, streaming = first.sparkSession, first.isStreaming
    check_spark(session.version)

    run = os.urandom(8).hex()
    control = _open_control(session, options, run)
    layout = choose_layout(session, query, options, control, streaming=streaming)
    packets = packed_streams(query, frames, layout, control, options)
    processor = _processor(lean(query), layout, options)
    _register(session, processor, layout, control, options, streaming=streaming)

    outlet = _outlet(processor, late, malformed, options.table, reports=not control.shared)
    atexit.register(remove, Places.of_host(), run)
    operator = JoinOperator(processor, layout.keys, run, control, outlet)
    rows = packets.groupBy("processor").transformWithStateInPandas(
        operator, spark_schema(outlet.schema), "append", "none"
    )
    if not control.shared:
        rows = _without_reports(rows, observation(options.name))
    if options.table is not None:
        return rows
    return _finished_columns(rows, processor, frames, late, malformed)


def observation(name: str | None) -> str:
    """The name of Spark's observation that carries the reports of a join.

    >>> observation(None), observation("prices")
    ('plait', 'plait:prices')
    """
    return OBSERVATION if name is None else f"{OBSERVATION}:{name}"


def _open_control(session: SparkSession, options: JoinOptions, run: str) -> Control:
    """The control directory of the join; a temporary one is removed when the driver ends."""
    master = _master(session)
    control = Control.of(options.checkpoint, options.name, run, master)
    control.reach()
    atexit.register(control.remove)
    return control


def _processor(query: Query, layout: Layout, options: JoinOptions) -> Processor:
    """What every processor runs. Routed plans do not change while they run."""
    setting = None
    if options.policy is not None and isinstance(options.plan, Join | Leaf):
        share = (options.budget or Budget()).divided(layout.taking_part)
        setting = Setting(query, options.policy, share, load())
    return Processor(
        setup=Setup(query, options.plan, setting, portioned(options.tuning), random_seed()),
        contract=layout.contract,
        routing=layout.routing,
        aside=bool(options.late),
        beginning=layout.beginning,
        upgraded=layout.upgraded,
    )


def _register(
    session: SparkSession,
    processor: Processor,
    layout: Layout,
    control: Control,
    options: JoinOptions,
    *,
    streaming: bool,
) -> None:
    """Make the join known to this driver; prepare the session for a streaming one."""
    query = processor.setup.query
    if streaming:
        store_in_rocksdb(session)
        warn_without_watermarks(query)
        if layout.partitions is not None:
            warn_of_partitions(session, layout.partitions)
    join = RegisteredJoin(
        query=query,
        name=options.name,
        control=control,
        routing=layout.routing,
        balance=options.balance,
        active=layout.active,
        plan=str(options.plan),
        setting=processor.setup.adapt,
        interval=int(session.conf.get(INTERVAL) or 0),
    )
    register(join)
    if streaming:
        start_tasks(join)


def _outlet(
    processor: Processor, late: str | None, malformed: bool, table: str | None, *, reports: bool
) -> Outlet:
    if table is None:
        return RowOutlet(processor, reports, malformed)
    return FileOutlet(processor.setup.query, table, late, reports, malformed)


def _without_reports(rows: DataFrame, name: str) -> DataFrame:
    """Let Spark's `observe` collect the reports, and filter them out of the rows."""
    try:
        observed = rows.observe(name, F.collect_list(REPORT).alias("reports"))
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise DuplicateName(
            "an input of this join is itself the result of one, and both have the same name",
            remedy="tell them apart: to_df(name='...')",
        ) from error
    return observed.where(F.col(REPORT).isNull()).drop(REPORT)


def _finished_columns(
    rows: DataFrame,
    processor: Processor,
    frames: Mapping[str, DataFrame],
    late: str | None,
    malformed: bool,
) -> DataFrame:
    """Give columns the types of the query and of its sources; nest rows set aside in one column."""
    query = processor.setup.query
    fields = [*query.schema, *(aside_schema(query, malformed) if processor.aside else ())]
    rows = with_instants(rows, fields)
    rows = with_source_types(rows, read_of(query, processor.aside), frames)
    return rows if late is None else nested(rows, query, late, malformed)


def _master(session: SparkSession) -> str:
    """What runs the session; unknown to clients of Spark Connect, who may be on another host."""
    return "" if is_connect(session) else session.conf.get("spark.master", "") or ""
