"""Plait inside Spark Structured Streaming: streaming DataFrames in, a streaming DataFrame out.

`join` builds the DataFrame of results and runs the processors, `control` is the directory through
which driver and processors talk, `balance` moves partition groups while a query runs, `checkpoint`
reads and repairs what Spark keeps, `environment` looks after sessions, and `io` has Kafka and
Delta. Only this package and `plait.sites.spark` import pyspark. Begin with `join/frame.py`.

What users call of it is exported here: sessions and their settings, Kafka, Delta and late rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.exports import lazy

if TYPE_CHECKING:
    from plait.spark.checkpoint.why import why as why
    from plait.spark.control.progress import listen as listen
    from plait.spark.environment.doctor import Finding as Finding
    from plait.spark.environment.doctor import Findings as Findings
    from plait.spark.environment.doctor import doctor as doctor
    from plait.spark.environment.java import provide_java as provide_java
    from plait.spark.environment.partitions import partitions as partitions
    from plait.spark.environment.session import session as session
    from plait.spark.environment.settings import SettingChange as SettingChange
    from plait.spark.environment.settings import SettingChanges as SettingChanges
    from plait.spark.environment.settings import configure as configure
    from plait.spark.io.delta_vacuum import vacuum as vacuum
    from plait.spark.io.kafka import from_kafka as from_kafka
    from plait.spark.join.aside import each_batch as each_batch
    from plait.spark.join.aside import split_late as split_late

__all__ = [
    "Finding",
    "Findings",
    "SettingChange",
    "SettingChanges",
    "configure",
    "doctor",
    "each_batch",
    "from_kafka",
    "listen",
    "partitions",
    "provide_java",
    "session",
    "split_late",
    "vacuum",
    "why",
]

_PLACES = {
    "Finding": "plait.spark.environment.doctor",
    "Findings": "plait.spark.environment.doctor",
    "SettingChange": "plait.spark.environment.settings",
    "SettingChanges": "plait.spark.environment.settings",
    "configure": "plait.spark.environment.settings",
    "doctor": "plait.spark.environment.doctor",
    "each_batch": "plait.spark.join.aside",
    "from_kafka": "plait.spark.io.kafka",
    "listen": "plait.spark.control.progress",
    "partitions": "plait.spark.environment.partitions",
    "provide_java": "plait.spark.environment.java",
    "session": "plait.spark.environment.session",
    "split_late": "plait.spark.join.aside",
    "vacuum": "plait.spark.io.delta_vacuum",
    "why": "plait.spark.checkpoint.why",
}

__getattr__ = lazy(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
