"""Rows that are made at a steady rate and sent to Kafka, and the results that come back.

A row tells when it was made, so the time from there to the moment at which the broker appended a
result of it is known without any further clock: all are processes of one machine.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

import duckdb
import pyarrow as pa

_PULSE = 0.01
"""Seconds between two bursts of rows."""
_WAIT = 60.0


@dataclass(slots=True)
class Feed:
    """A thread that sends rows of all streams to their topics, until it is closed."""

    address: str
    topics: str
    streams: int
    window: float
    """Seconds. There are so many keys that a row finds about one partner in each other stream."""
    seed: int = 1
    rate: float = 0.0
    """Rows per second and stream; may change at any time."""
    rows: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """Of each stream, what was sent: when it was made, its key and its number."""
    _thread: threading.Thread | None = None
    _closed: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Feed:
        self.rows = [[] for _ in range(self.streams)]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def sent(self) -> int:
        """Rows of all streams so far."""
        return sum(map(len, self.rows))

    def _run(self) -> None:
        from confluent_kafka import Producer

        # Idempotent: a broker that is slow to answer gets no row twice, and rows stay in order.
        settings = {
            "bootstrap.servers": self.address,
            "linger.ms": 1,
            "enable.idempotence": True,
            "log_level": 3,  # a broker that has just started is not ready at once
        }
        producer = Producer(settings)
        chance, owed, last = Random(self.seed), 0.0, time.monotonic()
        while not self._closed.wait(_PULSE):
            rate, now = self.rate, time.monotonic()
            owed, last = owed + rate * (now - last), now
            keys = max(1, round(2 * self.window * rate))
            for _ in range(int(owed)):
                for stream, rows in enumerate(self.rows):
                    made, key, number = time.time_ns() // 1000, chance.randrange(keys), len(rows)
                    rows.append((made, key, number))
                    value = f'{{"ts":{made},"k":{key},"v":{number}}}'
                    producer.produce(f"{self.topics}-s{stream}", value)
            owed -= int(owed)
            producer.poll(0)
        producer.flush(_WAIT)


@dataclass(frozen=True, slots=True)
class Appended:
    """A result: when the broker appended it, when its newest row was made, and its rows."""

    appended: int
    made: int
    rows: tuple[int, ...]

    @property
    def seconds(self) -> float:
        """From the newest row to the result."""
        return (self.appended - self.made) / 1_000_000


def results_of(address: str, topics: str) -> list[Appended]:
    """Everything in the topic of results."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": topics})
    try:
        topic = f"{topics}-results"
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_WAIT)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Appended] = []
        while len(found) < end:
            for message in consumer.consume(10_000, 1.0):
                if message.error() is not None:
                    raise KafkaException(message.error())
                value = json.loads(message.value() or b"")
                milliseconds = message.timestamp()[1]
                found.append(Appended(milliseconds * 1000, value["made"], tuple(value["rows"])))
        return found
    finally:
        consumer.close()


def expected_results(rows: Sequence[Sequence[tuple[int, int, int]]], window: float) -> int:
    """How many results DuckDB finds in rows of streams that share the key.

    >>> expected_results([[(0, 1, 0), (9, 1, 1)], [(1_000_000, 1, 0)]], 1.0)
    2
    """
    span = round(window * 1_000_000)
    names = [f"s{i}" for i in range(len(rows))]
    near = [
        f"{x}.k = {y}.k AND {y}.ts - {x}.ts BETWEEN {-span} AND {span}"
        for i, y in enumerate(names)
        for x in names[:i]
    ]
    with closing(duckdb.connect()) as connection:
        for name, given in zip(names, rows, strict=True):
            times, keys, _ = zip(*given, strict=True) if given else ((), (), ())
            table = pa.table({"ts": pa.array(times, pa.int64()), "k": pa.array(keys, pa.int64())})
            connection.register(name, table)
        sql = f"SELECT count(*) FROM {', '.join(names)} WHERE {' AND '.join(near)}"
        found = connection.execute(sql).fetchone()
    assert found is not None
    return int(found[0])
