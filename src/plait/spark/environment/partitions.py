"""How many partitions Spark makes of the state: one for each processor is right.

Spark takes the number from the session's `spark.sql.shuffle.partitions` when a query is started for
the first time, keeps it in the checkpoint, and never changes it. Results do not depend on it: a
processor is a grouping key, and runs in whichever partition its key falls. But a partition without
a processor is a task with a state store of its own in every batch, for the life of the checkpoint:
with 200 partitions for two processors a batch took ten times as long as with two.

The setting belongs to whoever owns the session, and other queries read it too, so `to_df` leaves it
alone. It cannot be given to one query only: it is not read when a query is built, no option of the
writer sets it, and a DataFrame of another session would be unknown to `spark.streams`. What is
left is to set it while the query is started, which is what `partitions` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_COUNTED: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()
_ROWS = 1 << 20
"""More rows than a cluster has cores, and still nothing to count."""

SETTING = "spark.sql.shuffle.partitions"
SPARKS_DEFAULT = 200


@contextmanager
def partitions(session: SparkSession, count: int | None = None) -> Iterator[int]:
    """Start queries with `count` processors within a `with` block; by default one per core.

        with plait.spark.partitions(spark, 8):
            query = q.to_df().writeStream.format(...).start()

    Afterwards the session's setting is what it was. A query that goes on from a checkpoint keeps
    the number that is in it. Queries that other threads start in the same session meanwhile get
    this number too.
    """
    before = partitions_of(session)
    session.conf.set(SETTING, str(count or parallelism(session)))
    try:
        yield partitions_of(session)
    finally:
        session.conf.set(SETTING, str(before))


def parallelism(session: SparkSession) -> int:
    """How many tasks the cluster runs at once, as Spark sees it: into how many it divides a range.

    The driver's own cores say nothing about the cluster, and a client of Spark Connect has no
    SparkContext to ask. It is found out once per session.
    """
    if session not in _COUNTED:
        _COUNTED[session] = settled(lambda: _divided(session))
    return _COUNTED[session]


def settled(ask: Callable[[], int]) -> int:
    """The first answer that is given twice in a row.

    A session on a cluster begins before its executors have reported, and Spark takes itself for one
    with two cores then. The first job waits for an executor, and by then the others report too.

    >>> answers = iter([2, 3, 12, 12])
    >>> settled(lambda: next(answers))
    12
    """
    before, found = 0, ask()
    while found != before:
        before, found = found, ask()
    return found


def _divided(session: SparkSession) -> int:
    parts = session.range(_ROWS).selectExpr("spark_partition_id() AS part")
    last = parts.selectExpr("max(part)").first()
    return 1 + int(last[0]) if last is not None else 1


def partitions_of(session: SparkSession) -> int:
    """The session's setting."""
    return int(session.conf.get(SETTING, str(SPARKS_DEFAULT)) or SPARKS_DEFAULT)


def processor_count(session: SparkSession, asked: int | None = None) -> int:
    """How many processors there are: as many as Spark makes partitions of a stateful operator.

    Spark's default of 200 partitions is meant for large batch shuffles; each would be a task with
    a state store of its own in every batch. So unless the session says something else, it is one
    processor per core of the cluster.
    """
    configured = partitions_of(session)
    if asked is None and configured != SPARKS_DEFAULT:
        return configured
    return asked or parallelism(session)


def warn_of_partitions(session: SparkSession, processors: int) -> None:
    """Say so if a query that is started in this session now would not fit its processors."""
    found = partitions_of(session)
    if found == processors:
        return
    cost = (
        f"{found - processors} of the {found} tasks of every batch would have nothing to do"
        if found > processors
        else f"they would have to share {found} tasks"
    )
    warnings.warn(
        f"the join has {processors} processors, but {SETTING} is {found}: {cost}, for as long as "
        f"the checkpoint lives; start the query inside `with plait.spark.partitions(spark, "
        f"{processors}):`, or set it to {processors}",
        stacklevel=2,
    )
