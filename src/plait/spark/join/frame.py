"""From a query and its DataFrames to a DataFrame of results.

    sources ─► pack (mapInArrow) ─► shuffle by processor ─► transformWithStateInPandas ─► results

Each processor also reports on every batch: in the control directory, or, where that is not shared
by driver and executors, beside its results. Then Spark's own `observe` collects the reports into
the progress of the query, and they are filtered out of the results.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses

from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.errors import CheckpointMismatch, DuplicateName, PlanError, SourceError
from plait.groups.balance.policy import BalancePolicy
from plait.groups.routing.malformed import MALFORMED, MARK, MARK_TYPE
from plait.groups.routing.packets import CLOCK, Packer, Packet, lean
from plait.node.node import Setup
from plait.node.task import Processor, portioned
from plait.optimize.budget import Budget
from plait.optimize.costs import load
from plait.plan.jtree import Join, Leaf, check_plan
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query, narrowed
from plait.spark.arena.engines import Places, remove
from plait.spark.balance.driver_tasks import start_tasks
from plait.spark.balance.rebalance import finish_rebalance
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin, register
from plait.spark.environment.connect import is_connect
from plait.spark.environment.partitions import warn_of_partitions
from plait.spark.environment.requirements import check_packages, check_spark
from plait.spark.environment.settings import INTERVAL, store_in_rocksdb
from plait.spark.io.write_delta import FileOutlet
from plait.spark.join.aside import aside_schema, late_column, nested
from plait.spark.join.instants import named_column, with_instants
from plait.spark.join.layout import layout_of, new_layout, random_seed
from plait.spark.join.operator import REPORT, JoinOperator, RowOutlet
from plait.spark.join.schemas import conform, is_marked, spark_schema
from plait.spark.join.source_types import read_of, with_source_types
from plait.spark.join.watermarks import warn_without_watermarks, without_watermark
from plait.spark.join.worker import batch_number, settle
from plait.tuning import USUAL, Tuning

OBSERVATION = "plait"
"""The name under which reports appear in Spark's progress."""

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


def results(
    query: Query,
    frames: Mapping[str, DataFrame],
    plan: Plan,
    processors: int | None = None,
    late: bool | str = False,
    checkpoint: str | os.PathLike[str] | None = None,
    name: str | None = None,
    adapt: PlanPolicy | None = None,
    budget: Budget | None = None,
    tuning: Tuning = USUAL,
    balance: BalancePolicy | None = None,
    upgrade: str | None = None,
    table: str | None = None,
) -> DataFrame:
    """The results of a query over DataFrames; streaming if they are.

    With `late`, also the rows that were set aside, in a column of that name: see `aside`. A
    `checkpoint` is looked at beforehand: see `checkpoint`; `upgrade` is the code of a change that
    is agreed to: see `upgrades`. Reports appear under `name`. With `adapt`, each processor changes
    its plan by this policy, within its share of the `budget`. With `balance`, partition groups move
    between processors by that one. Results do not depend on the `tuning`.

    With the location of a Delta `table`, processors write them to files there, and the DataFrame
    has the files: see `delta`.
    """
    check_packages()
    checkpoint = None if checkpoint is None else os.fspath(checkpoint)
    _check(query, plan)
    if missing := [name for name in query.names if name not in frames]:
        raise SourceError(f"there is no DataFrame for the stream {missing[0]!r}")
    _check_kinds({name: frames[name] for name in query.names})
    asked = narrowed(query)
    malformed = any(is_marked(frames[name]) for name in query.names)
    named = late_column(query, late)
    if named and malformed and MALFORMED in query.names:
        raise DuplicateName(
            f"a stream is called {MALFORMED!r}, as is what {named} has of malformed values",
            remedy="give the stream another name",
        )
    session = frames[query.names[0]].sparkSession
    check_spark(session.version)
    small = lean(query)
    streaming = frames[query.names[0]].isStreaming
    run = os.urandom(8).hex()
    control = Control.of(checkpoint, name, run, _master(session))
    control.reach()
    atexit.register(control.remove)
    if checkpoint is None:
        if upgrade is not None:
            raise CheckpointMismatch(
                "there is no checkpoint to go on from with another question",
                remedy="say where it is: to_df(checkpoint=..., upgrade=...)",
            )
        layout = new_layout(session, query, processors, secret=not streaming)
    else:
        finish_rebalance(session, checkpoint)
        layout = layout_of(session, query, processors, checkpoint, control, upgrade)
    routing, keys = layout.routing, layout.keys
    packets: DataFrame | None = None
    for s, stream in enumerate(asked.streams):
        marked = is_marked(frames[stream.name])
        schema = stream.schema.append(pa.field(MARK, MARK_TYPE)) if marked else stream.schema
        frame = without_watermark(frames[stream.name]).select(
            # Spark parses the names once more on its way to Python: plain ones, then.
            [named_column(name).alias(f"c{i}") for i, name in enumerate(schema.names)]
        )
        if clocked := stream.ahead is not None:
            frame = frame.withColumn(CLOCK, F.unix_micros(_began()))
            schema = schema.append(pa.field(CLOCK, pa.int64()))
        packer = Packer(asked, s, routing, bool(late), tuning, marked, clocked)
        pack = _pack(packer, schema, keys, control)
        packed = frame.mapInArrow(pack, spark_schema(_PACKETS))
        packets = packed if packets is None else packets.unionAll(packed)
    assert packets is not None, "a query has streams"
    if any(s.idle is not None for s in query.streams):
        packets = packets.withColumn("clock", F.unix_millis(_began()))
    setting = None
    if adapt is not None and isinstance(plan, Join | Leaf):
        share = (budget or Budget()).divided(layout.taking_part)
        setting = Setting(small, adapt, share, load())
    setup = Setup(small, plan, setting, portioned(tuning), random_seed())
    processor = Processor(
        setup, layout.contract, routing, bool(late), layout.beginning, layout.upgraded
    )
    if streaming:
        store_in_rocksdb(session)
        warn_without_watermarks(query)
        if layout.partitions is not None:
            warn_of_partitions(session, layout.partitions)
    atexit.register(remove, Places.of_host(), run)
    register(
        made := RegisteredJoin(
            small,
            name,
            control,
            routing,
            balance,
            layout.active,
            str(plan),
            setting,
            int(session.conf.get(INTERVAL) or 0),
        )
    )
    if streaming:
        start_tasks(made)
    reports = not control.shared
    outlet = (
        RowOutlet(processor, reports, malformed)
        if table is None
        else FileOutlet(small, table, named, reports, malformed)
    )
    operator = JoinOperator(processor, keys, run, control, outlet)
    rows = packets.groupBy("processor").transformWithStateInPandas(
        operator, spark_schema(outlet.schema), "append", "none"
    )
    if reports:
        rows = _observed(rows, observation(name)).where(F.col(REPORT).isNull()).drop(REPORT)
    if table is not None:
        return rows
    meant = [*small.schema, *(aside_schema(small, malformed) if processor.aside else ())]
    rows = with_instants(rows, meant)
    rows = with_source_types(rows, read_of(small, processor.aside), frames)
    return rows if named is None else nested(rows, small, named, malformed)


def observation(name: str | None) -> str:
    """The name of Spark's observation that carries the reports of a join.

    >>> observation(None), observation("prices")
    ('plait', 'plait:prices')
    """
    return OBSERVATION if name is None else f"{OBSERVATION}:{name}"


def _master(session: SparkSession) -> str:
    """What runs the session; unknown to clients of Spark Connect, who may be on another host."""
    if is_connect(session):
        return ""
    return session.conf.get("spark.master", "") or ""


def _observed(found: DataFrame, called: str) -> DataFrame:
    try:
        return found.observe(called, F.collect_list(REPORT).alias("reports"))
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise DuplicateName(
            "an input of this join is itself the result of one, and both have the same name",
            remedy="tell them apart: to_df(name='...')",
        ) from error


def _began() -> Column:
    """The time at which Spark began the batch, from its log: the same when it is repeated."""
    # Assumption: batch-time-repeats
    return F.current_timestamp()


def _check(query: Query, plan: Plan) -> None:
    if isinstance(plan, Teddies) and plan.patience:
        raise PlanError(
            f"on Spark no tuple may wait beyond its batch, as {plan} lets it",
            remedy="leave patience at 0",
        )
    if not isinstance(plan, Eddies | Teddies):
        check_plan(query, plan)


def _check_kinds(frames: Mapping[str, DataFrame]) -> None:
    """Refuse static DataFrames beside streaming ones: Spark does not mix them in one operator."""
    static = [name for name, frame in frames.items() if not frame.isStreaming]
    if static and len(static) < len(frames):
        streaming = next(name for name, frame in frames.items() if frame.isStreaming)
        raise SourceError(
            f"{static[0]!r} is a static DataFrame, but {streaming!r} is a stream",
            remedy="read it with readStream, or join it with the results afterwards",
        )


def _pack(
    packer: Packer, schema: pa.Schema, keys: tuple[int, ...], control: Control
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
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
