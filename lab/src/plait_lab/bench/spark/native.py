"""The same join with what Spark has: chained stream-stream joins with time intervals.

Spark refuses intervals between all pairs, because the result of the first join has two event-time
columns. So only the first stream's time stays an event time; after each join the other's becomes a
number, and the bounds with it are plain arithmetic. Intervals with the first stream's time let
Spark drop old state.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # the name everybody uses

from plait_lab.workloads.files import owners, result_columns


def native_join(
    frames: Sequence[DataFrame], keys: Sequence[Sequence[str]], window: int
) -> DataFrame:
    """Streams joined naturally over their key columns, all within `window` microseconds."""
    span = f"INTERVAL {window} MICROSECONDS"
    joined = _renamed(frames[0], 0)
    for i, frame in enumerate(frames[1:], start=1):
        conditions = [f"s{i}_ts BETWEEN s0_ts - {span} AND s0_ts + {span}"]
        conditions += [f"abs(unix_micros(s{i}_ts) - s{j}_us) <= {window}" for j in range(1, i)]
        for key in keys[i]:
            earlier = [j for j in owners(keys, key) if j < i]
            conditions += [f"s{j}_{key} = s{i}_{key}" for j in earlier[:1]]
        joined = joined.join(_renamed(frame, i), F.expr(" AND ".join(conditions)))
        joined = joined.withColumn(f"s{i}_us", F.expr(f"unix_micros(s{i}_ts)")).drop(f"s{i}_ts")
    outputs = []
    for name in result_columns(keys):
        if name.endswith("_ts") and name != "s0_ts":
            outputs.append(f"timestamp_micros({name[:-3]}_us) AS {name}")
        elif name.endswith(("_ts", "_v")):
            outputs.append(name)
        else:
            outputs.append(f"s{owners(keys, name)[0]}_{name} AS {name}")
    return joined.selectExpr(*outputs)


def _renamed(frame: DataFrame, number: int) -> DataFrame:
    renamed = frame.select([F.col(c).alias(f"s{number}_{c}") for c in frame.columns])
    return renamed.withWatermark(f"s{number}_ts", "0 seconds")
